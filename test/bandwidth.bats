#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# bandwidth: the queues that an ADD makes, what CHECK finds, DEL after anything. How exact the rates are
# is measured in bench/; the wide table of configurations is in test/differential.
# shellcheck disable=SC2030,SC2031 # a test is a shell of its own
bats_require_minimum_version 1.5.0
load lib

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

pair() { # HOST POD: a pair of links between the host and the pod
	ip link add "$1" address 02:00:00:00:00:02 mtu 1450 type veth \
		peer name "$2" address 02:00:00:00:00:01 mtu 1450 netns one
	ip link set "$1" up
	ip -n one link set "$2" up
}

teardown() {
	local link
	for link in $(ip -j link | jq -r '.[].ifname | select(. != "lo")'); do
		ip link del "$link" 2>/dev/null || true # the other end may have taken it along
	done
	ip netns del one 2>/dev/null || true
	rm -rf /run/hawser
}

# ---- words ---------------------------------------------------------------------------

in='"ingressRate":8000000,"ingressBurst":800000'
out='"egressRate":16000000,"egressBurst":1600000'

# call VERB KEYS: the plugin; KEYS are JSON members
call() {
	CNI_COMMAND=$1 CNI_CONTAINERID=${ID:-c1} CNI_NETNS=${NETNS-/run/netns/one} CNI_IFNAME=${IFNAME:-eth0} \
		CNI_PATH=$plugins "${plugin:-$plugins/bandwidth}" <<<"{\"cniVersion\":\"${VERSION:-1.0.0}\",
		\"name\":\"net\",\"type\":\"bandwidth\"${2:+,$2}${PREVIOUS-,\"prevResult\":$previous}}"
}
go() { plugin=$GO_PLUGINS/bandwidth call "$@"; }

# queue LINK [-n NETNS]: what is at its root
queue() {
	tc "${@:2}" -j qdisc show dev "$1" root | jq -r '.[0] | if .kind == "tbf" then
		"tbf \(.handle) \(.options.rate) \(.options.burst) \(.options.lat)" else .kind end'
}
has_hook() { tc qdisc show dev host0 | grep -q ingress; }
# nothing_left: no attachment has left anything
nothing_left() {
	[ "$(queue host0)" = noqueue ]
	[ "$(queue eth0 -n one)" = noqueue ]
	run ! has_hook
	[ -z "$(ip -o link show type ifb)" ]
	[ -z "$(find /run/hawser/attachments -type f)" ]
}
# drifts KEYS MESSAGE COMMAND...: CHECK finds what COMMAND did
drifts() {
	local keys=$1 message=$2
	call CHECK "$keys"
	"${@:3}"
	run call CHECK "$keys"
	fails_with 999 "$message"
}

# ask ADDRESS [BYTES]: a datagram from the pod to the host and back
ask() {
	rm -f /tmp/server
	timeout 10 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7777))
print("ready", flush=True)
data, peer = s.recvfrom(2000)
s.sendto(data, peer)' "$1" >/tmp/server &
	until grep -qs ready /tmp/server; do sleep 0.01; done
	ip netns exec one timeout 10 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"x" * int(sys.argv[2]), (sys.argv[1], 7777))
s.recv(2000)' "$1" "${2:-100}"
	wait $!
}

# ---- ADD and DEL -------------------------------------------------------------------------

@test "bandwidth: ADD limits both directions, each where it leaves, and hands the result on" {
	[ "$(call ADD "$in,$out" | jq -S .)" = "$(jq -S . <<<"$previous")" ]
	[ "$(queue host0)" = "tbf 6877: 1000000 100000 25000" ]
	[ "$(queue eth0 -n one)" = "tbf 6877: 2000000 200000 25000" ]
	call CHECK "$in,$out"
	call DEL "$in,$out"
	nothing_left
}

@test "bandwidth: one direction alone touches one link alone" {
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

@test "bandwidth: without a limit the result is handed on and nothing is made" {
	for keys in '' '"ingressRate":0,"ingressBurst":0' '"runtimeConfig":{"bandwidth":{}}' '"runtimeConfig":{"bandwidth":null}'; do
		[ "$(call ADD "$keys" | jq -S .)" = "$(jq -S . <<<"$previous")" ]
		call CHECK "$keys"
		[ "$(queue host0) $(queue eth0 -n one)" = "noqueue noqueue" ]
		call DEL "$keys"
	done
	nothing_left
}

@test "bandwidth: the queue on the host is the one that Go's makes" {
	need_go_plugins bandwidth
	for keys in "$in" '"ingressRate":123456789,"ingressBurst":1234567' '"ingressRate":80000000000,"ingressBurst":8000000000'; do
		tc qdisc del dev host0 root || true
		go ADD "$keys"
		theirs=$(tc -j qdisc show dev host0 root | jq -c '.[0].options')
		call CHECK "$keys" # of an attachment that it knows nothing of
		tc qdisc del dev host0 root
		call ADD "$keys"
		[ "$(tc -j qdisc show dev host0 root | jq -c '.[0].options')" = "$theirs" ]
		go CHECK "$keys"
		call DEL "$keys"
	done
}

@test "bandwidth: what the runtime asks for a direction counts before the configuration" {
	keys="$in,$out"',"runtimeConfig":{"bandwidth":{"ingressRate":24000000,"ingressBurst":2400000}}'
	call ADD "$keys"
	[ "$(queue host0)" = "tbf 6877: 3000000 300000 25000" ]
	[ "$(queue eth0 -n one)" = "tbf 6877: 2000000 200000 25000" ]
	call CHECK "$keys"
	call DEL "$keys"
	nothing_left
	# both directions; a 0 is what runtimes write for none; subnets, and where
	keys="$in,$out"',"runtimeConfig":{"bandwidth":{"ingressRate":24000000,"ingressBurst":2400000,"egressRate":32000000,
		"egressBurst":3200000}}'
	call ADD "$keys"
	[ "$(queue host0)" = "tbf 6877: 3000000 300000 25000" ]
	[ "$(queue eth0 -n one)" = "tbf 6877: 4000000 400000 25000" ]
	keys="$in,$out"',"runtimeConfig":{"bandwidth":{"ingressRate":0,"ingressBurst":0,"egressRate":0,"egressBurst":0}}'
	call ADD "$keys"
	[ "$(queue host0)" = "tbf 6877: 1000000 100000 25000" ]
	[ "$(queue eth0 -n one)" = "tbf 6877: 2000000 200000 25000" ]
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

@test "bandwidth: with egress ifb what the pod sends is limited on the host, as Go's does it" {
	need_go_plugins bandwidth
	kind() { tc filter show dev host0 ingress | grep -c "mirred (Egress Redirect to device $1) stolen"; }
	keys="$out"',"egress":"ifb"'
	call ADD "$keys" >/tmp/result
	[ "$(queue eth0 -n one)" = noqueue ]
	ifb=$(jq -r '.interfaces[3].name' /tmp/result)
	[ "$ifb" = "bwp$(printf netc1 | sha512sum | cut -c 1-12)" ]
	[ "$(ip -j link show "$ifb" | jq -r '.[] | .address, .mtu')" = "$(jq -r '.interfaces[3].mac' /tmp/result)"$'\n1450' ]
	[ "$(queue "$ifb")" = "tbf 6877: 2000000 200000 25000" ]
	[ "$(kind "$ifb")" = 1 ]
	PREVIOUS=,\"prevResult\":$(</tmp/result) call CHECK "$keys"
	PREVIOUS=,\"prevResult\":$(</tmp/result) go CHECK "$keys"
	call DEL "$keys"
	nothing_left
	call ADD '"runtimeConfig":{"bandwidth":{'"$keys}}"
	[ "$(kind "$ifb")" = 1 ]
	call DEL
	nothing_left
}

@test "bandwidth: two interfaces of one pod have an ifb each" {
	pair host1 eth1
	keys="$out"',"egress":"ifb"'
	call ADD "$keys" >/dev/null
	other=${previous//eth0/eth1}
	other=${other//host0/host1}
	IFNAME=eth1 PREVIOUS=",\"prevResult\":$other" call ADD "$keys" >/dev/null
	[ "$(ip -o link show type ifb | wc -l)" = 2 ]
	IFNAME=eth1 PREVIOUS=",\"prevResult\":$other" call CHECK "$keys"
	call DEL "$keys"
	[ "$(ip -o link show type ifb | wc -l)" = 1 ]
	IFNAME=eth1 PREVIOUS=",\"prevResult\":$other" call CHECK "$keys"
	IFNAME=eth1 call DEL "$keys"
	nothing_left
}

@test "bandwidth: an interface without another end can send limited; on the host any link that is named will do" {
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
	drifts "$in" "interface tap0 has no rate limit of hawser*" tc qdisc del dev tap0 root
	call DEL "$in"
	PREVIOUS=",\"prevResult\":${previous//host0/nosuch0}"
	run call ADD "$in"
	fails_with 999 "container interface eth0 has no veth peer: interface \"eth0\" was not a veth interface"
	run call ADD "$out"',"egress":"ifb"'
	fails_with 999 "container interface eth0 has no veth peer: *"
}

@test "bandwidth: a burst that no packet fits into is one packet" {
	keys='"ingressRate":8000000,"ingressBurst":8'
	call ADD "$keys"
	ip addr add 10.1.2.1/24 dev host0
	ip -n one addr add 10.1.2.3/24 dev eth0
	ask 10.1.2.1 1400
	call CHECK "$keys"
}

@test "bandwidth: in every spec version that has previous results" {
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

@test "bandwidth: bad configurations are refused, and nothing is changed" {
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
	fails_with 7 '201 subnets, and 200 is the most'
	run call ADD "$in"',"egress":"police"'
	fails_with 7 'egress is "police", and can be "pod" or "ifb"'
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

@test "bandwidth: a queue of somebody else is left alone" {
	tc qdisc add dev host0 root handle 1: htb
	run call ADD "$in,$out"
	fails_with 999 "limit the rate of host0: *"
	[ "$(queue eth0 -n one)" = noqueue ]
	tc qdisc del dev host0 root
	tc qdisc add dev host0 ingress
	run call ADD "$out"',"egress":"ifb"'
	fails_with 999 "somebody else has filters on what comes in by host0: there is an ingress qdisc"
	has_hook
	tc qdisc del dev host0 ingress
	call ADD "$in"
	tc qdisc replace dev host0 root handle 1: htb
	call DEL "$in"
	[ "$(queue host0)" = htb ]
	tc qdisc del dev host0 root
	nothing_left
}

@test "bandwidth: ADD twice: the second takes the place of the first" {
	call ADD "$in,$out"
	call ADD "$in"',"egressRate":8000000,"egressBurst":800000,"egress":"ifb"' >/tmp/result
	[ "$(queue eth0 -n one)" = noqueue ]
	[ "$(queue "$(jq -r '.interfaces[3].name' /tmp/result)")" = "tbf 6877: 1000000 100000 25000" ]
	call ADD "$out"
	[ "$(queue host0)" = noqueue ]
	[ "$(queue eth0 -n one)" = "tbf 6877: 2000000 200000 25000" ]
	call DEL
	nothing_left
}

# what is limited, and how
limits() {
	local link
	echo "$(queue host0), $(queue eth0 -n one), $(has_hook && echo hook)"
	for link in $(ip -j link show type ifb | jq -r '.[].ifname'); do echo "$link $(queue "$link")"; done
	tc filter show dev host0
	tc -n one filter show dev eth0
}

@test "bandwidth: ADD again that fails leaves the limits of the first" {
	faster='"ingressRate":80000000,"ingressBurst":8000000,"egressRate":80000000,"egressBurst":8000000'
	for keys in "$in" "$out" "$in,$out" "$in,$out"',"unshapedSubnets":["10.0.0.0/8","fd00::/8"]'; do
		call ADD "$keys" >/dev/null
		before=$(limits)
		# seen before anything is changed: a hook, no such rate, no such link
		tc qdisc add dev host0 ingress
		run call ADD "$faster"',"egress":"ifb"'
		fails_with 999 "somebody else has filters *"
		tc qdisc del dev host0 ingress
		run call ADD '"ingressRate":1'
		fails_with 7 "if rate is set, burst must also be set"
		PREVIOUS=',"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"x"}]}' run call ADD "$faster"
		fails_with 999 "no veth peer *"
		[ "$(limits)" = "$before" ]
		call CHECK "$keys"
		call DEL "$keys"
		nothing_left
	done
	# seen in the middle: a queue of somebody else
	for first in "$out" "$out"',"shapedSubnets":["10.0.0.0/8"]' "$out"',"egress":"ifb"'; do
		call ADD "$first" >/dev/null
		tc qdisc add dev host0 root handle 1: htb
		before=$(limits)
		run call ADD "$faster"
		fails_with 999 "limit the rate of host0: *"
		[ "$(jq -r .details <<<"$output")" = null ]
		[ "$(limits)" = "$before" ]
		call CHECK "$first"
		tc qdisc del dev host0 root
		call DEL "$first"
		nothing_left
	done
	call ADD "$in,$out" >/dev/null
	tc qdisc replace dev host0 root handle 1: htb
	run call ADD "$faster"
	[[ "$(jq -r .details <<<"$output")" == "the limits before cannot be restored: limit the rate of host0: "* ]]
	[ "$(queue eth0 -n one)" = "tbf 6877: 2000000 200000 25000" ]
	tc qdisc del dev host0 root
	call DEL "$in,$out"
	nothing_left
}

@test "bandwidth: ADD again by ifb keeps the name of the ifb" {
	call ADD "$out"',"egress":"ifb"' | jq -r '.interfaces[3].name' >/tmp/name
	call ADD "$in,$out"',"egress":"ifb"' | jq -r '.interfaces[3].name' | diff /tmp/name -
	call CHECK "$in,$out"',"egress":"ifb"'
	call DEL "$out"
	nothing_left
}

@test "bandwidth: DEL twice, with the namespace gone, with none named, with the links gone" {
	for keys in "$in,$out" "$in,$out"',"egress":"ifb"'; do
		call ADD "$keys" >/dev/null
		call DEL "$keys"
		call DEL "$keys"
		nothing_left
		call ADD "$keys" >/dev/null
		NETNS="" call DEL "$keys"
		[ "$(queue host0)" = noqueue ]
		tc -n one qdisc del dev eth0 root || true # of a namespace that is not named
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

@test "bandwidth: DEL removes the ifb that Go's plugin made, and Go's DEL ours" {
	need_go_plugins bandwidth
	go ADD "$in,$out" >/tmp/result
	PREVIOUS=,\"prevResult\":$(</tmp/result) call CHECK "$in,$out"
	call DEL "$in,$out"
	[ -z "$(ip -o link show type ifb)" ]
	ip link del host0
	pair host0 eth0
	call ADD "$in,$out"',"egress":"ifb"'
	go DEL "$in,$out"
	[ -z "$(ip -o link show type ifb)" ]
	call DEL "$in,$out"
	nothing_left
}

@test "bandwidth: a link under the ifb's name that is not ours stays" {
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

@test "bandwidth: CHECK finds either queue removed or changed" {
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
	drifts "$in,$out" "interface host0 has no rate limit of hawser: root qdisc is noqueue" tc qdisc del dev host0 root
	call DEL "$in,$out"
	call ADD "$in,$out"
	drifts "$in,$out" "interface eth0 has no rate limit of hawser: root qdisc is noqueue" tc -n one qdisc del dev eth0 root
	call DEL "$in,$out"
	nothing_left
}

@test "bandwidth: CHECK finds the ifb gone, down, unlimited, or nothing redirected to it" {
	keys="$in,$out"',"egress":"ifb"'
	call ADD "$keys" >/tmp/result
	ifb=$(jq -r '.interfaces[3].name' /tmp/result)
	drifts "$keys" "ifb device $ifb is down" ip link set "$ifb" down
	ip link set "$ifb" up
	drifts "$keys" "what comes in by host0 is not redirected to $ifb" tc qdisc del dev host0 ingress
	call ADD "$keys" >/tmp/result
	drifts "$keys" "interface $ifb has no rate limit of hawser*" tc qdisc del dev "$ifb" root
	drifts_not() { run call CHECK "$keys"; fails_with 999 "get ifb device: $ifb is missing"; }
	ip link del "$ifb"
	drifts_not
	call DEL "$keys"
	nothing_left
}

@test "bandwidth: GC ends exactly the attachments that are not valid any more" {
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

@test "bandwidth: STATUS refuses what ADD would" {
	export VERSION=1.1.0 PREVIOUS=""
	call STATUS "$in,$out"
	run call STATUS '"ingressRate":8'
	fails_with 7 "if rate is set, burst must also be set"
}

# ---- subnets ---------------------------------------------------------------------------------

# sent LINK [-n NETNS]: bytes that have passed its class of limited traffic
sent() { tc "${@:2}" -s class show dev "$1" | awk '/^class htb 6877:1 /{ours = 1} ours && /Sent/ {print $2; exit}'; }

# reach ADDRESS...: from the pod to the host and back: was it limited, on the way there and back?
reach() {
	local address there back

	for address; do
		there=$(sent eth0 -n one) back=$(sent host0)
		ask "$address" 1000
		there=$(($(sent eth0 -n one) - there)) back=$(($(sent host0) - back))
		# the kernel's own packets are small
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
	reach 10.1.2.1 10.1.3.1 fd01::1 fd02::1 >/dev/null # neighbours are known
}

@test "bandwidth: what the pod exchanges with unshaped subnets is not limited, the rest is" {
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

@test "bandwidth: only what the pod exchanges with shaped subnets is limited" {
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

@test "bandwidth: beside subnets that are free, a stream of large packets gets through a slow limit" {
	keys='"ingressRate":10000000,"ingressBurst":200000,"unshapedSubnets":["192.0.2.0/24"]'
	call ADD "$keys"
	ip addr add 10.1.2.1/24 dev host0
	ip -n one addr add 10.1.2.3/24 dev eth0
	rm -f /tmp/server
	ip netns exec one timeout 20 python3 -c '
import socket
with socket.create_server(("10.1.2.3", 7777)) as server:
    print("ready", flush=True)
    stream, got = server.accept()[0], 0
while (n := len(stream.recv(65536))):
    got += n
print(got)' >/tmp/server &
	until grep -qs ready /tmp/server; do sleep 0.01; done
	timeout 20 python3 -c '
import socket
socket.create_connection(("10.1.2.3", 7777)).sendall(bytes(1000000))'
	wait $!
	[ "$(tail -n 1 /tmp/server)" = 1000000 ]
}

@test "bandwidth: subnets with an ifb" {
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
