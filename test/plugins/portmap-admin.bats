#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap beside rules of an administrator for the same port of the host, in PREROUTING and OUTPUT of iptables and in
# native chains of nftables
bats_require_minimum_version 1.5.0
load ../lib
load outside

plugins=$HAWSER_BUILD/cni

# The pod in netns one has the host port 8080. Netns two, 10.8.0.2, is the destination of the administrator's rules.
setup() {
	need ip jq nft iptables python3
	connect_outside
	sysctl -qw net.ipv4.ip_forward=1
	ip link add veth0 type veth peer name eth0 netns two
	ip addr add 10.8.0.1/24 dev veth0
	ip link set veth0 up
	ip -n two addr add 10.8.0.2/24 dev eth0
	ip -n two link set eth0 up
	ip -n two route add default via 10.8.0.1
	export CNI_PATH=$plugins
	pid=
}

teardown() {
	local link netns
	[ -z "$pid" ] || kill $pid
	for link in $(ip -j link show type veth | jq -r '.[].ifname'); do ip link del "$link" || true; done
	ip link del cni0 2>/dev/null || true
	for netns in $(ip netns list | cut -d ' ' -f 1); do ip netns del "$netns"; done
	rm -rf /run/hawser /var/lib/cni/networks
	nft flush ruleset
}

# ---- helpers -------------------------------------------------------------------------

# call VERB PLUGIN CONF
call() { CNI_COMMAND=$1 CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth0 "$plugins/$2" <<<"$3"; }

# attach: attach the pod and map its port
attach() {
	local network='{"cniVersion":"1.0.0","name":"net","type":"bridge","isDefaultGateway":true,
		"ipam":{"type":"host-local","subnet":"10.7.0.0/24"}}'
	call ADD bridge "$network" >/tmp/result
	call ADD portmap "$(jq -nc --slurpfile prev /tmp/result '{cniVersion:"1.0.0",name:"net",type:"portmap",
		runtimeConfig:{portMappings:[{hostPort:8080,containerPort:80,protocol:"udp"}]},prevResult:$prev[0]}')" >/dev/null
}

# serve: answer UDP packets to port 80 of the pod and port 80 of netns two with the name of the namespace, and
# packets to port 8080 of the host with "host"
serve() {
	python3 - >/tmp/ready 3>&- <<-'END' &
		import ctypes, select, socket
		libc = ctypes.CDLL(None)
		def server(netns, port):
		    if netns:
		        with open("/run/netns/" + netns) as f:
		            libc.setns(f.fileno(), 0)
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.bind(("0.0.0.0", port))
		    return s
		names = {server("", 8080): b"host", server("one", 80): b"one", server("two", 80): b"two"}
		print("ready", flush=True)
		while True:
		    for s in select.select(list(names), [], [])[0]:
		        s.sendto(names[s], s.recvfrom(9)[1])
	END
	pid=$!
	wait_until has_line ready /tmp/ready
}

# reached [NETNS]: print which server answers on 192.0.2.1:8080, for a client in NETNS or on the host
reached() {
	${1:+ip netns exec "$1"} python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
for tries in range(20):
    try:
        s.sendto(b"x", ("192.0.2.1", 8080))
        print(s.recv(9).decode())
        break
    except TimeoutError:
        pass'
}

by_iptables() {
	iptables -t nat -A PREROUTING -p udp --dport 8080 "$@"
	iptables -t nat -A OUTPUT -p udp --dport 8080 "$@"
}
natively() {
	nft "table inet admin {
		chain pre { type nat hook prerouting priority -100; udp dport 8080 $*; }
		chain out { type nat hook output priority -100; udp dport 8080 $*; }
	}"
}

# ---- tests ----------------------------------------------------------------------------

@test "portmap: another DNAT of the same port takes precedence, in both load orders" {
	attach
	serve
	[ "$(reached outside)" = one ]
	[ "$(reached)" = one ]
	for admin in "by_iptables -j DNAT --to-destination 10.8.0.2:80" "natively dnat ip to 10.8.0.2:80"; do
		# our table first, then the administrator's
		$admin
		[ "$(reached outside)" = two ]
		[ "$(reached)" = two ]
		# the administrator's table first, then ours
		nft delete table inet hawser
		hawser-plugin repair
		[ "$(reached outside)" = two ]
		[ "$(reached)" = two ]
		nft flush ruleset
		hawser-plugin repair
		[ "$(reached outside)" = one ]
	done
}

@test "portmap: accept and return in another chain do not exempt packets from a port mapping" {
	attach
	serve
	for admin in "by_iptables -j ACCEPT" "by_iptables -j RETURN" "natively accept" "natively return"; do
		$admin
		[ "$(reached outside)" = one ]
		[ "$(reached)" = one ]
		nft flush ruleset
		hawser-plugin repair
	done
}
