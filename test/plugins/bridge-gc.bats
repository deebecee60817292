#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# bridge: GC, STATUS and uninstall; many calls at once
# shellcheck disable=SC2154 # variables come from bridge.bash and from run
bats_require_minimum_version 1.5.0
load bridge

@test "bridge: GC deletes exactly the attachments that are no longer valid" {
	add '{"cniVersion":"1.1.0","isGateway":true}'
	call ADD c2 two "$(</tmp/conf)" >/tmp/second
	gc() { call GC "" "" "$(jq -c ".\"cni.dev/valid-attachments\" = $1" /tmp/conf)"; }
	gc '[{"containerID":"c1","ifname":"eth0"},{"containerID":"c2","ifname":"eth0"}]'
	check
	gc '[{"containerID":"c1","ifname":"eth0"}]'
	check
	run ! ip -n two link show eth0
	[ "$(leases)" = 10.7.0.2 ]
	gc '[]'
	only_bridge_left
}

@test "bridge: GC during ADDs deletes an attachment completely or not at all" {
	conf '{"cniVersion":"1.1.0","isGateway":true}' >/tmp/conf
	for i in {1..30}; do ip netns add "p$i"; done
	for i in {1..30}; do
		call ADD "c$i" "p$i" "$(</tmp/conf)" >"/tmp/r$i" &
		adds[i]=$!
		((i % 10)) || call GC "" "" "$(jq -c '."cni.dev/valid-attachments" = []' /tmp/conf)"
	done
	for i in {1..30}; do wait "${adds[i]}" || { cat "/tmp/r$i"; false; }; done
	for i in {1..30}; do
		ip -n "p$i" -j -4 addr show eth0 2>/dev/null | jq -r '.[].addr_info[].local'
	done | sort >/tmp/addresses
	diff <(leases) /tmp/addresses
	[ "$(ip -j link show master br7 | jq length)" = "$(wc -l </tmp/addresses)" ]
	call GC "" "" "$(jq -c '."cni.dev/valid-attachments" = []' /tmp/conf)"
	only_bridge_left
}

@test "bridge: STATUS calls IPAM, and succeeds on a host without the bridge" {
	call STATUS "" "" "$(conf '{"cniVersion":"1.1.0","isGateway":true}')"
	[ "$(links)" = lo ]
	run call STATUS "" "" "$(conf '{"cniVersion":"1.1.0"}' '{"type":"nosuch"}')"
	fails_with 999 'failed to find plugin "nosuch"*'
	run call STATUS "" "" "$(conf '{"cniVersion":"1.1.0","hairpinMode":true,"promiscMode":true}')"
	fails_with 7 "cannot set hairpin mode*"
}

@test "bridge: ADD and DEL list only the bridge's addresses by netlink dumps, and ADD and DEL of ptp use no dump" {
	need strace
	conf '{"isGateway":true}' "$both" >/tmp/conf
	for i in {1..5}; do ip netns add "p$i" && call ADD "p$i" "p$i" "$(</tmp/conf)"; done
	# shellcheck disable=SC2016 # the script expands it
	printf '#!/bin/sh\nexec strace -f -o /tmp/trace -e trace=sendto,getdents64 "%s/${0##*/}"\n' "$plugins" >/tmp/bridge
	chmod +x /tmp/bridge
	cp /tmp/bridge /tmp/ptp
	: >/tmp/lists
	for type in bridge ptp; do
		for verb in ADD DEL; do
			ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 plugin=/tmp/$type call "$verb" c1 one \
				"$(conf "{\"type\":\"$type\",\"isGateway\":true}" "$both")"
			grep -q 'sendto.*RTM_' /tmp/trace
			grep -E -e 'sendto.*NLM_F_DUMP' -e '([4-9]|[0-9]{2,}) entries' /tmp/trace >>/tmp/lists || true
		done
	done
	cat /tmp/lists
	[ "$(grep -c 'RTM_GETADDR.*ifa_index=if_nametoindex("br7")' /tmp/lists)" = 1 ] # one for both families
	# No other list was read. Directories with at most three entries are not counted, such as the index, which has
	# ".", ".." and the directory of this boot.
	[ "$(wc -l </tmp/lists)" = 1 ]
}

@test "bridge: forty concurrent first ADDs, then forty concurrent DELs, leave only the bridge" {
	conf '{"isDefaultGateway":true}' "$both" >/tmp/conf
	add_forty_at_once
	[ "$(ip -j link show master br7 | jq length)" = 40 ]
	connect p1 p40 "$(jq -r '.ips[0].address | split("/")[0]' /tmp/r40)" tcp 7777
	delete_forty_at_once
	only_bridge_left
}

@test "bridge: uninstall removes the bridge, but refuses while it has ports" {
	add '{"isGateway":true}'
	run hawser-plugin uninstall
	[ "$status" = 1 ]
	[ "$output" = "hawser-plugin: bridge br7 still has ports" ]
	check
	del
	run hawser-plugin uninstall
	[ "$output" = "bridge br7 removed" ]
	[ "$(links)" = lo ]
	run hawser-plugin uninstall
	[[ "$output" == "nothing to remove"* ]]
}

@test "bridge: uninstall keeps a bridge that was created after ours was deleted" {
	add '{}'
	del
	ip link del br7
	ip link add br7 type bridge
	run hawser-plugin uninstall
	[[ "$output" == "nothing to remove"* ]]
	ip link show br7
}

@test "bridge: uninstall keeps a bridge that was created after ours could not be created" {
	# the kernel refuses the MTU
	run -1 call ADD c1 one "$(conf '{"mtu":70000}')"
	[ "$(links)" = lo ]
	ip link add br7 type bridge
	[ "$(hawser-plugin uninstall)" = "nothing to remove" ]
	ip link show br7
}

@test "bridge: uninstall removes a bridge whose MAC address was changed, as udev does" {
	add '{}'
	del
	ip link set br7 address 02:00:00:00:00:99
	[ "$(hawser-plugin uninstall)" = "bridge br7 removed" ]
	[ "$(links)" = lo ]
}

@test "bridge: uninstall keeps a bridge that another program creates at the same time" {
	need strace
	# the ADD does not find the bridge, and is stopped after it has written the note
	printf '#!/bin/sh\nexport ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0\nexec strace -f -o /tmp/trace -e inject=renameat:signal=STOP:when=2 "%s"\n' \
		"$plugins/bridge" >/tmp/bridge
	chmod +x /tmp/bridge
	rm -f /tmp/trace
	plugin=/tmp/bridge call ADD c1 one "$(conf '{}')" >/tmp/result 3>&- &
	wait_until grep -sq 'stopped by SIGSTOP' /tmp/trace
	[ -n "$(ls /run/hawser/host-objects)" ]
	ip link add br7 type bridge
	kill -CONT "$(sed -n 's/^\([0-9]*\) .*stopped by SIGSTOP.*/\1/p' /tmp/trace)"
	wait $!
	grep -q 'recv.*NLMSG_ERROR.*error=-EEXIST' /tmp/trace
	call DEL c1 one "$(conf '{}')"
	ip link set br7 down
	[ "$(hawser-plugin uninstall)" = "nothing to remove" ]
	ip link show br7
}

# killed SYSCALL: ADD, and kill it when it calls SYSCALL, an expression of strace
killed() {
	printf '#!/bin/sh\nexport ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0\nexec strace -f -o /tmp/trace -e inject=%s:signal=KILL "%s"\n' \
		"$1" "$plugins/bridge" >/tmp/bridge
	chmod +x /tmp/bridge
	plugin=/tmp/bridge run ! call ADD c1 one "$(conf '{}')"
}

@test "bridge: uninstall removes the bridge of an ADD that was killed before the note about it was finished" {
	need strace
	for next in true add; do
		# the first renames are those of the record and the note, the third finishes the note
		killed renameat:when=3
		[ "$(links)" = $'br7\nlo' ]
		jq -e '.index // 0 | . == 0' /run/hawser/host-objects/*
		"$next" '{}'
		[ "$next" = true ] || jq -e --argjson index "$(</sys/class/net/br7/ifindex)" '.index == $index' /run/hawser/host-objects/*
		call DEL c1 one "$(conf '{}')"
		[ "$(hawser-plugin uninstall)" = "bridge br7 removed" ]
		[ "$(links)" = lo ]
		[ ! -e /run/hawser ]
	done
}

@test "bridge: uninstall removes the bridge of a note that 0.1.0 wrote" {
	add '{}'
	del
	mkdir /run/hawser/furniture
	for mac in 02:00:00:00:00:01 "$(</sys/class/net/br7/address)"; do
		rm -r /run/hawser/host-objects
		jq -nc --arg mac "$mac" '{kind:"bridge",name:"br7",mac:$mac}' >/run/hawser/furniture/note
		run -0 hawser-plugin uninstall
		mkdir -p /run/hawser/furniture /run/hawser/host-objects
	done
	[ "$output" = "bridge br7 removed" ]
}
