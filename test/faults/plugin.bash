# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # plugin, case and others are set by the scenario and by run
#
# test/faults/plugin.bash - one attachment by $plugin, called directly as a runtime does
#
# What:  injects a fault into one verb for pod1 and repairs it: with DEL after ADD or DEL, with GC
#        after GC (or after ADD: "ADD, then GC"), with CHECK after CHECK, which must not change
#        anything. After the repair, the network, files, processes and mounts must be the same as
#        before the fault. The verb "DEL, result lost" is a DEL without prevResult; "again" is a second
#        ADD, which is refused; "replace" is an ADD that replaces the attachment of a pod whose
#        namespace no longer exists.
# How:   the configurations are in test/differential/$plugin.cases. A first ADD and DEL create the
#        host objects (objects that are created once per host). pod2 stays attached all the time,
#        unless the case is marked `alone`; the state of pod2 must not change.
# Rules: an ADD that reports a failure has left nothing behind, even before the DEL. After an ADD
#        that reports success, CHECK succeeds. A DEL that reports success has left nothing behind. A
#        second ADD never succeeds, and never changes the attachment of the first.
plugin_path=$HAWSER_BUILD/cni/$plugin
steady=yes
cases=()

# often CASE VERB..., rarely CASE VERB...: add cases to this scenario; those of rarely run only with --all
often() {
	local verb

	for verb in "${@:2}"; do
		cases+=("$verb: $1")
	done
}
rarely() { [ "$every" -gt 1 ] || often "$@"; }

# alone CASE...: run these cases without pod2, because pod2 would have the same addresses as pod1
declare -A is_alone
alone() {
	local one

	for one; do
		is_alone[$one]=yes
	done
}

# call POD VERB [COMMAND...]: run the plugin, as the argument of COMMAND if there is one
call() {
	local input=$conf previous=$prev

	[ ! -s "$work/result.$1" ] || [ "$2" = ADD ] || previous=$(<"$work/result.$1")
	[ -z "$previous" ] || input="${input%\}}, \"prevResult\": $previous}"
	[ "$2" != GC ] || input="${conf%\}}, \"cni.dev/valid-attachments\": [$valid]}"
	CNI_COMMAND=$2 CNI_CONTAINERID=$1 CNI_NETNS=/run/netns/$1 CNI_IFNAME=$ifname CNI_ARGS=$args \
		CNI_PATH=$HAWSER_BUILD/cni "${@:3}" "$plugin_path" <<<"$input"
}

# add POD [COMMAND...]: call ADD and keep its result
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
	# (if the case has a prevResult, its setup has created an interface for only one pod)
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
	nft flush ruleset 2>/dev/null || true # (nft may be missing)
	ip netns delete pod1 2>/dev/null || true
	ip netns delete pod2 2>/dev/null || true
	for link in /sys/class/net/*; do
		case ${link##*/} in lo | bonding_masters) ;; *) ip link delete "${link##*/}" 2>/dev/null || true ;; esac
	done
}

setup() { [ -z "$spoilt" ] || { finish && build; }; }

# forget_netns: change the record of pod1 as if its ADD had been for another namespace
forget_netns() { grep -rl '"pod1"' /run/hawser/attachments | xargs sed -i 's/"netnsID":"[^"]*"/"netnsID":"0:0"/'; }

operation() {
	case $verb in
	ADD*) add pod1 inject ;;
	again) add pod1 && wait_for_exit "$plugin" && save_steady_state "$work/first" && ! call pod1 ADD inject ;;
	replace*) add pod1 && forget_netns && add pod1 inject ;;
	DEL) add pod1 && del pod1 inject ;;
	"DEL, result lost") add pod1 && rm "$work/result.pod1" && del pod1 inject ;;
	CHECK) call pod1 CHECK inject ;;
	GC) add pod1 && call pod1 GC inject ;;
	esac
}

# unchanged [FILE]: fails if the state differs from the one in FILE, or the saved one, before the repair runs.
# Temporary files of an interrupted writer are ignored: the next writer removes them.
unchanged() {
	wait_for_exit "$plugin"
	state >"$work/unrepaired"
	sed -i '/\/\.[^/]*~$/d' "$work/unrepaired"
	diff -U0 --label before "${1:-$work/before}" --label "before any repair" "$work/unrepaired"
}

verify() {
	case $verb:$1 in
	ADD*:0 | replace*:0) call pod1 CHECK ;;
	again:0) unchanged "$work/first" && call pod1 CHECK ;;
	again:*) echo "the second ADD succeeded" && false ;;
	ADD*:1) [ ! -s "$work/result" ] || unchanged ;; # (without output, the plugin was killed and has reported nothing)
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
