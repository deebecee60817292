#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ipMasq of bridge and ptp: which source address a server sees, with real sockets in namespaces; the elements of
# pods; removal of rules of upstream's plugins
# shellcheck disable=SC2154 # variables come from masq.bash and from run
bats_require_minimum_version 1.5.0
load masq

# traffic TYPE: assert that an outside server sees the host's address, and pods see each other's addresses
traffic() {
	local proto
	conf "$1"
	add c1 one
	add c2 two
	for proto in tcp udp; do
		[ "$(seen one outside 192.0.2.2 $proto)" = 192.0.2.1 ]
		[ "$(seen one outside fd99::2 $proto)" = fd99::1 ]
		[ "$(seen one two "$(address c2 0)" $proto)" = "$(address c1 0)" ]
		[ "$(seen one two "$(address c2 1)" $proto)" = "$(address c1 1)" ]
	done
	check
	del c1 one
	del c2 two
	[ "$(ours)" = "[]" ]
}

@test "masq: bridge: an outside server sees the host's address, and pods see each other's addresses" {
	traffic bridge
}

@test "masq: ptp: an outside server sees the host's address, and pods see each other's addresses" {
	traffic ptp
}

@test "masq: after DEL the pod's address is no longer masqueraded, and those of other pods still are" {
	conf bridge
	add c1 one
	add c2 two
	[ "$(packet one 192.0.2.2)" = 192.0.2.1 ]
	call DEL c1 "" "$(</tmp/conf)"
	[ "$(elements masq4)" = '["10.7.0.3"]' ]
	[ "$(elements masq6)" = '["fd07::3"]' ]
	conf bridge '{"ipMasq":false}'
	add c1 one
	[ "$(packet one 192.0.2.2)" = "$(address c1 0)" ]
	[ "$(packet two 192.0.2.2)" = 192.0.2.1 ]
}

# route_multicast LINK SOURCE GROUP: route one multicast group from LINK to wire, for ten seconds
route_multicast() {
	python3 -c '
import signal, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
s.setsockopt(socket.IPPROTO_IP, 200, 1)
for vif, name in enumerate((sys.argv[1], "wire")):
    s.setsockopt(socket.IPPROTO_IP, 202, struct.pack("=HBBII4x", vif, 8, 1, 0, socket.if_nametoindex(name)))
s.setsockopt(socket.IPPROTO_IP, 204, socket.inet_aton(sys.argv[2]) + socket.inet_aton(sys.argv[3]) +
             struct.pack("=H32s2xIIIi", 0, bytes([0, 1]) + bytes(30), 0, 0, 0, 0))
print("ready", flush=True)
signal.pause()' "$1" "$2" "$3" >/tmp/router 3>&- &
	router=$!
	wait_until eval "has_line ready /tmp/router || ! kill -0 $router"
	has_line ready /tmp/router || skip "the kernel does not route multicast"
}

@test "masq: multicast packets keep their source address" {
	conf ptp # (the kernel itself does not change multicast from a bridge)
	add c1 one
	route_multicast "$(jq -r '.interfaces[0].name' /tmp/result.c1)" "$(address c1 0)" 239.1.1.1
	[ "$(packet one 239.1.1.1)" = "$(address c1 0)" ]
	[ "$(packet one 192.0.2.2)" = 192.0.2.1 ]
	kill $router
}

@test "masq: there is one element per address and one chain per network, with any backend" {
	for backend in '' nftables iptables; do
		conf bridge "{\"ipMasqBackend\":\"$backend\"}"
		add c1 one
		add c2 two
		[ "$(elements masq4)" = '["10.7.0.2","10.7.0.3"]' ]
		[ "$(networks)" = 2 ]
		[ "$(nft list table inet hawser | grep -c 'ip daddr 10.7.0.0/24 return')" = 1 ]
		del c1 one
		del c2 two
		rm -r /var/lib/cni/networks
	done
	conf bridge '{"ipMasqBackend":"pf"}'
	run call ADD c1 one "$(</tmp/conf)"
	fails_with 'unknown ipmasq backend "pf"'
	[ "$(jq .code <<<"$output")" = 7 ]
	# the comment of an element is a hash: the ruleset contains no names that the runtime has chosen
	conf bridge
	add c1 one
	nft list map inet hawser masq4 | grep -qE '10\.7\.0\.2 comment "[0-9a-f]{16}"'
	[ -z "$(nft list ruleset | grep -E 'c1|eth0|"net"')" ]
}

@test "masq: ADD takes over an address of another pod, whose DEL then keeps the element" {
	static='{"ipam":{"type":"static","addresses":[{"address":"10.7.0.9/24","gateway":"10.7.0.1"}],
		"routes":[{"dst":"0.0.0.0/0"}]}}'
	conf bridge "$static"
	add c1 one
	ip netns del one
	add c2 two
	[ "$(seen two outside 192.0.2.2 tcp)" = 192.0.2.1 ]
	call DEL c1 "" "$(</tmp/conf)"
	[ "$(elements masq4)" = '["10.7.0.9"]' ]
	[ "$(seen two outside 192.0.2.2 udp)" = 192.0.2.1 ]
	del c2 two
	[ "$(ours)" = "[]" ]
}

@test "masq: with overlapping networks, each pod uses the chain of its own network" {
	conf bridge '{"ipam":{"type":"host-local","subnet":"10.7.0.0/24","routes":[{"dst":"0.0.0.0/0"}]}}'
	add c1 one
	ip addr add 10.7.9.1/24 dev wire
	ip -n outside addr add 10.7.9.2/24 dev eth0
	[ "$(packet one 10.7.9.2)" = 10.7.9.1 ]
	cp /tmp/conf /tmp/narrow
	conf ptp '{"ipam":{"type":"host-local","subnet":"10.7.0.0/16","rangeStart":"10.7.77.77","routes":[{"dst":"0.0.0.0/0"}]},"name":"wide"}'
	add c2 two
	[ "$(networks)" = 2 ]
	[ "$(packet two 10.7.9.2)" = "$(address c2 0)" ]
	[ "$(packet two 192.0.2.2)" = 192.0.2.1 ]
	[ "$(packet one 10.7.9.2)" = 10.7.9.1 ]
	check_narrow() { plugin=$plugins/bridge CNI_COMMAND=CHECK CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth0 \
		"$plugins/bridge" <<<"$(jq -c --slurpfile prev /tmp/result.c1 '.prevResult = $prev[0]' /tmp/narrow)"; }
	check_narrow
	del c2 two
	[ "$(packet one 10.7.9.2)" = 10.7.9.1 ]
	check_narrow
}

@test "masq: one pod may have addresses of overlapping networks" {
	conf bridge '{"isGateway":false,"ipam":{"type":"static","addresses":[{"address":"10.7.0.5/24"},{"address":"10.7.1.5/16"},
		{"address":"10.7.0.6/24"},{"address":"fd07::5/64"},{"address":"fd07:0:0:1::5/48"}]}}'
	add c1 one
	[ "$(elements masq4)" = '["10.7.0.5","10.7.0.6","10.7.1.5"]' ]
	[ "$(networks)" = 4 ]
	check
	nft flush ruleset
	hawser-plugin repair
	check
	del c1 one
	[ "$(ours)" = "[]" ]
}

@test "masq: GC deletes the elements of invalid attachments" {
	conf bridge
	add c1 one
	add c2 two
	call GC "" "" "$(jq -c '."cni.dev/valid-attachments" = [{containerID:"c2",ifname:"eth0"}]' /tmp/conf)"
	[ "$(elements masq4)" = '["10.7.0.3"]' ]
}

@test "masq: forty concurrent first ADDs, then forty DELs, leave one copy of the rules and no elements" {
	conf ptp
	for i in {1..40}; do ip netns add "p$i"; done
	for i in {1..40}; do
		add "c$i" "p$i" &
		adds[i]=$!
	done
	for i in {1..40}; do wait "${adds[i]}" || { cat "/tmp/result.c$i"; false; }; done
	[ "$(elements masq4 | jq length)" = 40 ]
	[ "$(elements masq6 | jq length)" = 40 ]
	for i in {1..40}; do
		del "c$i" "p$i" &
		dels[i]=$!
	done
	for i in {1..40}; do wait "${dels[i]}"; done
	[ "$(ours)" = "[]" ]
	[ "$(nft list chain inet hawser guard | grep -c drop)" = 1 ]
}

@test "masq: DEL works with container IDs longer than a chain name" {
	conf bridge '{"macspoofchk":true}'
	for length in 200 240 250 255 400 1000; do
		id=$(printf 'c%.0s' $(seq $length))
		plugin=$plugins/bridge call DEL "$id" "" "$(</tmp/conf)"
	done
}

@test "masq: DEL without CAP_NET_ADMIN fails, and can be repeated with it" {
	conf bridge
	add c1 one
	CNI_COMMAND=DEL CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth0 run -1 setpriv \
		--bounding-set -net_admin --inh-caps -net_admin "$plugins/bridge" </tmp/conf
	fails_with "*Operation not permitted"
	[ "$(elements masq4)" = '["10.7.0.2"]' ]
	del c1 one
	[ "$(ours)" = "[]" ]
}

# upstream_rules: count the iptables rules of upstream's plugin, IPv4 and IPv6
upstream_rules() {
	iptables-save -t nat | grep -c 'CNI-' || true
	ip6tables-save -t nat | grep -c 'CNI-' || true
}

@test "masq: DEL removes upstream's iptables rules of the pod, and keeps those of other pods" {
	need iptables ip6tables
	need_go_plugins bridge host-local
	conf bridge '{"cniVersion":"1.0.0"}'
	plugin=$GO_PLUGINS/bridge add c2 two
	before=$(upstream_rules)
	iptables -t nat -A POSTROUTING -s 10.99.0.0/16 -j ACCEPT
	plugin=$GO_PLUGINS/bridge add c1 one
	[ "$(upstream_rules)" != "$before" ]
	del c1 one
	[ "$(upstream_rules)" = "$before" ]
	iptables -t nat -C POSTROUTING -s 10.99.0.0/16 -j ACCEPT
	plugin=$GO_PLUGINS/bridge del c2 two
	[ "$(upstream_rules)" = $'0\n0' ]
}

@test "masq: DEL removes upstream's nftables rules of the pod, and keeps those of other pods" {
	conf bridge
	nft -f - <<-END
		table inet cni_plugins_masquerade {
			chain masq_checks {
				ip saddr == 10.7.0.2 ip daddr != 10.7.0.0/24 masquerade comment "$(printf net | sha512sum | cut -c -16)-$(printf eth0:c1 | sha512sum | cut -c -16), net: net, if: eth0, id: c1"
				ip saddr == 10.7.0.3 ip daddr != 10.7.0.0/24 masquerade comment "$(printf net | sha512sum | cut -c -16)-$(printf eth0:c2 | sha512sum | cut -c -16), net: net, if: eth0, id: c2"
			}
			chain postrouting { type nat hook postrouting priority srcnat; goto masq_checks; }
		}
	END
	call DEL c1 "" "$(</tmp/conf)"
	[ -z "$(nft list ruleset | grep 'id: c1')" ]
	nft list ruleset | grep -q 'id: c2'
	call DEL c1 "" "$(</tmp/conf)"
	call DEL c2 "" "$(</tmp/conf)"
	[ -z "$(nft list ruleset | grep 'id: c2')" ]
}

# requests CONTAINER NETNS: add a pod, and print the number of netlink requests that the ADD sends
requests() {
	CNI_COMMAND=ADD CNI_CONTAINERID=$1 CNI_NETNS=/run/netns/$2 CNI_IFNAME=eth0 ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 \
		strace -f -e trace=sendto,sendmsg -o /tmp/trace "$plugin" </tmp/conf >"/tmp/result.$1"
	grep -c AF_NETLINK /tmp/trace
}

@test "masq: an ADD with addresses of both families sends 12 netlink requests, and 14 beside iptables" {
	need strace iptables ip6tables
	for type in bridge ptp; do
		conf $type
		add c1 one
		[ "$(requests c2 two)" = 12 ]
		iptables -t nat -A POSTROUTING -d 10.99.0.0/16 -j ACCEPT
		ip6tables -t nat -A POSTROUTING -d fd99::/64 -j ACCEPT
		for i in 3 4; do ip netns add p$i; done
		add c3 p3
		[ "$(requests c4 p4)" = 14 ]
		for i in 3 4; do ip netns del p$i; done
		for i in 1 2 3 4; do del c$i ""; done
		nft flush ruleset
	done
}
