#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# firewall: connections between namespaces on a host whose iptables forwards nothing; records, CHECK and repair;
# removal of rules of upstream's plugin
# shellcheck disable=SC2154 # variables come from firewall.bash and from run
bats_require_minimum_version 1.5.0
load firewall

@test "firewall: on a host that forwards nothing, pods can open connections, but not accept them" {
	drop_all
	attach c1 one
	unreachable one outside 192.0.2.2
	add c1 one
	attach c2 two
	reaches one outside 192.0.2.2
	reaches one outside fd99::2
	unreachable outside one "$(address c1 0)"
	unreachable two outside 192.0.2.2
	check c1 one
	del c1 one
	unreachable one outside 192.0.2.2
	[ "$(ours)" = "[]" ]
}

@test "firewall: connections that another program forwards by DNAT reach the pod" {
	drop_all
	pod c1 one
	nft 'table ip nat2 { chain pre { type nat hook prerouting priority -90;
		ip daddr 192.0.2.1 udp dport 7777 dnat to '"$(address c1 0)"'; }; }'
	connect outside one 192.0.2.1 udp 7777
}

@test "firewall: ADD returns prevResult, in every version" {
	for version in 0.4.0 1.0.0 1.1.0; do
		jq '.cniVersion = "'$version'"' >/tmp/result.c1 <<-'END'
			{"interfaces":[{"name":"eth0","sandbox":"/x"}],
			"ips":[{"version":"4","interface":0,"address":"10.1.2.3/24","gateway":"10.1.2.1"}],
			"routes":[{"dst":"0.0.0.0/0"}],"dns":{"domain":"x"}}
		END
		run -0 add c1 one '{"cniVersion":"'$version'"}'
		[ "$(jq -cS 'del(.ips[].version)' <<<"$output")" = "$(jq -cS 'del(.ips[].version)' /tmp/result.c1)" ]
		del c1 one '{"cniVersion":"'$version'"}'
	done
	run call VERSION "" "" '{"cniVersion":"1.0.0"}'
	[ "$(jq -c .supportedVersions <<<"$output")" = '["0.4.0","1.0.0","1.1.0"]' ]
}

@test "firewall: CHECK finds lost elements, and repair restores everything" {
	drop_all
	pod c1 one '{"ingressPolicy":"same-bridge"}'
	before=$(nft -s list ruleset)
	for harm in "flush ruleset" "flush table inet hawser" "flush map inet hawser allow6" \
		"flush set inet hawser protected" "delete table ip filter" "flush chain ip filter FORWARD"; do
		nft "$harm"
		[[ $harm != *filter* ]] || drop_all
		[[ $harm == *filter* ]] || {
			run check c1 one
			fails_with "*hawser-plugin repair restores *"
		}
		[[ $harm != "flush ruleset" ]] || drop_all
		run -0 hawser-plugin repair
		check c1 one
		diff <(nft -s list ruleset | sort) <(sort <<<"$before")
	done
	reaches one outside 192.0.2.2
}

@test "firewall: DEL needs neither prevResult nor namespace and can be repeated; GC deletes the same elements" {
	drop_all
	pod c1 one
	pod c2 two
	call DEL c1 "" '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	call DEL c1 "" '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	[ "$(ours | jq -c 'map(split(" ")[1])')" = '["10.7.0.3","fd07::3"]' ]
	reaches two outside 192.0.2.2
	call GC "" "" '{"cniVersion":"1.1.0","name":"net","type":"firewall","cni.dev/valid-attachments":[]}'
	[ "$(ours)" = "[]" ]
	[ -z "$(find /run/hawser/attachments/firewall -type f)" ]
	# without a record, DEL finds the elements by their owner
	add c1 one
	rm -r /run/hawser/attachments/firewall
	call DEL c1 "" '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	[ "$(ours)" = "[]" ]
}

@test "firewall: if a pod takes over the address of another pod, a late DEL of the other pod does not remove the address" {
	drop_all
	pod c1 one
	cp /tmp/result.c1 /tmp/result.c2
	add c2 two
	del c1 one
	[ "$(hawser-plugin rules --json | jq -r '.[] | select(.set == "allow4").containerID')" = c2 ]
	reaches one outside 192.0.2.2
	del c2 two
	[ "$(ours)" = "[]" ]
}

@test "firewall: a prevResult may contain an address twice" {
	jq -nc '{cniVersion:"1.0.0",ips:[{address:"10.8.0.2/24"},{address:"10.8.0.2/24"}]}' >/tmp/result.c1
	add c1 one
	check c1 one
	del c1 one
	[ "$(ours)" = "[]" ]
}

@test "firewall: ADD restores the flushed chain that sets the packet mark" {
	drop_all
	pod c1 one
	nft flush chain inet hawser allow12
	run check c1 one
	fails_with "*hawser-plugin repair restores *"
	pod c2 two
	reaches one outside 192.0.2.2
	check c1 one
	nft flush table inet hawser
	del c2 two
	add c2 two
	reaches two outside 192.0.2.2
}

@test "firewall: portmap's mark bit is rejected" {
	attach c1 one
	run add c1 one '{"forwardMarkBit":13}'
	fails_with "forwardMarkBit 13 is *portmap*"
	[ "$(jq .code <<<"$output")" = 7 ]
}

@test "firewall: a missing prevResult and an unknown ingressPolicy are rejected" {
	run call ADD c1 one '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	fails_with "missing prevResult from earlier plugin"
	attach c1 one
	run add c1 one '{"ingressPolicy":"shut"}'
	fails_with 'unknown ingress policy: "shut"'
	jq 'del(.interfaces) | del(.ips[].interface)' /tmp/result.c1 >/tmp/result.c2
	run add c2 one '{"ingressPolicy":"same-bridge"}'
	fails_with 'interface needs to be set for ingress policy "same-bridge"*'
	run call CHECK c1 one '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	fails_with "missing prevResult from earlier plugin"
	[ -z "$(nft list ruleset)" ]
}

@test "firewall: DEL removes the rules that upstream's plugin added for this pod, and nothing else" {
	need_go_plugins firewall
	drop_all
	attach c1 one
	attach c2 two
	plugin=$GO_PLUGINS/firewall add c2 two
	iptables-save | grep -v '^#' | sed 's/\[.*\]//' >/tmp/before
	ip6tables-save | grep -v '^#' | sed 's/\[.*\]//' >/tmp/before6
	plugin=$GO_PLUGINS/firewall add c1 one
	[ "$(iptables -S CNI-FORWARD | grep -c 10.7.0.2/32)" = 2 ]
	check c1 one
	iptables -D CNI-FORWARD -s 10.7.0.2/32 -j ACCEPT
	run check c1 one
	fails_with "no record of this attachment, and no rules of upstream's firewall plugin for 10.7.0.2"
	del c1 one
	iptables-save | grep -v '^#' | sed 's/\[.*\]//' | diff /tmp/before -
	ip6tables-save | grep -v '^#' | sed 's/\[.*\]//' | diff /tmp/before6 -
	reaches two outside 192.0.2.2
}

@test "firewall: works on a host on which upstream's plugin is also used" {
	need_go_plugins firewall
	drop_all
	attach c1 one
	attach c2 two
	plugin=$GO_PLUGINS/firewall add c2 two
	add c1 one
	reaches one outside 192.0.2.2
	reaches two outside 192.0.2.2
	plugin=$GO_PLUGINS/firewall check c2 two
	check c1 one
	plugin=$GO_PLUGINS/firewall del c2 two
	unreachable two outside 192.0.2.2
	reaches one outside 192.0.2.2
}
