#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The bandwidth plugin: the queues that ADD creates, CHECK, and DEL in all states. bench/ measures how exact
# the rates are; test/differential has the table of configurations.
# shellcheck disable=SC2030,SC2031 # each test is its own shell
bats_require_minimum_version 1.5.0
load ../lib

plugins=$HAWSER_BUILD/cni
previous='{"cniVersion":"1.0.0","interfaces":[{"name":"br0","mac":"02:00:00:00:00:09"},
	{"name":"host0","mac":"02:00:00:00:00:02"},
	{"name":"eth0","mac":"02:00:00:00:00:01","sandbox":"/run/netns/one"}],
	"ips":[{"interface":2,"address":"10.1.2.3/24"}]}'

setup() {
	need ip tc jq
	ip netns add one
	pair host0 eth0
}

pair() { # HOST POD: a veth pair between the host and the pod
	ip link add "$1" address 02:00:00:00:00:02 mtu 1450 type veth \
		peer name "$2" address 02:00:00:00:00:01 mtu 1450 netns one
	ip link set "$1" up
	ip -n one link set "$2" up
}

teardown() {
	local link
	for link in $(ip -j link | jq -r '.[].ifname | select(. != "lo")'); do
		ip link del "$link" 2>/dev/null || true # may already be deleted with its peer
	done
	ip netns del one 2>/dev/null || true
	rm -rf /run/hawser
}

# ---- helpers -------------------------------------------------------------------------

in='"ingressRate":8000000,"ingressBurst":800000'
out='"egressRate":16000000,"egressBurst":1600000'

# call VERB KEYS: call the plugin; KEYS are JSON members
call() {
	CNI_COMMAND=$1 CNI_CONTAINERID=${ID:-c1} CNI_NETNS=${NETNS-/run/netns/one} CNI_IFNAME=${IFNAME:-eth0} \
		CNI_PATH=$plugins "${plugin:-$plugins/bandwidth}" <<<"{\"cniVersion\":\"${VERSION:-1.0.0}\",
		\"name\":\"${NET:-net}\",\"type\":\"bandwidth\"${2:+,$2}${PREVIOUS-,\"prevResult\":$previous}}"
}
upstream() { plugin=$GO_PLUGINS/bandwidth call "$@"; }

# queue LINK [-n NETNS]: print the root qdisc of LINK
queue() {
	tc "${@:2}" -j qdisc show dev "$1" root | jq -r '.[0] | if .kind == "tbf" then
		"tbf \(.handle) \(.options.rate) \(.options.burst) \(.options.lat)" else .kind end'
}
has_ingress() { tc qdisc show dev host0 | grep -q ingress; }
# nothing_left: assert that all attachments were deleted completely
nothing_left() {
	[ "$(queue host0)" = noqueue ]
	[ "$(queue eth0 -n one)" = noqueue ]
	run ! has_ingress
	[ -z "$(ip -o link show type ifb)" ]
	[ -z "$(find /run/hawser/attachments -type f)" ]
}
# drifts KEYS MESSAGE COMMAND...: assert that CHECK succeeds before COMMAND and fails with MESSAGE after it
drifts() {
	local keys=$1 message=$2
	call CHECK "$keys"
	"${@:3}"
	run call CHECK "$keys"
	fails_with 999 "$message"
}

# ask ADDRESS [BYTES]: send a datagram from the pod to the host and back
ask() {
	rm -f /tmp/server
	timeout 60 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7777))
print("ready", flush=True)
data, peer = s.recvfrom(2000)
s.sendto(data, peer)' "$1" >/tmp/server &
	wait_until has_line ready /tmp/server
	ip netns exec one timeout 60 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"x" * int(sys.argv[2]), (sys.argv[1], 7777))
s.recv(2000)' "$1" "${2:-100}"
	wait $!
}

# ---- ADD and DEL -------------------------------------------------------------------------

@test "bandwidth: ADD limits both directions and returns prevResult" {
	[ "$(call ADD "$in,$out" | jq -S .)" = "$(jq -S . <<<"$previous")" ]
	[ "$(queue host0)" = "tbf 6877: 1000000 100000 25000" ]
	[ "$(queue eth0 -n one)" = "tbf 6877: 2000000 200000 25000" ]
	call CHECK "$in,$out"
	call DEL "$in,$out"
	nothing_left
}

@test "bandwidth: a limit for one direction changes one link only" {
	call ADD "$in"
	[ "$(queue eth0 -n one)" = noqueue ]
	call CHECK "$in"
	call DEL "$in"
	call ADD "$out"
	[ "$(queue host0)" = noqueue ]
	call CHECK "$out"
	call DEL "$out"
	nothing_left
}

@test "bandwidth: without a limit ADD returns prevResult and changes nothing" {
	for keys in '' '"ingressRate":0,"ingressBurst":0' '"runtimeConfig":{"bandwidth":{}}' '"runtimeConfig":{"bandwidth":null}'; do
		[ "$(call ADD "$keys" | jq -S .)" = "$(jq -S . <<<"$previous")" ]
		call CHECK "$keys"
		[ "$(queue host0) $(queue eth0 -n one)" = "noqueue noqueue" ]
		call DEL "$keys"
	done
	nothing_left
}

@test "bandwidth: the queue on the host is the same as in upstream" {
	need_go_plugins bandwidth
	for keys in "$in" '"ingressRate":123456789,"ingressBurst":1234567' '"ingressRate":80000000000,"ingressBurst":8000000000'; do
		tc qdisc del dev host0 root || true
		upstream ADD "$keys"
		theirs=$(tc -j qdisc show dev host0 root | jq -c '.[0].options')
		call CHECK "$keys" # without a record
		tc qdisc del dev host0 root
		call ADD "$keys"
		[ "$(tc -j qdisc show dev host0 root | jq -c '.[0].options')" = "$theirs" ]
		upstream CHECK "$keys"
		call DEL "$keys"
	done
}

@test "bandwidth: the runtime's limits for a direction override the configuration" {
	keys="$in,$out"',"runtimeConfig":{"bandwidth":{"ingressRate":24000000,"ingressBurst":2400000}}'
	call ADD "$keys"
	[ "$(queue host0)" = "tbf 6877: 3000000 300000 25000" ]
	[ "$(queue eth0 -n one)" = "tbf 6877: 2000000 200000 25000" ]
	call CHECK "$keys"
	call DEL "$keys"
	nothing_left
	# limits for both directions, subnets and egress also override the configuration; limits of 0, which
	# runtimes write for "no limit", do not
	keys="$in,$out"',"runtimeConfig":{"bandwidth":{"ingressRate":24000000,"ingressBurst":2400000,"egressRate":32000000,
		"egressBurst":3200000}}'
	call ADD "$keys"
	[ "$(queue host0)" = "tbf 6877: 3000000 300000 25000" ]
	[ "$(queue eth0 -n one)" = "tbf 6877: 4000000 400000 25000" ]
	call DEL "$keys"
	keys="$in,$out"',"runtimeConfig":{"bandwidth":{"ingressRate":0,"ingressBurst":0,"egressRate":0,"egressBurst":0}}'
	call ADD "$keys"
	[ "$(queue host0)" = "tbf 6877: 1000000 100000 25000" ]
	[ "$(queue eth0 -n one)" = "tbf 6877: 2000000 200000 25000" ]
	call DEL "$keys"
	keys="$in,$out"',"egress":"ifb","unshapedSubnets":["10.0.0.0/8"],
		"runtimeConfig":{"bandwidth":{"egress":"pod","shapedSubnets":["10.1.0.0/16"]}}'
	call ADD "$keys"
	[ "$(queue eth0 -n one)" = htb ]
	[ -z "$(ip -o link show type ifb)" ]
	[ "$(tc -n one -j filter show dev eth0 | jq -c '[.[].options.match // empty | .value]')" = '["a010000"]' ]
	call CHECK "$keys"
	call DEL "$keys"
	nothing_left
}

@test "bandwidth: with egress ifb an ifb on the host limits the pod's traffic, as in upstream" {
	need_go_plugins bandwidth
	redirections() { tc filter show dev host0 ingress | grep -c "mirred (Egress Redirect to device $1) stolen"; }
	keys="$out"',"egress":"ifb"'
	call ADD "$keys" >/tmp/result
	[ "$(queue eth0 -n one)" = noqueue ]
	ifb=$(jq -r '.interfaces[3].name' /tmp/result)
	[ "$ifb" = "bwp$(printf netc1 | sha512sum | cut -c 1-12)" ]
	[ "$(ip -j link show "$ifb" | jq -r '.[] | .address, .mtu')" = "$(jq -r '.interfaces[3].mac' /tmp/result)"$'\n1450' ]
	[ "$(queue "$ifb")" = "tbf 6877: 2000000 200000 25000" ]
	[ "$(redirections "$ifb")" = 1 ]
	PREVIOUS=,\"prevResult\":$(</tmp/result) call CHECK "$keys"
	PREVIOUS=,\"prevResult\":$(</tmp/result) upstream CHECK "$keys"
	call DEL "$keys"
	nothing_left
	call ADD '"runtimeConfig":{"bandwidth":{'"$keys}}"
	[ "$(redirections "$ifb")" = 1 ]
	call DEL
	nothing_left
}

@test "bandwidth: two interfaces of one pod have one ifb each" {
	pair host1 eth1
	keys="$out"',"egress":"ifb"'
	call ADD "$keys" >/dev/null
	other=${previous//eth0/eth1}
	other=${other//host0/host1}
	IFNAME=eth1 PREVIOUS=",\"prevResult\":$other" call ADD "$keys" >/dev/null
	[ "$(ip -o link show type ifb | wc -l)" = 2 ]
	IFNAME=eth1 PREVIOUS=",\"prevResult\":$other" call CHECK "$keys"
	# a repeated DEL of one interface leaves the ifb of the other
	for _ in 1 2; do
		IFNAME=eth1 call DEL "$keys"
		[ "$(ip -o link show type ifb | wc -l)" = 1 ]
		call CHECK "$keys"
	done
	IFNAME=eth1 PREVIOUS=",\"prevResult\":$other" call ADD "$keys" >/dev/null
	for _ in 1 2; do
		call DEL "$keys"
		[ "$(ip -o link show type ifb | wc -l)" = 1 ]
		IFNAME=eth1 PREVIOUS=",\"prevResult\":$other" call CHECK "$keys"
	done
	IFNAME=eth1 call DEL "$keys"
	nothing_left
	# without its record, too, DEL deletes the ifb
	call ADD "$keys" >/dev/null
	rm -r /run/hawser
	call DEL "$keys"
	[ -z "$(ip -o link show type ifb)" ]
}

@test "bandwidth: the uplink of a macvlan and other shared links of the host are never limited" {
	ip -n one link del eth0
	ip link add uplink0 type veth peer name wire0
	ip link add macvlan0 link uplink0 type macvlan
	ip link set macvlan0 netns one name eth0
	ip -n one link set eth0 up
	ip tuntap add tap0 mode tap
	for name in uplink0 wire0 tap0; do
		[ "$name" != tap0 ] || { ip -n one link del eth0 && ip link add eth0 link tap0 netns one type macvlan; }
		PREVIOUS=",\"prevResult\":${previous//host0/$name}"
		before=$(queue "$name")
		for keys in "$in" "$in,$out" "$out"',"egress":"ifb"'; do
			run call ADD "$keys"
			fails_with 999 "container interface eth0 has no veth peer: interface \"eth0\" was not a veth interface"
		done
		[ "$(queue "$name")" = "$before" ]
		[ -z "$(tc filter show dev "$name" ingress)" ]
	done
	[ -z "$(find /run/hawser/attachments -type f)" ]
	ip link del uplink0
	ip link del tap0
}

@test "bandwidth: egress works without a veth peer, and ingress works on a tap that prevResult names" {
	ip -n one link set eth0 name veth
	ip -n one link add eth0 link veth type macvlan
	ip -n one link set eth0 up
	call ADD "$out"
	[ "$(queue eth0 -n one)" = "tbf 6877: 2000000 200000 25000" ]
	call CHECK "$out"
	call DEL "$out"
	ip tuntap add tap0 mode tap
	PREVIOUS=",\"prevResult\":${previous//host0/tap0}"
	call ADD "$in"
	[ "$(queue tap0)" = "tbf 6877: 1000000 100000 25000" ]
	call CHECK "$in"
	drifts "$in" "interface tap0 has no rate limit set by hawser*" tc qdisc del dev tap0 root
	call DEL "$in"
	PREVIOUS=",\"prevResult\":${previous//host0/nosuch0}"
	run call ADD "$in"
	fails_with 999 "container interface eth0 has no veth peer: interface \"eth0\" was not a veth interface"
	run call ADD "$out"',"egress":"ifb"'
	fails_with 999 "container interface eth0 has no veth peer: *"
}

@test "bandwidth: a burst smaller than a packet is raised to one packet" {
	keys='"ingressRate":8000000,"ingressBurst":8'
	call ADD "$keys"
	ip addr add 10.1.2.1/24 dev host0
	ip -n one addr add 10.1.2.3/24 dev eth0
	ask 10.1.2.1 1400
	call CHECK "$keys"
}

@test "bandwidth: works in every spec version that has prevResult" {
	old='{"interfaces":[{"name":"host0"},{"name":"eth0","sandbox":"/run/netns/one"}],
		"ips":[{"version":"4","interface":1,"address":"10.1.2.3/24"}]}'
	for version in 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0; do
		VERSION=$version PREVIOUS=",\"prevResult\":$old" call ADD "$in,$out" >/tmp/result
		[ "$(jq -r .cniVersion /tmp/result)" = "$version" ]
		VERSION=$version call DEL "$in,$out"
		nothing_left
	done
	VERSION=0.2.0 PREVIOUS="" run call ADD "$in"
	fails_with 1 "*incompatible CNI versions*"
}

@test "bandwidth: invalid configurations are rejected, and nothing is changed" {
	run call ADD '"ingressRate":8'
	fails_with 7 "if rate is set, burst must also be set"
	run call ADD '"egressBurst":8'
	fails_with 7 "if burst is set, rate must also be set"
	run call ADD '"egressRate":8,"egressBurst":34359738360'
	fails_with 7 "burst cannot be more than 4GB"
	run call ADD '"runtimeConfig":{"bandwidth":{"ingressRate":8}}'
	fails_with 7 "if rate is set, burst must also be set"
	run call ADD '"ingressRate":-8,"ingressBurst":8'
	fails_with 7 "*ingressRate*"
	run call ADD "$in"',"unshapedSubnets":["10.0.0.0/8"],"shapedSubnets":["11.0.0.0/8"]'
	fails_with 7 "unshapedSubnets and shapedSubnets cannot be both specified, one of them should be discarded"
	run call ADD "$in"',"shapedSubnets":["10.0.0.0/33"]'
	fails_with 7 'bad subnet "10.0.0.0/33" provided, details *'
	run call ADD "$in"',"shapedSubnets":'"$(seq -f '"10.0.%.0f.0/24"' 201 | jq -s .)"
	fails_with 7 'too many subnets: got 201, at most 200'
	run call ADD "$in"',"egress":"police"'
	fails_with 7 'invalid egress "police": want "pod" or "ifb"'
	PREVIOUS="" run call ADD "$in"
	fails_with 999 "must be called as chained plugin"
	PREVIOUS="" run call ADD
	fails_with 999 "must be called as chained plugin"
	PREVIOUS="" run call CHECK "$in"
	fails_with 999 "must be called as a chained plugin"
	PREVIOUS=',"prevResult":{"cniVersion":"1.0.0"}' run call ADD "$in"
	fails_with 999 "no interfaces provided"
	PREVIOUS=",\"prevResult\":${previous//host0/other}" run call ADD "$in"
	fails_with 999 "no veth peer of container interface found in host ns"
	NETNS=/run/netns/none run call ADD "$in"
	fails_with 999 'failed to open netns "/run/netns/none": *'
	ip link set host0 netns one
	run call ADD "$in"
	fails_with 999 "veth peer with index * is not in host ns"
	ip -n one link set host0 netns $$
	ip link set host0 up
	nothing_left
}

@test "bandwidth: a queue of another program is not changed" {
	tc qdisc add dev host0 root handle 1: htb
	run call ADD "$in,$out"
	fails_with 999 "limit the rate of host0: *"
	[ "$(queue eth0 -n one)" = noqueue ]
	tc qdisc del dev host0 root
	tc qdisc add dev host0 ingress
	run call ADD "$out"',"egress":"ifb"'
	fails_with 999 "interface host0 already has an ingress qdisc"
	has_ingress
	tc qdisc del dev host0 ingress
	call ADD "$in"
	tc qdisc replace dev host0 root handle 1: htb
	call DEL "$in"
	[ "$(queue host0)" = htb ]
	tc qdisc del dev host0 root
	nothing_left
}

@test "bandwidth: ADD and DEL of another network leave the limits of the first network alone" {
	both="$in,$out"
	by_ifb=$both',"egress":"ifb"'
	# other KEYS STATUS: an ADD of the other network has this exit status; neither it nor the DEL changes the limits
	other() {
		NET=other run "-$2" call ADD "$1"
		[ "$2" = 0 ] || fails_with 999 "interface * already has a*"
		call CHECK "$keys"
		for _ in 1 2; do
			NET=other call DEL "$1"
			call CHECK "$keys"
		done
	}
	keys=$both
	call ADD "$keys" >/dev/null
	other "$in" 1
	other "$out" 1
	other "$by_ifb" 1
	other "$out"',"egress":"ifb"' 0
	call DEL "$keys"
	nothing_left
	keys=$by_ifb
	call ADD "$keys" >/dev/null
	other "$both" 1
	other "$out"',"egress":"ifb"' 1
	other "$out" 0
	call DEL "$keys"
	nothing_left
}

@test "bandwidth: DEL succeeds twice, without a namespace, and after the links were deleted" {
	for keys in "$in,$out" "$in,$out"',"egress":"ifb"'; do
		call ADD "$keys" >/dev/null
		call DEL "$keys"
		call DEL "$keys"
		nothing_left
		call ADD "$keys" >/dev/null
		NETNS="" call DEL "$keys"
		[ "$(queue host0)" = noqueue ]
		tc -n one qdisc del dev eth0 root || true # DEL could not reach the namespace
		nothing_left
		call ADD "$keys" >/dev/null
		ip link del host0
		call DEL "$keys"
		pair host0 eth0
		nothing_left
		call ADD "$keys" >/dev/null
		ip netns del one
		call DEL "$keys"
		ip netns add one
		ip link del host0 2>/dev/null || true
		pair host0 eth0
		nothing_left
	done
}

@test "bandwidth: DEL removes the ifb of upstream's plugin, and upstream's DEL removes ours" {
	need_go_plugins bandwidth
	upstream ADD "$in,$out" >/tmp/result
	PREVIOUS=,\"prevResult\":$(</tmp/result) call CHECK "$in,$out"
	call DEL "$in,$out"
	[ -z "$(ip -o link show type ifb)" ]
	ip link del host0
	pair host0 eth0
	call ADD "$in,$out"',"egress":"ifb"'
	upstream DEL "$in,$out"
	[ -z "$(ip -o link show type ifb)" ]
	call DEL "$in,$out"
	nothing_left
}

@test "bandwidth: DEL does not delete a link that has the ifb's name but is not ours" {
	name=bwp$(printf netc1 | sha512sum | cut -c 1-12)
	ip link add "$name" type veth peer name other
	call DEL "$out"
	ip link show "$name"
	ip link del "$name"
	ip link add "$name" address 02:00:00:00:00:77 type ifb
	call ADD "$out"',"egress":"ifb"'
	call DEL
	ip link del "$name"
	nothing_left
}

# ---- CHECK, GC, STATUS ---------------------------------------------------------------------

@test "bandwidth: CHECK finds a removed or changed queue" {
	change() { tc "${@:2}" qdisc change dev "$1" root handle 6877: tbf rate "$rate" burst "$burst" limit "$limit"; }
	call ADD "$in,$out"
	rate=8mbit burst=100000 limit=125000
	change host0
	call CHECK "$in,$out"
	rate=9mbit drifts "$in,$out" "Rate doesn't match: interface host0 is limited to 1125000 bytes/s, want 1000000" change host0
	change host0
	limit=5000 drifts "$in,$out" "Limit doesn't match: interface host0 queues up to 5000 bytes, want 125000" change host0
	change host0
	burst=90000 drifts "$in,$out" "Buffer doesn't match: interface host0 *" change host0
	change host0
	drifts "$in,$out" "interface host0 has no rate limit set by hawser: root qdisc is noqueue" tc qdisc del dev host0 root
	call DEL "$in,$out"
	call ADD "$in,$out"
	drifts "$in,$out" "interface eth0 has no rate limit set by hawser: root qdisc is noqueue" tc -n one qdisc del dev eth0 root
	call DEL "$in,$out"
	nothing_left
}

@test "bandwidth: CHECK finds an ifb that is missing, down or without limit, and a missing redirection" {
	keys="$in,$out"',"egress":"ifb"'
	call ADD "$keys" >/tmp/result
	ifb=$(jq -r '.interfaces[3].name' /tmp/result)
	drifts "$keys" "ifb device $ifb is down" ip link set "$ifb" down
	ip link set "$ifb" up
	drifts "$keys" "packets received on host0 are not redirected to $ifb" tc qdisc del dev host0 ingress
	call DEL "$keys"
	call ADD "$keys" >/tmp/result
	drifts "$keys" "interface $ifb has no rate limit set by hawser*" tc qdisc del dev "$ifb" root
	ip link del "$ifb"
	run call CHECK "$keys"
	fails_with 999 "get ifb device: $ifb is missing"
	call DEL "$keys"
	nothing_left
}

@test "bandwidth: GC deletes exactly the attachments that are no longer valid" {
	export VERSION=1.1.0
	call ADD "$in,$out"',"egress":"ifb"' >/dev/null
	gc() { PREVIOUS="" call GC "$in,$out,\"cni.dev/valid-attachments\":[$1]"; }
	gc '{"containerID":"c1","ifname":"eth0"}'
	call CHECK "$in,$out"',"egress":"ifb"'
	gc ''
	nothing_left
	call ADD "$in,$out" >/dev/null
	gc ''
	nothing_left
}

@test "bandwidth: STATUS rejects the configurations that ADD rejects" {
	export VERSION=1.1.0 PREVIOUS=""
	call STATUS "$in,$out"
	run call STATUS '"ingressRate":8'
	fails_with 7 "if rate is set, burst must also be set"
}

# ---- subnets ---------------------------------------------------------------------------------

# sent LINK [-n NETNS]: print how many bytes the class for limited traffic has sent on LINK
sent() { tc "${@:2}" -s class show dev "$1" | awk '/^class htb 6877:1 /{ours = 1} ours && /Sent/ {print $2; exit}'; }

# reach ADDRESS...: send a datagram to each address and back; print 1 for each direction that was limited, else 0
reach() {
	local address there back

	for address; do
		there=$(sent eth0 -n one) back=$(sent host0)
		ask "$address" 1000
		there=$(($(sent eth0 -n one) - there)) back=$(($(sent host0) - back))
		# packets that the kernel sends by itself have fewer than 1000 bytes
		echo "$address $((there > 1000)) $((back > 1000))"
	done
}

addresses() {
	ip addr add 10.1.2.1/24 dev host0
	ip addr add 10.1.3.1/24 dev host0
	ip addr add fd01::1/64 dev host0 nodad
	ip addr add fd02::1/64 dev host0 nodad
	ip -n one addr add 10.1.2.3/24 dev eth0
	ip -n one addr add fd01::3/64 dev eth0 nodad
	ip -n one route add default via 10.1.2.1
	ip -n one route add default via fd01::1
	reach 10.1.2.1 10.1.3.1 fd01::1 fd02::1 >/dev/null # resolve the neighbours first
}

@test "bandwidth: unshapedSubnets excludes traffic to and from these subnets" {
	keys="$in,$out"',"unshapedSubnets":["10.1.2.77/24","fd01::/64","10.1.2.0/24"]'
	call ADD "$keys"
	call CHECK "$keys"
	addresses
	[ "$(reach 10.1.2.1 10.1.3.1 fd01::1 fd02::1)" = "10.1.2.1 0 0
10.1.3.1 1 1
fd01::1 0 0
fd02::1 1 1" ]
	call DEL "$keys"
	nothing_left
}

@test "bandwidth: shapedSubnets limits only traffic to and from these subnets" {
	keys="$in,$out"',"runtimeConfig":{"bandwidth":{"shapedSubnets":["10.1.3.0/24","fd02::/64"]}},"unshapedSubnets":["::/0"]'
	call ADD "$keys"
	call CHECK "$keys"
	addresses
	[ "$(reach 10.1.2.1 10.1.3.1 fd01::1 fd02::1)" = "10.1.2.1 0 0
10.1.3.1 1 1
fd01::1 0 0
fd02::1 1 1" ]
	drifts "$keys" "interface host0 has no filter for subnet 10.1.3.0/24" tc filter del dev host0 parent 6877: protocol ip pref 16
	call DEL "$keys"
	nothing_left
}

@test "bandwidth: with unshapedSubnets, packets of 64 KB are not dropped at a low rate" {
	keys='"ingressRate":10000000,"ingressBurst":200000,"unshapedSubnets":["192.0.2.0/24"]'
	call ADD "$keys"
	ip addr add 10.1.2.1/24 dev host0
	ip -n one addr add 10.1.2.3/24 dev eth0
	rm -f /tmp/server
	ip netns exec one timeout 60 python3 -c '
import socket
with socket.create_server(("10.1.2.3", 7777)) as server:
    print("ready", flush=True)
    stream, got = server.accept()[0], 0
while (n := len(stream.recv(65536))):
    got += n
print(got)' >/tmp/server &
	wait_until has_line ready /tmp/server
	timeout 60 python3 -c '
import socket
socket.create_connection(("10.1.2.3", 7777)).sendall(bytes(1000000))'
	wait $!
	[ "$(tail -n 1 /tmp/server)" = 1000000 ]
}

@test "bandwidth: shapedSubnets works with an ifb" {
	keys="$out"',"egress":"ifb","shapedSubnets":["10.1.3.0/24"]'
	ifb=$(call ADD "$keys" | jq -r '.interfaces[3].name')
	call CHECK "$keys"
	ip addr add 10.1.2.1/24 dev host0
	ip addr add 10.1.3.1/24 dev host0
	ip -n one addr add 10.1.2.3/24 dev eth0
	ip -n one route add default via 10.1.2.1
	ask 10.1.2.1
	[ "$(sent "$ifb")" = 0 ]
	ask 10.1.3.1
	[ "$(sent "$ifb")" -gt 0 ]
	call DEL "$keys"
	nothing_left
}
