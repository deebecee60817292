#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# VLANs of the bridge plugin, on a kernel with bridge VLAN filtering
bats_require_minimum_version 1.5.0
load ../lib

plugins=$HAWSER_BUILD/cni

setup() {
	ip netns add one
	ip netns add two
	export CNI_PATH=$plugins
}

teardown() {
	delete_pods
	ip link del br7 2>/dev/null || true
	rm -rf /run/hawser /var/lib/cni/networks
}

# add CONTAINER NETNS JSON: run ADD with these keys, and write its result to /tmp/CONTAINER.result
add() {
	jq -c '{cniVersion:"1.1.0",name:"net",type:"bridge",bridge:"br7",
		ipam:{type:"host-local",subnet:"10.7.0.0/24"}} + .' <<<"$3" >"/tmp/$1.conf"
	call ADD "$1" "$2" >"/tmp/$1.result"
}
call() {
	local conf
	conf=$(<"/tmp/$2.conf")
	[ "$1" = ADD ] || conf=$(jq -c --slurpfile prev "/tmp/$2.result" '.prevResult = $prev[0]' <<<"$conf")
	CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/run/netns/$3 CNI_IFNAME=eth0 "$plugins/bridge" <<<"$conf"
}
port() { jq -r '.interfaces[1].name' "/tmp/$1.result"; }
# vlans LINK: print the VLANs of LINK, one per line, such as "100 PVID Egress Untagged"
vlans() {
	bridge -j vlan show dev "$1" | jq -r '.[].vlans[] | [.vlan, .vlanEnd // empty, .flags[]?] | join(" ")'
}

# drifts MESSAGE COMMAND...: assert that CHECK succeeds before COMMAND and fails with MESSAGE after it
drifts() {
	local message=$1
	shift
	call CHECK c1 one
	"$@"
	run call CHECK c1 one
	echo "$output"
	[ "$(jq -r .msg <<<"$output")" = "$message" ]
}

@test "bridge: with vlan, the port has only this VLAN, untagged, and the bridge filters VLANs" {
	add c1 one '{"vlan":100}'
	[ "$(ip -d -j link show br7 | jq '.[0].linkinfo.info_data.vlan_filtering')" = 1 ]
	[ "$(vlans "$(port c1)")" = "100 PVID Egress Untagged" ]
	call CHECK c1 one
	call DEL c1 one
	run ! ip -n one link show eth0
}

@test "bridge: preserveDefaultVlan keeps the default VLAN" {
	add c1 one '{"vlan":100,"preserveDefaultVlan":true}'
	[ "$(vlans "$(port c1)")" = $'1 Egress Untagged\n100 PVID Egress Untagged' ]
	call CHECK c1 one
}

@test "bridge: a trunk carries its VLANs tagged, and VLAN 1 untagged" {
	add c1 one '{"vlanTrunk":[{"id":7},{"minID":100,"maxID":102},{"minID":101,"maxID":105}]}'
	[ "$(vlans "$(port c1)")" = $'1 PVID Egress Untagged\n7\n100\n101\n102\n103\n104\n105' ]
	call CHECK c1 one
}

@test "bridge: a trunk can carry all VLANs, one of them untagged" {
	add c1 one '{"vlan":5,"vlanTrunk":[{"minID":1,"maxID":4094}]}'
	[ "$(vlans "$(port c1)" | wc -l)" = 4094 ]
	vlans "$(port c1)" | grep -qx '5 PVID Egress Untagged'
	call CHECK c1 one
	call DEL c1 one
}

@test "bridge: CHECK finds changed VLANs of the port" {
	add c1 one '{"vlan":100,"vlanTrunk":[{"minID":200,"maxID":210}]}'
	bridge vlan del vid 205 dev "$(port c1)"
	run call CHECK c1 one
	[ "$(jq -r .msg <<<"$output")" = "port $(port c1) does not carry VLANs 200 to 210 tagged" ]
	bridge vlan add vid 205 dev "$(port c1)"
	call CHECK c1 one
	bridge vlan add vid 300 dev "$(port c1)"
	run call CHECK c1 one
	[ "$(jq -r .msg <<<"$output")" = "port $(port c1): VLAN count mismatch: got 13, want 12" ]
	bridge vlan del vid 300 dev "$(port c1)"
	call CHECK c1 one
	bridge vlan del vid 100 dev "$(port c1)"
	run call CHECK c1 one
	[ "$(jq -r .msg <<<"$output")" = "port $(port c1) does not carry VLAN 100 untagged" ]
}

@test "bridge: an existing bridge without VLAN filtering is not changed, and CHECK accepts it" {
	ip link add br7 type bridge
	add c1 one '{"vlan":100}'
	[ "$(ip -d -j link show br7 | jq '.[0].linkinfo.info_data.vlan_filtering')" = 0 ]
	call CHECK c1 one
	call DEL c1 one
}

@test "bridge: CHECK finds disabled VLAN filtering, and a VLAN gateway that is down or detached" {
	add c1 one '{"vlan":100,"isGateway":true}'
	drifts "bridge br7 does not filter VLANs" ip link set br7 type bridge vlan_filtering 0
	ip link set br7 type bridge vlan_filtering 1
	drifts "gateway interface br7.100 is down" ip link set br7.100 down
	ip link set br7.100 up
	gateway=$(ip -j link show br7.100 | jq -r '.[0].link')
	drifts "port $gateway does not carry VLAN 100 untagged" bridge vlan del vid 100 dev "$gateway"
	bridge vlan add vid 100 pvid untagged dev "$gateway"
	drifts "port $gateway of gateway interface br7.100 is down" ip link set "$gateway" down
	ip link set "$gateway" up
	drifts "gateway interface br7.100 is not connected to bridge br7" ip link set "$gateway" nomaster
	ip link del br7.100
	run call CHECK c1 one
	[ "$(jq -r .msg <<<"$output")" = "gateway interface br7.100 is missing" ]
}

links() { ip -j link | jq -r '.[].ifname' | sort; }

@test "bridge: pods of one VLAN reach each other and the gateway, pods of another VLAN do not" {
	links >/tmp/links
	add c1 one '{"vlan":100,"isGateway":true}'
	add c2 two '{"vlan":100,"isGateway":true}'
	[ "$(jq -r '.interfaces[3].name' /tmp/c1.result)" = br7.100 ]
	ip addr show br7.100 | grep -q 10.7.0.1/24
	[ -z "$(ip -4 addr show br7)" ]
	connect one host 10.7.0.1 tcp 7777
	connect one two 10.7.0.3 tcp 7777
	call CHECK c1 one
	call DEL c2 two
	add c2 two '{"vlan":200}'
	blocked one two 10.7.0.4 tcp 7777
	# the gateway's interface is a host object: it is created once per host and stays after DEL
	call DEL c1 one
	call DEL c2 two
	ip link show br7.100
	run hawser-plugin uninstall
	[ "$output" = $'veth br7.100 removed\nbridge br7 removed' ]
	# the kernel may still be deleting links after DEL has returned
	wait_until eval '[ -z "$(links | comm -13 /tmp/links -)" ]'
}

@test "bridge: the VLAN gateway is the main end of its pair, as in upstream, and the next ADD mends it" {
	add c1 one '{"vlan":100,"isGateway":true}'
	port=$(ip -j link show br7.100 | jq -r '.[0].link')
	# the kernel creates the peer first
	[ "$(</sys/class/net/br7.100/ifindex)" -gt "$(<"/sys/class/net/$port/ifindex")" ]
	call DEL c1 one
	for damage in "ip link set $port nomaster" "ip link set $port down" "bridge vlan del vid 100 dev $port" \
		"ip link set br7.100 down"; do
		$damage
		add c2 two '{"vlan":100,"isGateway":true}'
		connect two host 10.7.0.1 tcp 7777
		call CHECK c2 two
		[ "$(vlans "$port")" = "100 PVID Egress Untagged" ]
		call DEL c2 two
	done
	# a deleted bridge is created again, with the same gateway
	ip link del br7
	add c2 two '{"vlan":100,"isGateway":true}'
	connect two host 10.7.0.1 tcp 7777
	call CHECK c2 two
	run -0 call DEL c2 two
	run hawser-plugin uninstall
	[ "$output" = $'veth br7.100 removed\nbridge br7 removed' ]
}

@test "bridge: concurrent first ADDs share the gateway of their VLAN" {
	for i in {1..8}; do ip netns add "p$i"; done
	for i in {1..8}; do
		add "p$i" "p$i" '{"vlan":100,"isGateway":true}' &
		adds[i]=$!
	done
	for i in {1..8}; do wait "${adds[i]}" || { cat "/tmp/p$i.result"; false; }; done
	for i in {1..8}; do
		call CHECK "p$i" "p$i"
		connect "p$i" host 10.7.0.1 tcp 7777
	done
}
