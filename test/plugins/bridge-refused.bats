#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# bridge: ADD of invalid configurations, and on hosts and pods where something is in the way
# shellcheck disable=SC2154 # variables come from bridge.bash and from run
bats_require_minimum_version 1.5.0
load bridge

@test "bridge: invalid configurations are refused with upstream's texts, and nothing is changed" {
	refused() { # CODE MESSAGE JSON
		run call ADD c1 one "$(conf "$3")"
		fails_with "$1" "$2"
	}
	refused 7 "cannot set hairpin mode and promiscuous mode at the same time" '{"hairpinMode":true,"promiscMode":true}'
	refused 7 "invalid VLAN ID 4095 (must be between 0 and 4094)" '{"vlan":4095}'
	refused 7 "invalid VLAN ID -1 (must be between 0 and 4094)" '{"vlan":-1}'
	refused 7 "incorrect trunk id parameter" '{"vlanTrunk":[{"id":0}]}'
	refused 7 "incorrect trunk minID parameter" '{"vlanTrunk":[{"minID":0,"maxID":9}]}'
	refused 7 "incorrect trunk maxID parameter" '{"vlanTrunk":[{"minID":1,"maxID":5000}]}'
	refused 7 "minID is greater than maxID in trunk parameter" '{"vlanTrunk":[{"minID":5,"maxID":4}]}'
	refused 7 "minID and maxID should be configured simultaneously, minID is missing" '{"vlanTrunk":[{"maxID":4}]}'
	refused 7 "minID and maxID should be configured simultaneously, maxID is missing" '{"vlanTrunk":[{"minID":4}]}'
	refused 7 'invalid bridge name "": *' '{"bridge":""}'
	refused 7 'invalid bridge name "a/b": *' '{"bridge":"a/b"}'
	refused 7 'invalid bridge name "br%d": *' '{"bridge":"br%d"}'
	refused 7 'invalid bridge name "br7.of.the.pods": *' '{"bridge":"br7.of.the.pods","vlan":7,"isGateway":true}'
	refused 7 'invalid MAC address "x"' '{"runtimeConfig":{"mac":"x"}}'
	refused 7 'failed to load netconf: *isGateway*' '{"isGateway":1}'
	refused 7 'unknown ipmasq backend "pf"' '{"ipMasq":true,"ipMasqBackend":"pf"}'
	CNI_ARGS="X=y" refused 999 'ARGS: unknown args ["X=y"]' '{}'
	[ "$(links)" = lo ]
	[ -z "$(records)" ]
	[ -z "$(leases)" ]
}

@test "bridge: ADD and STATUS report a kernel without VLAN filtering" {
	ip link add other type bridge
	run ip link set other type bridge vlan_filtering 1
	bridge vlan show dev other 2>/dev/null | grep -q PVID && skip "this kernel filters VLANs"
	for json in '{"vlan":100}' '{"vlanTrunk":[{"id":1}]}'; do
		run call ADD c1 one "$(conf "$json")"
		fails_with 999 '*kernel*VLAN*'
		run call STATUS "" "" "$(conf "$json" | jq -c '.cniVersion = "1.1.0"')"
		fails_with 50 '*kernel*VLAN*'
	done
	[ "$(links)" = $'lo\nother' ]
}

@test "bridge: ADD and STATUS refuse an existing link that is not a bridge" {
	ip link add br7 type veth peer name other
	run try_add '{}'
	fails_with 999 '"br7" already exists but is not a bridge'
	[ -z "$(leases)" ]
	run call STATUS "" "" "$(conf '{"cniVersion":"1.1.0"}')"
	fails_with 50 '"br7" already exists but is not a bridge'
}

@test "bridge: a conflicting address of the bridge is an error, unless forceAddress is set" {
	ip link add br7 type bridge
	ip addr add 10.8.0.1/24 dev br7
	run try_add '{"isGateway":true}'
	fails_with 999 '*"br7" already has an IP address different from 10.7.0.1/24'
	[ "$(links)" = $'br7\nlo' ]
	[ -z "$(leases)" ]
	add '{"isGateway":true,"forceAddress":true}'
	[ "$(ip -j -4 addr show br7 | jq -r '.[].addr_info[].local')" = 10.7.0.1 ]
	del
}

@test "bridge: an IPv6 address of the bridge conflicts only if it is in the gateway's network" {
	ip link add br7 type bridge
	ip addr add fd08::1/64 dev br7
	add '{"isGateway":true}' "$v6"
	del
	ip addr del fd07::1/64 dev br7
	ip addr add fd07::9/64 dev br7
	run try_add '{"isGateway":true}' "$v6"
	fails_with 999 '*"br7" already has an IP address different from fd07::1/64'
	add '{"isGateway":true,"forceAddress":true}' "$v6"
	del
}

@test "bridge: ADD is refused if the pod has an interface with the name in CNI_IFNAME, and nothing is changed" {
	ip -n one link add eth0 type veth peer name other
	before=$(links_and_addresses one)
	run try_add '{"isGateway":true}'
	fails_with 999 'container veth name ("eth0") peer provided ("veth*") already exists'
	[ "$(links)" = lo ]
	[ -z "$(leases)" ]
	[ -z "$(records)" ]
	[ "$(links_and_addresses one)" = "$before" ]
}

@test "bridge: an ADD whose IPAM fails or returns no address leaves nothing behind" {
	run try_add '{}' '{"type":"nosuch"}'
	fails_with 999 'failed to find plugin "nosuch"*'
	mkdir /tmp/ipam
	cat >/tmp/ipam/empty <<-'END'
		#!/bin/sh
		echo $CNI_COMMAND >>/tmp/ipam/calls
		[ $CNI_COMMAND = DEL ] || echo '{}'
	END
	chmod +x /tmp/ipam/empty
	CNI_PATH=$CNI_PATH:/tmp/ipam run try_add '{}' '{"type":"empty"}'
	fails_with 999 "IPAM plugin returned missing IP config"
	[ "$(cat /tmp/ipam/calls)" = $'ADD\nDEL' ]
	only_bridge_left
}

@test "bridge: ADD refuses a plugin as its own IPAM plugin; DEL and GC succeed" {
	for type in bridge ptp; do
		run try_add '{"cniVersion":"1.1.0"}' "{\"type\":\"$type\"}"
		fails_with 7 "plugin \"$type\" cannot delegate to itself"
		only_bridge_left
		call DEL c1 one "$(</tmp/conf)"
		call GC "" "" "$(jq -c '."cni.dev/valid-attachments" = []' /tmp/conf)"
		run call STATUS "" "" "$(</tmp/conf)"
		fails_with 7 "*delegate to itself"
	done
}

@test "bridge: a netns that does not exist is refused" {
	run call ADD c1 nosuch "$(conf '{}')"
	fails_with 999 'failed to open netns "/run/netns/nosuch": failed to Statfs*'
	[ "$(links)" = lo ]
}

@test "bridge: if the name of the host end is taken, the next name is used" {
	add '{}'
	name=$(result "$host_end")
	del
	ip link add "$name" type veth peer name other
	add '{}'
	[ "$(result "$host_end")" = "$(printf 'veth%08x' $((0x${name#veth} + 1)))" ]
	check
	del
	ip link show "$name"
	ip link del "$name"
	only_bridge_left
}
