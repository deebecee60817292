#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# hawser-plugin serve: cases of the differential suite have the same results, the same state and the same
# leftovers if serve runs the plugin (test/served.c) as if it is executed; and serve as a program.
bats_require_minimum_version 1.5.0
load ../lib

program=$HAWSER_BUILD/bin/hawser-plugin

# compare PLUGIN CASE: run cases of the differential suite, with our executed plugins as the other side
compare() {
	local suite=$BATS_TEST_TMPDIR/differential build=$BATS_TEST_TMPDIR/build plugins=$HAWSER_BUILD/cni link
	mkdir -p "$suite" "$build/cni"
	cp "$HAWSER_SRC"/test/differential/{run,*.py,*.cases} "$suite"
	cp "$HAWSER_SRC/test/waiting.py" "$BATS_TEST_TMPDIR"
	: >"$suite/allowed.tsv" # no difference is permitted
	for link in "$plugins"/*; do
		ln -s "$HAWSER_BUILD/test/served" "$build/cni/${link##*/}"
	done
	SERVED_PLUGINS=$plugins SERVED_PROGRAM=$program GO_PLUGINS=$plugins HAWSER_BUILD=$build \
		run "$suite/run" --case "$2" "$1"
	echo "$output"
	[ "$status" = 0 ]
	[ "${lines[0]}" != 1..0 ]
}

@test "serve: bandwidth has the results of exec" { compare bandwidth '*after *, two pods*'; }
@test "serve: bridge has the results of exec" { compare bridge '*dual stack, two pods*'; }
@test "serve: a bridge that fails has the errors of exec" { compare bridge '*fails: *interface*'; }
@test "serve: firewall has the results of exec" { compare firewall '*forwards nothing, after ptp*'; }
@test "serve: host-local has the results of exec" { compare host-local '*address*requested*'; }
@test "serve: loopback has the results of exec" { compare loopback '*'; }
@test "serve: portmap has the results of exec" { compare portmap '*dual stack*'; }
@test "serve: ptp has the results of exec" { compare ptp '*dual stack*'; }
@test "serve: static has the results of exec" { compare static '*addresses*'; }
@test "serve: tuning has the results of exec" { compare tuning '*everything*'; }

@test "serve: without the socket of a daemon it explains itself" {
	run -1 "$program" serve </dev/null
	[ "$output" = "hawser-plugin: serve is a helper of hawser-cri: standard input is not its socket" ]
	run -1 "$program" serve more </dev/null
	[[ $output == usage:* ]]
}
