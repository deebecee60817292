# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# test/wait.bash - wait for a condition, for bats files (lib.bash) and fault scenarios (state.bash)

# wait_until COMMAND...: run COMMAND until it succeeds; fails after 60 seconds. Its output is discarded.
# The only sleep that tests may use to wait for another process.
wait_until() {
	local end=$((SECONDS + 60))

	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || { echo "timed out after 60 s: $*"; return 1; }
		sleep 0.01
	done
}

# has_line TEXT FILE: whether FILE exists and contains TEXT
has_line() { grep -qsF -e "$1" "$2"; }

# ends_with STATUS COMMAND...: whether COMMAND exits with STATUS
ends_with() {
	local status=0
	"${@:2}" || status=$?
	[ "$status" = "$1" ]
}

# is_empty COMMAND...: whether COMMAND prints nothing
is_empty() { [ -z "$("$@")" ]; }
