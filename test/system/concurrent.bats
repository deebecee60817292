#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Many concurrent attachments, and full disks; with the plugins bridge and ptp, both dual stack
bats_require_minimum_version 1.5.0
load concurrent

@test "concurrent: the first forty ADDs, at once on two networks, then forty DELs and uninstall leave nothing behind" {
	each_add() { add "$(type_of "$1")" "$1"; }
	each_check() { check "$(type_of "$1")" "$1"; }
	each_del() { del "$(type_of "$1")" "$1"; }
	pods 1 40
	save_steady_state before
	at_once each_add {1..40}
	[ "$(addresses | sort -u | wc -l)" = 80 ]
	at_once each_check {1..40}
	at_once each_del {1..40}
	[ -z "$(left)" ]
	"$HAWSER_BUILD/bin/hawser-plugin" uninstall
	rm -r /var/lib/cni/networks # lock files and the last reserved addresses
	forwarding='forward\|conf/all/accept_redirects'
	diff -U0 <(grep -v "$forwarding" before) <(state | grep -v "$forwarding")
}

@test "concurrent: ADDs and DELs of 200 pods in different orders at the same time leave nothing behind" {
	# One of: ADD, CHECK and DEL; ADD and DEL, twice; an ADD, which may fail, and a DEL at the same time; ADD and
	# two DELs at the same time; DEL without a namespace
	life() {
		local type
		type=$(type_of "$1")
		case $(($1 % 5)) in
		0) add "$type" "$1" && check "$type" "$1" && del "$type" "$1" ;;
		1) add "$type" "$1" && del "$type" "$1" && add "$type" "$1" && del "$type" "$1" ;;
		2) add "$type" "$1" & del "$type" "$1" && { wait $! || true; } && del "$type" "$1" ;;
		3) add "$type" "$1" && { del "$type" "$1" & del "$type" "$1" && wait $!; } ;;
		4) add "$type" "$1" && ip netns del "p$1" && del "$type" "$1" ;;
		esac
	}
	pods 1 200
	at_once life {1..200}
	[ -z "$(left)" ]
	[ -z "$(ip -br link show master br0)" ]
	[ -z "$(ip route show proto 104)" ]
}

@test "concurrent: of ten ADDs of one attachment at once exactly one succeeds, and the others are refused" {
	# each_add N: the N-th ADD of the attachment of pod 1; prints its error
	each_add() { call ADD "$plugin" 1 >"result.$1" || jq -r '"\(.code) \(.msg)"' "result.$1" >"refused.$1"; }
	pods 1 1
	for plugin in bridge ptp; do
		rm -f result.* refused.*
		at_once each_add {1..10}
		[ "$(sort -u refused.*)" = "1017 plugin $plugin: container c1 interface eth0 is already attached to network on-$plugin; call DEL first" ]
		[ "$(cat refused.* | wc -l)" = 9 ]
		for i in {1..10}; do [ -e "refused.$i" ] || cp "result.$i" result.first; done
		mv result.first result.1
		check "$plugin" 1
		del "$plugin" 1
		[ -z "$(left)" ]
	done
}

@test "concurrent: an ADD and a DEL of one attachment at once run one after the other" {
	life() { { call ADD bridge 1 >"result.$1" || jq -e '.code == 1017' "result.$1"; } && del bridge 1; }
	pods 1 1
	at_once life {1..20}
	[ -z "$(left)" ]
}

# waits_for LOCK TYPE: succeeds if a process of plugin TYPE has the file LOCK open
waits_for() {
	local fd
	for fd in /proc/[0-9]*/fd/*; do
		[ "$(readlink "$fd")" != "$1" ] || [ "$(cat "${fd%/fd/*}/comm")" != "$2" ] || return 0
	done
	return 1
}

# hold TYPE COMMAND...: take the same lock as an ADD of plugin TYPE would, run COMMAND while a GC waits for
# this lock, then release the lock
hold() {
	local type=$1 lock gc
	shift
	lock=$(echo "/run/hawser/locks/$type"-*)
	exec {held}<"$lock"
	flock --shared "$held"
	gc "$type" >gc.output 2>&1 {held}<&- &
	gc=$!
	wait_until waits_for "$lock" "$type"
	"$@"
	exec {held}<&-
	wait "$gc" || { cat gc.output; return 1; }
}

@test "concurrent: GC with an empty list deletes existing attachments, but not those of 50 concurrent ADDs" {
	need flock
	pods 1 60
	for type in bridge ptp; do
		each_add() { add "$type" "$1"; }
		each_check() { check "$type" "$1"; }
		each_del() { del "$type" "$1"; }
		at_once each_add {51..60}
		hold "$type" at_once each_add {1..50}
		at_once each_check {1..50}
		for i in {51..60}; do run ! check "$type" "$i"; done
		[ "$(left | grep -c /attachments/)" = 50 ]
		[ "$(left | grep -c '/networks/[^/]*/[0-9a-f]')" = 100 ]
		at_once each_del {1..60}
		[ -z "$(left)" ]
	done
}

@test "concurrent: GCs with a complete list of valid attachments do not disturb ADDs and DELs" {
	valid=$(for i in {1..40}; do echo "{\"containerID\": \"c$i\", \"ifname\": \"eth0\"}"; done | paste -sd ,)
	life() {
		case $1 in
		gc*) for _ in {1..5}; do gc bridge "$valid" || return; done ;;
		*) add bridge "$1" && check bridge "$1" && del bridge "$1" ;;
		esac
	}
	pods 1 40
	at_once life {1..20} gc1 {21..40} gc2
	[ -z "$(left)" ]
}

# ---- full disks and clocks ----------------------------------------------------------------

# full_disk DIRECTORY COMMAND: mount a small file system, run COMMAND, then fill it completely
full_disk() {
	mkdir -p "$1"
	mount -t tmpfs -o mode=700,size=64k,nr_inodes=64 full "$1"
	"$2"
	dd if=/dev/zero of="$1/ballast" bs=4k 2>/dev/null || true
}

@test "full disk: without space for leases, ADD fails and leaves nothing behind, and DEL and GC work" {
	pods 1 3
	for type in bridge ptp; do
		first() { add "$type" 1 && add "$type" 2 && del "$type" 2; }
		full_disk /var/lib/cni/networks first
		before=$(left)
		run ! add "$type" 2
		jq -e '.msg | test("No space left on device")' result.2
		[ "$(left)" = "$before" ]
		check "$type" 1
		del "$type" 1
		[ -z "$(left)" ]
		rm /var/lib/cni/networks/ballast
		add "$type" 2
		add "$type" 3
		dd if=/dev/zero of=/var/lib/cni/networks/ballast bs=4k 2>/dev/null || true
		gc "$type" '{"containerID": "c3", "ifname": "eth0"}'
		check "$type" 3
		gc "$type"
		[ -z "$(left)" ]
		umount /var/lib/cni/networks
	done
}

@test "full disk: without space for records, ADD fails and leaves nothing behind, and DEL and GC work" {
	pods 1 2
	for type in bridge ptp; do
		first() { add "$type" 1; }
		full_disk /run/hawser first
		before=$(left)
		run ! add "$type" 2
		jq -e '.msg | test("No space left on device")' result.2
		[ "$(left)" = "$before" ]
		check "$type" 1
		gc "$type" '{"containerID": "c1", "ifname": "eth0"}'
		check "$type" 1
		del "$type" 1
		[ -z "$(left)" ]
		umount /run/hawser
		ip link del br0 2>/dev/null || true
	done
}
