# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# test/clock.bash - commands with another wall clock

# ten_years_ago COMMAND...: run COMMAND with the wall clock set back by ten years; the monotonic clock
# does not change
ten_years_ago() {
	local lib
	lib=$(find /usr/lib -name libfaketime.so.1 -print -quit)
	[ -n "$lib" ] || skip "libfaketime is not installed"
	LD_PRELOAD=$lib FAKETIME=-10y DONT_FAKE_MONOTONIC=1 "$@"
}
