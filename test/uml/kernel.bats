#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The kernel that test/uml/run boots (User Mode Linux) has the features that the other tests in this directory
# need.
load ../lib

@test "uml: every link kind can be created" {
	ip link add parent type dummy
	ip link set parent up
	for kind in bridge macvlan "ipvlan mode l2" "vlan id 5" ifb "vrf table 9"; do
		on=()
		case $kind in *vlan*) on=(link parent) ;; esac
		# shellcheck disable=SC2086 # a kind and its options
		ip link add "${on[@]}" name one type $kind
		ip link del one
	done
	ip link add one type veth peer name two
	ip link del one
	ip link del parent
}

@test "uml: a bridge filters VLANs" {
	ip link add br0 type bridge vlan_filtering 1
	[ "$(ip -d -j link show br0 | jq '.[0].linkinfo.info_data.vlan_filtering')" = 1 ]
	bridge vlan add vid 100 dev br0 self
	bridge vlan show dev br0 | grep -q 100
	ip link del br0
}

@test "uml: a namespace has its own network and sysctls" {
	ip netns add pod
	ip netns exec pod sysctl -qw net.ipv4.ip_default_ttl=77
	[ "$(cat /proc/sys/net/ipv4/ip_default_ttl)" = 64 ]
	[ "$(ip netns exec pod cat /proc/sys/net/ipv4/ip_default_ttl)" = 77 ]
	ip netns del pod
}

@test "uml: writable directories are empty and temporary" {
	[ -z "$(find /etc/cni /var/lib/cni -mindepth 1)" ]
	for dir in /run /tmp /etc/cni /var/lib/cni; do
		[ "$(stat -f -c %T "$dir")" = tmpfs ]
	done
}
