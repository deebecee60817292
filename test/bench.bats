#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/bench.bats - the benchmarks run, and what they measure is written down

bats_require_minimum_version 1.5.0

setup() {
	export BENCH_SAMPLES=3 BENCH_RESULTS=$BATS_TEST_TMPDIR
}

@test "bench: every bench runs and writes its samples" {
	run -0 "$HAWSER_SRC/bench/run"
	[[ ${lines[-1]} == *" rows, "*" aims met; samples in $BENCH_RESULTS/"* ]]
	for bench in "$HAWSER_SRC"/bench/*.py; do
		name=$(basename "$bench" .py)
		[[ $output == *"$name: "* ]]
		jq -e '.rows | length > 0 and all(.size > 0 or (.samples | length) == 3)' \
			"$BENCH_RESULTS/$name.json"
	done
}

@test "bench: a command that fails ends the run with what it said" {
	echo "run /bin/ls /nowhere" >"$BATS_TEST_TMPDIR/series"
	run -1 "$HAWSER_BUILD/bench/bench-spawn" 1 "$BATS_TEST_TMPDIR/series" "$BATS_TEST_TMPDIR/series"
	[[ $output == *"cannot access '/nowhere'"* ]]
	[[ $output == *"/bin/ls /nowhere ended with status"* ]]
}

@test "bench: both sides get their own environment and input and run alike often" {
	log=$BATS_TEST_TMPDIR/log
	echo "text" >"$BATS_TEST_TMPDIR/input"
	printf '%s\n' "read -r line; echo \$SIDE \$line >>$log" >"$BATS_TEST_TMPDIR/note"
	for side in ours peer; do
		printf 'env SIDE=%s\ninput %s\nrun /bin/sh %s\n' "$side" "$BATS_TEST_TMPDIR/input" \
			"$BATS_TEST_TMPDIR/note" >"$BATS_TEST_TMPDIR/$side"
	done
	run -0 "$HAWSER_BUILD/bench/bench-spawn" 4 "$BATS_TEST_TMPDIR/ours" "$BATS_TEST_TMPDIR/peer"
	[ "${#lines[@]}" = 4 ]
	[ "$(grep -c "^peer text$" "$log")" = 4 ]
	[ "$(grep -c "^ours text$" "$log")" = 4 ]
}
