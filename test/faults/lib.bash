# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # work and inject_args come from run
#
# test/faults/lib.bash - what scenarios are written with; their state() with test/state.bash
# shellcheck source=test/state.bash
source "$here/../state.bash"

# inject COMMAND [ARG...]: what an operation puts in front of the command under test
inject() {
	local status=0

	"$HAWSER_BUILD/test/inject" "${inject_args[@]}" --report "$work/report" \
		--timeout "${timeout_ms:-30000}" --linger "${linger_ms:-1000}" -- "$@" || status=$?
	[ "$status" != 77 ] || [ -s "$work/report" ] || skip "ptrace is not permitted"
	return "$status"
}

# skip REASON: this scenario cannot run here
skip() {
	echo "$*" >"$work/skip"
	exit 77
}
