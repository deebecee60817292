#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# loopback compared with upstream's plugin (Debian's), each in its own namespace; then features that only
# our plugin has.
bats_require_minimum_version 1.5.0
load ../lib

ours=$HAWSER_BUILD/cni/loopback
upstream=$GO_PLUGINS/loopback

setup() {
	need ip jq
	ip netns add one
	ip netns add two
}

teardown() {
	ip netns del one 2>/dev/null || true
	ip netns del two 2>/dev/null || true
}

# call PLUGIN VERB NETNS VERSION [MORE]: run a plugin; MORE: additional JSON members
call() {
	CNI_COMMAND=$2 CNI_CONTAINERID=c1 CNI_NETNS=$3 CNI_IFNAME=eth0 CNI_PATH=$HAWSER_BUILD/cni \
		"$1" <<<"{\"cniVersion\":\"$4\",\"name\":\"net\",\"type\":\"loopback\"${5:+,$5}}"
}

state() { ip -n "$1" -j addr | jq -S .; }

# Upstream prints the format of 1.0.0 in every version (see docs/compatibility.md). This removes the
# differences in format.
normalize() { jq -S '.ips[]? |= del(.version) | if .dns == {} then del(.dns) else . end'; }

@test "loopback: ADD and DEL have the same effect and result as in upstream in 0.3.0 to 1.0.0" {
	need_go_plugins loopback
	for version in 0.3.0 0.3.1 0.4.0 1.0.0; do
		call "$upstream" ADD /run/netns/one "$version" | sed s/one/two/ | normalize >/tmp/one
		call "$ours" ADD /run/netns/two "$version" | normalize >/tmp/two
		diff /tmp/one /tmp/two
		diff <(state one) <(state two)
		call "$upstream" DEL /run/netns/one "$version"
		[ -z "$(call "$ours" DEL /run/netns/two "$version")" ]
		diff <(state one) <(state two)
	done
}

@test "loopback: ADD in 0.1.0 and 0.2.0 has the same effect as in upstream, and returns a result of that version" {
	need_go_plugins loopback
	for version in 0.1.0 0.2.0; do
		call "$upstream" ADD /run/netns/one "$version"
		run call "$ours" ADD /run/netns/two "$version"
		[ "$status" = 0 ]
		[ "$(jq -c . <<<"$output")" = \
			'{"cniVersion":"'$version'","ip4":{"ip":"127.0.0.1/8"},"ip6":{"ip":"::1/128"},"dns":{}}' ]
		diff <(state one) <(state two)
		call "$upstream" DEL /run/netns/one "$version"
		call "$ours" DEL /run/netns/two "$version"
		diff <(state one) <(state two)
	done
}

@test "loopback: the result in 1.1.0 is identical to upstream's" {
	run call "$ours" ADD /run/netns/one 1.1.0
	[ "$status" = 0 ]
	[ "$output" = '{
    "cniVersion": "1.1.0",
    "interfaces": [
        {
            "mac": "00:00:00:00:00:00",
            "name": "lo",
            "sandbox": "/run/netns/one"
        }
    ],
    "ips": [
        {
            "address": "127.0.0.1/8",
            "interface": 0
        },
        {
            "address": "::1/128",
            "interface": 0
        }
    ]
}' ]
}

@test "loopback: the result of a previous plugin is passed on" {
	previous='{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","mac":"02:00:00:00:00:01"}],
		"ips":[{"interface":0,"address":"10.1.2.3/24","gateway":"10.1.2.1"}]}'
	run call "$ours" ADD /run/netns/one 1.0.0 "\"prevResult\":$previous"
	[ "$status" = 0 ]
	diff <(jq -S . <<<"$previous") <(jq -S . <<<"$output")
	ip -n one link show lo | grep -q UP
}

@test "loopback: DEL succeeds twice, with a deleted namespace, and without one" {
	call "$ours" ADD /run/netns/one 1.1.0
	call "$ours" DEL /run/netns/one 1.1.0
	call "$ours" DEL /run/netns/one 1.1.0
	ip netns del one
	call "$ours" DEL /run/netns/one 1.1.0
	call "$ours" DEL "" 1.1.0
}

@test "loopback: ADD to a namespace that does not exist fails" {
	run call "$ours" ADD /run/netns/nosuch 1.1.0
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$output")" == 'failed to Statfs "/run/netns/nosuch": '* ]]
}

@test "loopback: a file that is not a namespace is refused, as in upstream" {
	touch /tmp/file
	for verb in ADD CHECK; do
		run call "$ours" "$verb" /tmp/file 1.0.0 '"prevResult":{"cniVersion":"1.0.0"}'
		fails_with 'unknown FS magic on "/tmp/file": 1021994'
	done
}

@test "loopback: DEL succeeds if only the file of the namespace is left" {
	touch /run/netns/left
	[ -z "$(call "$ours" DEL /run/netns/left 1.0.0)" ]
	need_go_plugins loopback
	run call "$upstream" DEL /run/netns/left 1.0.0
	[[ "$(jq -r .msg <<<"$output")" == 'unknown FS magic on "/run/netns/left": '* ]]
}

@test "loopback: ADD fails if lo has a non-loopback address, IPv4 or IPv6" {
	ip -n one addr add 10.1.2.3/24 dev lo
	run call "$ours" ADD /run/netns/one 1.1.0
	fails_with 'loopback interface found with non-loopback address "10.1.2.3"'
	ip -n two addr add fd00::1/64 dev lo
	run call "$ours" ADD /run/netns/two 1.1.0
	fails_with 'loopback interface found with non-loopback address "fd00::1"'
}

@test "loopback: a failed ADD leaves lo down if it was down" {
	ip -n one addr add 10.1.2.3/24 dev lo
	run call "$ours" ADD /run/netns/one 1.1.0
	[ "$status" = 1 ]
	run ! grep -q UP <(ip -n one link show lo)
}

@test "loopback: a failed ADD leaves lo up if it was up" {
	call "$ours" ADD /run/netns/one 1.1.0
	ip -n one addr add 10.1.2.3/24 dev lo
	run call "$ours" ADD /run/netns/one 1.1.0
	[ "$status" = 1 ]
	grep -q UP <(ip -n one link show lo)
	[ -z "$(call "$ours" DEL /run/netns/one 1.1.0)" ]
	run ! grep -q UP <(ip -n one link show lo)
}

check() { call "$ours" CHECK /run/netns/one 1.1.0 '"prevResult":{"cniVersion":"1.0.0"}'; }

@test "loopback: CHECK finds that lo is down" {
	call "$ours" ADD /run/netns/one 1.1.0
	for version in 0.4.0 1.0.0 1.1.0; do
		[ -z "$(call "$ours" CHECK /run/netns/one "$version" \
			"\"prevResult\":{\"cniVersion\":\"$version\"}")" ]
	done
	ip -n one link set lo down
	run check
	fails_with "loopback interface is down"
}

@test "loopback: CHECK finds a removed address of either family" {
	call "$ours" ADD /run/netns/one 1.1.0
	check
	ip -n one addr del 127.0.0.1/8 dev lo
	run check
	fails_with 'loopback interface lacks address "127.0.0.1/8"'
	ip -n one addr add 127.0.0.1/8 dev lo
	check
	ip -n one addr del ::1/128 dev lo
	run check
	fails_with 'loopback interface lacks address "::1/128"'
}

@test "loopback: CHECK does not require ::1 if IPv6 is disabled" {
	ip netns exec one sysctl -qw net.ipv6.conf.lo.disable_ipv6=1
	call "$ours" ADD /run/netns/one 1.1.0
	check
}

@test "loopback: CHECK accepts addresses that the pod added to lo" {
	call "$ours" ADD /run/netns/one 1.1.0
	ip -n one addr add 10.1.2.3/32 dev lo
	check
}

@test "loopback: GC and STATUS succeed silently and change nothing" {
	call "$ours" ADD /run/netns/one 1.1.0
	before=$(state one)
	[ -z "$(call "$ours" STATUS "" 1.1.0)" ]
	[ -z "$(call "$ours" GC "" 1.1.0 '"cni.dev/valid-attachments":[]')" ]
	[ "$before" = "$(state one)" ]
}

@test "loopback: ADD twice succeeds" {
	call "$ours" ADD /run/netns/one 1.1.0
	call "$ours" ADD /run/netns/one 1.1.0
	check
}
