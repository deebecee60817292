# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # work and inject_args come from run
#
# test/faults/lib.bash - functions for scenarios; test/state.bash has those for their state()
# shellcheck source=test/state.bash
source "$here/../state.bash"

# inject COMMAND [ARG...]: run the command under test with the fault of this point
inject() {
	local status=0

	"$HAWSER_BUILD/test/inject" "${inject_args[@]}" --report "$work/report" \
		--timeout "${timeout_ms:-30000}" --linger "${linger_ms:-1000}" -- "$@" || status=$?
	[ "$status" != 77 ] || [ -s "$work/report" ] || skip "ptrace is not permitted"
	return "$status"
}

# skip REASON: skip this scenario
skip() {
	echo "$*" >"$work/skip"
	exit 77
}
