#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/uml.bats - test/uml/run itself, which runs commands under a second kernel
bats_require_minimum_version 1.5.0
load lib

uml=$HAWSER_SRC/test/uml/run

@test "uml: standard output, standard error and exit status are those of the command" {
	need linux.uml modprobe
	export WORD="a b"
	mkdir "$BATS_TEST_TMPDIR/work"
	cd /usr/lib
	run --separate-stderr -7 env TMPDIR="$BATS_TEST_TMPDIR/work" "$uml" sh -c 'echo "$WORD|$1|$PWD"; printf "x\ty\n" >&2; exit 7' - "it's"
	[ "$output" = "a b|it's|/usr/lib" ]
	# shellcheck disable=SC2154 # set by run
	[ "$stderr" = $'x\ty' ]
	[ -z "$(ls "$BATS_TEST_TMPDIR/work")" ]
}

@test "uml: a command that does not end is killed with its kernel" {
	need linux.uml modprobe
	run -124 "$uml" -t 2 sleep infinity
	[[ $output == "test/uml/run: timed out after 2 s"* ]]
	[ -z "$(pgrep -f linux.uml)" ]
}

@test "uml: without user-mode-linux the exit status is 77 and the reason is printed" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	for program in bash id; do
		ln -s "$(command -v "$program")" "$BATS_TEST_TMPDIR/bin"
	done
	PATH=$BATS_TEST_TMPDIR/bin run -77 "$uml" true
	[ "$output" = "user-mode-linux is not installed" ]
}
