#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/run selects test files and counts their results correctly.
# shellcheck disable=SC2154 # variables come from harness.bash and from run
bats_require_minimum_version 1.5.0
load harness

strict_runner() {
	env -u HAWSER_SRC -u HAWSER_BUILD HAWSER_REQUIRE=all "$tree/test/run" "$@"
}

# unit NAME COMMAND...: create a unit test, a shell script with these commands
unit() {
	touch "$tree/src/base/$1.c"
	printf '%s\n' '#!/bin/sh' "${@:2}" >"$tree/build/src/$1"
	chmod +x "$tree/build/src/$1"
}

@test "run: passed tests of all kinds are added to one total" {
	unit test-a 'echo 1..2' 'echo ok 1 - a: one' 'echo ok 2 - a: two'
	echo '@test "b: one" { true; }' >"$tree/test/b.bats"
	echo 'def test_one(): pass' >"$tree/test/test_c.py"
	run -0 runner
	last_line "4 passed, 0 failed"
}

@test "run: mounts propagate in the sandbox of a file that asks for it" {
	local first='head -n 1 /proc/self/mountinfo | grep -q shared:'
	printf '# Sandbox: --shared\n@test "a: one" { %s; }\n' "$first" >"$tree/test/a.bats"
	printf '@test "b: one" { ! %s; }\n' "$first" >"$tree/test/b.bats"
	run -0 runner
	last_line "2 passed, 0 failed"
}

@test "run: a failed test is shown with its output, and the exit status is 1" {
	unit test-a 'echo 1..1' 'echo printed before' 'echo not ok 1 - a: one' 'echo "# printed after"'
	echo '@test "b: one" { echo from bats; false; }' >"$tree/test/b.bats"
	printf 'def test_one():\n    assert 1 == 2, "from pytest"\n' >"$tree/test/test_c.py"
	run -1 runner
	last_line "0 passed, 3 failed"
	output_has "printed before"
	output_has "printed after"
	output_has "# from bats"
	output_has "from pytest"
}

@test "run: skips are counted and listed with their reasons" {
	unit test-a 'echo 1..1' 'echo no unicorn' 'echo "not ok 1 # SKIP a: one"'
	echo '@test "b: one" { skip "no dragon"; }' >"$tree/test/b.bats"
	printf 'import pytest\ndef test_one():\n    pytest.skip("no griffin")\n' >"$tree/test/test_c.py"
	run -0 runner
	last_line "0 passed, 0 failed, 3 skipped"
	output_has "skipped, no unicorn:"
	output_has "skipped, no dragon:"
	output_has "skipped, no griffin:"
}

@test "run: if a program exits with 77 before its first test, it is skipped, and its output is the reason" {
	unit test-a 'echo no phoenix' 'exit 77'
	run runner
	last_line "0 passed, 0 failed, 1 skipped"
	output_has "skipped, no phoenix:"
	unit test-a 'echo 1..1' 'echo ok 1 one' 'exit 77'
	run runner
	last_line "1 passed, 1 failed"
}

@test "run: HAWSER_REQUIRE=all turns a skip into a failure unless allowed-skips.txt lists it" {
	unit test-a 'echo 1..2' 'echo no unicorn' 'echo "not ok 1 # SKIP a: one"' \
		'echo no unicorn' 'echo "not ok 2 # SKIP a: two"'
	echo 'src/*/test-a.c | a: t* | there are no unicorns' >"$tree/test/allowed-skips.txt"
	run -1 strict_runner
	last_line "0 passed, 1 failed, 1 skipped"
	output_has "HAWSER_REQUIRE=all: no unicorn"
}

@test "run: HAWSER_REQUIRE=all reports the lines of allowed-skips.txt that match no skipped test" {
	unit test-a 'echo 1..1' 'echo ok 1 - a: one'
	echo 'src/*/test-a.c | a: one | not any more' >"$tree/test/allowed-skips.txt"
	run -0 strict_runner
	output_has "test/allowed-skips.txt:1 matches no skipped test"
	last_line "1 passed, 0 failed"
}

@test "run: a file that announces more tests than it runs fails" {
	unit test-a 'echo 1..2' 'echo ok 1 - a: one' 'kill -SEGV $$'
	run -1 runner
	last_line "1 passed, 1 failed"
	output_has "2 tests announced, 1 ran, exit status 139"
}

@test "run: a file without a test fails" {
	unit test-a 'exit 0'
	run -1 runner
	last_line "0 passed, 1 failed"
	output_has "no test ran"
}

@test "run: a file whose tests pass but whose exit status is not 0 fails" {
	unit test-a 'echo 1..1' 'echo ok 1 - a: one' 'echo LeakSanitizer' 'exit 23'
	run -1 runner
	last_line "1 passed, 1 failed"
	output_has "exit status 23 though no test failed"
}

@test "run: a test that is not built fails" {
	touch "$tree/src/base/test-a.c"
	run -1 runner
	output_has "not built"
}

@test "run: a file that does not end is killed with its child processes, and fails" {
	unit test-a 'echo 1..2' 'echo ok 1 - a: one' 'setsid sleep 6543 &' 'sleep 6543'
	run -1 runner --timeout 5
	last_line "1 passed, 1 failed"
	output_has "timed out after 5 s"
	run ! pgrep -f 'sleep 654[3]'
}

@test "run: a pytest file that crashes fails" {
	printf 'import os\ndef test_one():\n    os._exit(0)\n' >"$tree/test/test_c.py"
	run -1 runner
	last_line "0 passed, 1 failed"
}

@test "run: a source tree without tests fails" {
	run -1 runner
	last_line "0 passed, 1 failed"
}

@test "run: a filter selects files, or tests if it matches no file" {
	unit test-a 'echo 1..1' 'echo ok 1 - a: one'
	printf '@test "b: %s" { true; }\n' one two three >"$tree/test/b.bats"
	run -0 runner --filter test-a
	last_line "1 passed, 0 failed"
	run -0 runner --filter 'b: t*'
	last_line "2 passed, 0 failed"
	run -0 runner --filter 'b.bats' --list
	[ "$output" = test/b.bats ]
}

@test "run: several filters select the files and the tests that any of them matches" {
	unit test-a 'echo 1..1' 'echo ok 1 - a: one'
	printf '@test "b: %s" { true; }\n' one two three >"$tree/test/b.bats"
	printf '@test "c: %s" { true; }\n' one "two (c)" three >"$tree/test/c.bats"
	printf 'def test_%s(): pass\n' one two >"$tree/test/test_d.py"
	run -0 runner --filter test-a --filter 'b*' --list
	[ "$output" = src/base/test-a.c$'\n'test/b.bats ]
	run -0 runner --filter b.bats --filter '?: tw?*' --filter 'test_t*'
	last_line "5 passed, 0 failed"
	run -1 runner --filter 'd: *' --filter 'e*'
	output_has "no test found"
}

@test "run: --suite, --without-suite, --without and --filter all restrict the selection" {
	local name
	for name in a b c d e; do echo '@test "'$name': one" { true; }' >"$tree/test/$name.bats"; done
	printf '%s\n' 'small test/[abc].bats' 'other test/d.bats' 'slow test/b.bats' >"$tree/test/suites.txt"
	run -0 runner --suite small --suite other --without-suite slow --without 'test/c*' --list
	[ "$output" = test/a.bats$'\n'test/d.bats ]
	run -0 runner --suite small --filter 'd*' --filter 'c*' --filter 'b: one' --list
	[ "$output" = test/c.bats$'\n'test/b.bats ]
	run -0 runner --suite small --without 'test/b*' --filter 'b: one' --list
	[ -z "$output" ]
}

@test "run: --without leaves out files" {
	unit test-a 'echo 1..1' 'echo "ok 1 - a: one"'
	echo '@test "b: one" { true; }' >"$tree/test/b.bats"
	run -0 runner --without 'src/*' --without 'test/c*' --list
	[ "$output" = test/b.bats ]
}

@test "run: without root, files that need root are skipped and all other files run" {
	unit test-a 'echo 1..1' 'echo ok 1 - a: one'
	printf '@test "b: %s" { true; }\n' one two >"$tree/test/b.bats"
	printf '%s\n' '# Needs: no root' '@test "d: one" { true; }' >"$tree/test/d.bats"
	echo 'def test_one(): pass' >"$tree/test/test_c.py"
	mkdir "$tree/src/net"
	unit test-e 'echo 1..1' 'echo ok 1 - e: one'
	mv "$tree/src/base/test-e.c" "$tree/src/net"
	chmod -R a+rX "$BATS_RUN_TMPDIR"
	run -0 setpriv --reuid=65534 --regid=65534 --clear-groups env -u HAWSER_REQUIRE \
		-u HAWSER_SRC -u HAWSER_BUILD "$tree/test/run"
	last_line "2 passed, 0 failed, 4 skipped"
	output_has "skipped, needs root:"
}

@test "run: every file of a fuzzer's corpus is one test" {
	mkdir -p "$tree/test/corpus/a"
	touch "$tree/src/base/fuzz-a.c" "$tree/test/corpus/a/"{one,two}
	printf '#include <stdint.h>\n#include <stddef.h>\n%s\n' 'int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
		int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { return n > 3 && d[n - 1] == 33 ? *(volatile int *)8 : 0; }' >fuzz.c
	cc -o "$tree/build/src/replay-a" fuzz.c "$HAWSER_SRC/test/replay.c"
	run -0 runner
	last_line "2 passed, 0 failed"
	echo -n 'crash!' >"$tree/test/corpus/a/three"
	run -1 runner
	last_line "1 passed, 1 failed"
	output_has "# three"
}

@test "run: a fuzzer whose corpus is missing, or that is not built, fails" {
	touch "$tree/src/base/fuzz-a.c"
	run -1 runner
	output_has "not built"
	printf '%s\n' '#!/bin/sh' 'ls "$1"' >"$tree/build/src/replay-a"
	chmod +x "$tree/build/src/replay-a"
	run -1 runner
	last_line "0 passed, 1 failed"
	output_has "corpus/a"
}

# two_files: test/a.bats, and test/b.bats with two tests
two_files() {
	echo '@test "a: one" { true; }' >"$tree/test/a.bats"
	printf '@test "b: %s" { true; }\n' one two >"$tree/test/b.bats"
}

@test "run: a suite selects the files that suites.txt lists, or leaves them out" {
	two_files
	printf '%s\n' '# comment' '' 'small  test/a*  # short' >"$tree/test/suites.txt"
	run -0 runner --suite small
	last_line "1 passed, 0 failed"
	run -0 runner --without-suite small
	last_line "2 passed, 0 failed"
	run -1 runner --suite large
	[ "$output" = "test/suites.txt has no suite large" ]
}

@test "run: a line of suites.txt that matches no test file is an error" {
	two_files
	echo 'small test/gone.bats' >"$tree/test/suites.txt"
	run -1 runner
	[ "$output" = "test/suites.txt:1: no test file matches test/gone.bats" ]
}

@test "run: files start in the order of durations.txt, and the last local run overrides it" {
	two_files
	printf '%s\n' '# comment' '5.0	test/a.bats' '9.0	test/b.bats' >"$tree/test/durations.txt"
	run -0 runner --jobs 1
	[[ ${lines[0]} == *test/b.bats* ]]
	echo '{"test/a.bats": 20, "test/b.bats": 2}' >"$tree/build/test-times.json"
	run -0 runner --jobs 1
	[[ ${lines[0]} == *test/a.bats* ]]
}

@test "run: a table runs one case at a time, and more if it is the only file" {
	mkdir "$tree/test/differential"
	touch "$tree/test/differential/"{a,b}.cases
	printf '%s\n' '#!/bin/sh' 'echo 1..1' 'echo "ok 1 $*"' 'echo "$@" >>jobs' >"$tree/test/differential/run"
	chmod +x "$tree/test/differential/run"
	run -0 runner --jobs 3
	run -0 sort "$tree/jobs"
	[ "$output" = "--jobs 1 a"$'\n'"--jobs 1 b" ]
	rm "$tree/jobs"
	run -0 runner --jobs 3 --filter 'a'
	[ "$(<"$tree/jobs")" = "--jobs 3 a" ]
}

@test "run: --save-durations replaces the times of the files that ran and drops files that are gone" {
	two_files
	printf '%s\n' '500.0	test/a.bats' '600.0	test/b.bats' '700.0	test/gone.bats' >"$tree/test/durations.txt"
	run -0 runner --filter a.bats --save-durations
	run -0 cut -f 2 "$tree/test/durations.txt"
	[ "${lines[-2]} ${lines[-1]}" = "test/a.bats test/b.bats" ]
	[[ $output != *gone* ]]
	run -0 grep -c '^600.0	test/b.bats' "$tree/test/durations.txt"
	run -1 grep '^500.0' "$tree/test/durations.txt"
}
