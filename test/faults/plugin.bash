# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # plugin, case and others come from outside
#
# test/faults/plugin.bash - one attachment by $plugin, called as a runtime calls it
#
# What:  interrupts one verb for pod1 and repairs it: a DEL after ADD or DEL, a GC after GC (or after
#        ADD: "ADD, then GC"), another CHECK after CHECK, which must not change anything. Then the
#        network, files, processes and mounts are as before. "DEL, result lost" is without prevResult.
# How:   the configurations are those of test/differential/$plugin.cases. Furniture is made by a first
#        ADD and DEL. pod2 stays attached all the time, unless the case says alone: nothing of it may
#        change.
# Rules: an ADD that says it failed has left nothing, even before the DEL; one that says it worked
#        passes CHECK. A DEL that says it worked has left nothing.
plugin_path=$HAWSER_BUILD/cni/$plugin
steady=yes
cases=()

# often|rarely CASE VERB...: cases of this scenario; rarely: only where every point is tried
often() {
	local verb

	for verb in "${@:2}"; do
		cases+=("$verb: $1")
	done
}
rarely() { [ "$every" -gt 1 ] || often "$@"; }

# alone CASE...: there is no pod2, since its addresses would be the same
declare -A is_alone
alone() {
	local one

	for one; do
		is_alone[$one]=yes
	done
}

# call POD VERB [COMMAND...]: run the plugin, behind COMMAND
call() {
	local input=$conf previous=$prev

	[ ! -s "$work/result.$1" ] || [ "$2" = ADD ] || previous=$(<"$work/result.$1")
	[ -z "$previous" ] || input="${input%\}}, \"prevResult\": $previous}"
	[ "$2" != GC ] || input="${conf%\}}, \"cni.dev/valid-attachments\": [$valid]}"
	CNI_COMMAND=$2 CNI_CONTAINERID=$1 CNI_NETNS=/run/netns/$1 CNI_IFNAME=$ifname CNI_ARGS=$args \
		CNI_PATH=$HAWSER_BUILD/cni "${@:3}" "$plugin_path" <<<"$input"
}

# add POD [COMMAND...]: ADD, and keep its result
add() {
	rm -f "$work/result.$1"
	call "$1" ADD "${@:2}" >"$work/result" || return
	mv "$work/result" "$work/result.$1"
}

del() {
	call "$1" DEL "${@:2}" || return
	rm -f "$work/result.$1"
}

prepare() {
	eval "$("$here/case.py" "$plugin" "${case#*: }")"
	verb=${case%%: *} valid=""
	build
}

build() {
	ip netns add pod1
	ip netns add pod2
	eval "$setup"
	add pod1
	del pod1
	# (with prev the setup has made an interface for one only)
	if [ -z "$prev${is_alone[${case#*: }]:-}" ]; then
		add pod2
		valid="{\"containerID\": \"pod2\", \"ifname\": \"$ifname\"}"
	fi
	[ "$verb" != CHECK ] || add pod1
	wait_for_exit "$plugin"
	save_steady_state "$work/steady"
}

finish() {
	local link

	rm -rf /run/hawser /run/cni /var/lib/cni/* "$work"/result.*
	nft flush ruleset 2>/dev/null || true # (nothing to flush where there is no nft)
	ip netns delete pod1 2>/dev/null || true
	ip netns delete pod2 2>/dev/null || true
	for link in /sys/class/net/*; do
		case ${link##*/} in lo | bonding_masters) ;; *) ip link delete "${link##*/}" 2>/dev/null || true ;; esac
	done
}

setup() { [ -z "$spoilt" ] || { finish && build; }; }

operation() {
	case $verb in
	ADD*) add pod1 inject ;;
	DEL) add pod1 && del pod1 inject ;;
	"DEL, result lost") add pod1 && rm "$work/result.pod1" && del pod1 inject ;;
	CHECK) call pod1 CHECK inject ;;
	GC) add pod1 && call pod1 GC inject ;;
	esac
}

# unchanged: without a repair; but what a writer did not come to rename is removed by the next one
unchanged() {
	wait_for_exit "$plugin"
	state >"$work/unrepaired"
	sed -i '/\/\.[^/]*~$/d' "$work/unrepaired"
	diff -U0 --label before "$work/before" --label "before any repair" "$work/unrepaired"
}

verify() {
	case $verb:$1 in
	ADD*:0) call pod1 CHECK ;;
	ADD*:1) [ ! -s "$work/result" ] || unchanged ;; # (it could not even say so: the runtime cannot know)
	DEL*:0) unchanged ;;
	esac
}

repair() {
	local status=0

	case $verb in
	CHECK) call pod1 CHECK ;;
	GC | *GC) call pod1 GC ;;
	*) del pod1 ;;
	esac || status=$?
	[ "$verb" = CHECK ] || rm -f "$work/result.pod1"
	wait_for_exit "$plugin"
	return "$status"
}

state() {
	state_kernel pod1
	state_files /run/hawser /run/cni /var/lib/cni | sed '/last_reserved_ip/d'
	state_nft
	state_processes
	state_mounts
}
