#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Many concurrent attachments, full disks, and a clock that was set back; with the plugins bridge and ptp,
# both dual stack.
bats_require_minimum_version 1.5.0
load ../lib
load ../state

ranges='[[{"subnet": "10.NET.0.0/16"}], [{"subnet": "fd00:NET::/64"}]]'
# shellcheck disable=SC2034 # by name
conf_bridge='{"cniVersion": "1.1.0", "name": "on-bridge", "type": "bridge", "bridge": "br0",
	"isDefaultGateway": true, "ipMasq": true, "ipam": {"type": "host-local", "ranges": '${ranges//NET/1}'}}'
# shellcheck disable=SC2034
conf_ptp='{"cniVersion": "1.1.0", "name": "on-ptp", "type": "ptp",
	"ipMasq": true, "ipam": {"type": "host-local", "ranges": '${ranges//NET/2}'}}'

setup() {
	need ip tc nft jq
	export CNI_PATH=$HAWSER_BUILD/cni
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	umount /var/lib/cni/networks /run/hawser 2>/dev/null || true
	ip -all netns delete
	rm -rf /run/hawser /var/lib/cni/*
	nft flush ruleset
	for link in $(ip -j link show type veth | jq -r '.[].ifname'); do ip link del "$link" || true; done
	ip link del br0 2>/dev/null || true
	sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
}

# pods FROM TO: create the namespaces pFROM to pTO
pods() { seq -f 'netns add p%.0f' "$1" "$2" | ip -batch -; }

# call VERB TYPE N [MORE]: run plugin TYPE for pod N; MORE: additional members of the configuration
call() {
	local conf=conf_$2
	CNI_COMMAND=$1 CNI_CONTAINERID=c$3 CNI_NETNS=/run/netns/p$3 CNI_IFNAME=eth0 \
		"$HAWSER_BUILD/cni/$2" <<<"${!conf%\}}${4:+, $4}}"
}

add() { call ADD "$@" >"result.$2" 2>&1; }
del() { call DEL "$@"; }
check() { call CHECK "$1" "$2" "\"prevResult\": $(<"result.$2")"; }
gc() { call GC "$1" 0 "\"cni.dev/valid-attachments\": [${2-}]"; }
type_of() { [ $(($1 % 2)) = 0 ] && echo bridge || echo ptp; }

# at_once COMMAND N...: run COMMAND N for each N at the same time; fails if one of them fails
at_once() {
	local command=$1 n bad=0
	local -A pids
	shift
	for n; do
		"$command" "$n" &
		pids[$n]=$!
	done
	for n; do
		wait "${pids[$n]}" || { echo "$command $n failed: $(cat "result.$n")"; bad=1; }
	done
	return "$bad"
}

addresses() { jq -r '.ips[].address' result.*; }

# left: print the links, leases and records of attachments
left() {
	wait_for_exit bridge ptp
	ip -br link show type veth
	find /run/hawser/attachments /var/lib/cni/networks ! -type d ! -name lock ! -name 'last_*' ! -name ballast
}

state() {
	state_kernel
	state_files /run /var/lib/cni
	state_nft
	state_mounts
}

# ---- many at once ---------------------------------------------------------------------

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

# ten_years_ago COMMAND...: run COMMAND with the wall clock set back by ten years; the monotonic clock
# does not change
ten_years_ago() {
	local lib
	lib=$(find /usr/lib -name libfaketime.so.1 -print -quit)
	[ -n "$lib" ] || skip "libfaketime is not installed"
	# a sanitizer's library must be preloaded first
	LD_PRELOAD="$(ldd "$HAWSER_BUILD/cni/bridge" | awk '/lib[at]san/ { print $3 }') $lib" \
		FAKETIME=-10y DONT_FAKE_MONOTONIC=1 "$@"
}

@test "clock: all verbs work after the clock was set back" {
	pods 1 4
	for type in bridge ptp; do
		add "$type" 1
		ten_years_ago add "$type" 2
		ten_years_ago check "$type" 1
		check "$type" 2
		# GC deletes invalid attachments that were added before it started, whatever the wall clock says
		gc "$type" '{"containerID": "c2", "ifname": "eth0"}'
		run ! check "$type" 1
		check "$type" 2
		add "$type" 3
		ten_years_ago gc "$type" '{"containerID": "c3", "ifname": "eth0"}'
		run ! check "$type" 2
		check "$type" 3
		ten_years_ago add "$type" 4
		ten_years_ago del "$type" 3
		del "$type" 4
		[ -z "$(left)" ]
	done
}
