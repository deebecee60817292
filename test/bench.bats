#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/bench.bats - the benchmarks run and write their results

bats_require_minimum_version 1.5.0

setup() {
	export BENCH_SAMPLES=3 BENCH_RESULTS=$BATS_TEST_TMPDIR
}

@test "bench: every benchmark runs and writes its samples" {
	run -0 "$HAWSER_SRC/bench/run"
	[[ ${lines[-1]} == *" rows, "*" aims met; samples in $BENCH_RESULTS/"* ]]
	for bench in "$HAWSER_SRC"/bench/*.py; do
		name=$(basename "$bench" .py)
		[[ $output == *"$name: "* ]]
		jq -e '.rows | length > 0 and all(.size > 0 or (.samples | length) > 0)' \
			"$BENCH_RESULTS/$name.json"
	done
}

@test "bench: --help lists the benchmarks, and an unknown one is refused" {
	run -0 "$HAWSER_SRC/bench/run" --help
	[[ ${lines[-1]} == "NAME: attach "*" serve" ]]
	run -1 "$HAWSER_SRC/bench/run" nothing
	[[ $output == 'bench/run: unknown benchmark nothing; known are: attach '* ]]
	[ -z "$(ls "$BENCH_RESULTS")" ]
}

@test "bench: a failed command stops the run, and its output is printed" {
	echo "run /bin/ls /nowhere" >"$BATS_TEST_TMPDIR/series"
	run -1 "$HAWSER_BUILD/bench/bench-spawn" 1 "$BATS_TEST_TMPDIR/series" "$BATS_TEST_TMPDIR/series"
	[[ $output == *"cannot access '/nowhere'"* ]]
	[[ $output == *"/bin/ls /nowhere ended with status"* ]]
}

@test "bench: each of two compared series has its own environment and input, and both have the same number of samples" {
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

@test "bench: the keyword reap waits for the background processes of a command" {
	printf 'sleep 0.3 &\n' >"$BATS_TEST_TMPDIR/leave" # the interval of the measurement
	printf 'run /bin/sh %s\nreap\n' "$BATS_TEST_TMPDIR/leave" >"$BATS_TEST_TMPDIR/series"
	run -0 "$HAWSER_BUILD/bench/bench-spawn" 1 "$BATS_TEST_TMPDIR/series"
	((output >= 300000000))
}

@test "bench: commands with the keyword start run in parallel" {
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	echo text >"$BATS_TEST_TMPDIR/text"
	printf 'start /bin/cp %s /dev/null\nstart /bin/cp --no-preserve=all %s %s\n' \
		"$BATS_TEST_TMPDIR/fifo" "$BATS_TEST_TMPDIR/text" "$BATS_TEST_TMPDIR/fifo" \
		>"$BATS_TEST_TMPDIR/series"
	run -0 timeout 20 "$HAWSER_BUILD/bench/bench-spawn" 1 "$BATS_TEST_TMPDIR/series"
}

@test "bench: the times that selftimed commands print are added up, except between \"clock off\" and \"clock on\"" {
	printf 'selftimed /bin/echo 5\nclock off\nselftimed /bin/echo 7\nclock on\nselftimed /bin/echo 1{n}\n' \
		>"$BATS_TEST_TMPDIR/series"
	run -0 "$HAWSER_BUILD/bench/bench-spawn" 2 "$BATS_TEST_TMPDIR/series"
	[ "${lines[0]}" = 15 ]
}

# growth AIM OURS-FIRST OURS-LAST FLOOR-FIRST FLOOR-LAST: print the figure that is judged, and the judgement
growth() {
	PYTHONPATH=$HAWSER_SRC/bench PYTHONDONTWRITEBYTECODE=1 python3 - "$@" <<-'END'
		import sys
		from lib.rows import Aim, Growth
		first, last, floor_first, floor_last = (int(float(ms) * 1e6) for ms in sys.argv[2:])
		figures = Growth("growth", peers={"floor": None}, floor="floor", aim=Aim(**{sys.argv[1]: 1.3}),
		                 found=[(first, floor_first)] * 10 + [(last, floor_last)] * 10).measure(None)
		print("%.2f" % figures["ratio"]["value"], "met" if figures["met"] else "missed")
	END
}

@test "bench: our growth in milliseconds is compared with that of the lower bound" {
	[ "$(growth growth 2 17 1 11)" = "1.50 missed" ]
	[ "$(growth growth 2 14 1 11)" = "1.20 met" ]
	[ "$(growth growth 2 3 1 1)" = "1000.00 missed" ]
	[ "$(growth growth 2 2 1 1)" = "0.00 met" ]
}

@test "bench: the last operations without the growth of the lower bound are compared with the first ones" {
	[ "$(growth ratio 20 24 1 2)" = "1.15 met" ]
	[ "$(growth ratio 20 29 1 2)" = "1.40 missed" ]
}

@test "bench: bench/svg writes a picture, a table and figures from the samples" {
	"$HAWSER_SRC/bench/run" burst crowd plugin >/dev/null
	mkdir "$BATS_TEST_TMPDIR/out"
	printf '<!-- figures -->\nold\n<!-- end -->\n' >"$BATS_TEST_TMPDIR/out/bench.md"
	run -0 "$HAWSER_SRC/bench/svg" "$BATS_TEST_TMPDIR/out"
	jq -e '[.benches[].rows[] | .what] | index("one of 40 parallel ADDs")' \
		"$BATS_TEST_TMPDIR/out/bench.json"
	python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' \
		"$BATS_TEST_TMPDIR/out/bench.svg"
	grep -q '^| one of 40 parallel ADDs | [0-9.]* ms | Go plugin' "$BATS_TEST_TMPDIR/out/bench.md"
	grep -q '^|  |  | growth, relative to kernel only |  | .*x (.*) | at most 1.3x: ' "$BATS_TEST_TMPDIR/out/bench.md"
	grep -q 'ms  Go plugin<' "$BATS_TEST_TMPDIR/out/bench.svg"
	[ -z "$(grep old "$BATS_TEST_TMPDIR/out/bench.md")" ]
}
