#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The harness itself: test/sandbox leaves nothing and touches nothing, test/run counts right,
# tools/fuzz tells a fuzzer that works from one that does not.

bats_require_minimum_version 1.5.0
load lib

# A tree of its own with the runner in it, to put tests into.
setup() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree/test" "$tree/src/base" "$tree/build/src"
	cp "$HAWSER_SRC"/test/{run,sandbox} "$tree/test"
	echo '# nothing' >"$tree/test/cannot.txt"
}

runner() {
	env -u HAWSER_REQUIRE -u HAWSER_SRC -u HAWSER_BUILD "$tree/test/run" "$@"
}

strict_runner() {
	env -u HAWSER_SRC -u HAWSER_BUILD HAWSER_REQUIRE=all "$tree/test/run" "$@"
}

# unit NAME LINE...: a unit test that prints these lines; "exit N" and the like are commands
unit() {
	touch "$tree/src/base/$1.c"
	printf '%s\n' '#!/bin/sh' "${@:2}" >"$tree/build/src/$1"
	chmod +x "$tree/build/src/$1"
}

last_line() {
	[ "${lines[-1]}" = "$1" ] || { echo "last line: ${lines[-1]}"; false; }
}

says() {
	[[ $output == *"$1"* ]] || { echo "$output"; false; }
}

# wait_until COMMAND...: for as long as ten seconds
wait_until() {
	local i
	for ((i = 0; i < 200; i++)); do
		if "$@" >/dev/null; then return 0; fi
		sleep 0.05
	done
	echo "never happened: $*"
	return 1
}

sandbox() {
	env -u HAWSER_SRC -u HAWSER_BUILD "$tree/test/sandbox" "$@"
}

@test "sandbox: the exit status is the command's" {
	run -7 sandbox sh -c 'exit 7'
}

@test "sandbox: the command is not the first process" {
	run -0 sandbox sh -c 'echo $PPID'
	[ "$output" = 1 ]
}

@test "sandbox: the network has lo, up, and nothing else; /sys shows the same" {
	ip link add dummy-br type bridge
	run -0 sandbox sh -c 'ip -o link show up; ls /sys/class/net'
	[ "${#lines[@]}" -eq 2 ]
	[[ ${lines[0]} == *": lo:"* ]]
	[ "${lines[1]}" = lo ]
}

@test "sandbox: named network namespaces made inside stay inside" {
	run -0 sandbox sh -c 'ip netns add inside && ip netns exec inside true && ip netns'
	[ "$output" = inside ]
	[ ! -e /run/netns/inside ]
}

@test "sandbox: what is written to /run, /tmp, /etc, /opt and /var/lib is gone afterwards" {
	local dirs="/run /tmp /etc /etc/cni /etc/cni/net.d /opt /opt/cni /var/lib /var/lib/cni"
	run -0 sandbox sh -c "for d in $dirs; do echo x >\$d/harness-was-here || exit 1; done"
	local dir
	for dir in $dirs; do
		[ ! -e "$dir/harness-was-here" ]
	done
}

@test "sandbox: CNI folders are empty whatever the machine has there" {
	mkdir -p /etc/cni/net.d /var/lib/cni /opt/cni/bin
	touch /etc/cni/net.d/theirs /var/lib/cni/theirs /opt/cni/bin/theirs
	run -0 sandbox find /etc/cni /var/lib/cni /opt/cni -type f
	[ -z "$output" ]
}

@test "sandbox: nothing survives its end" {
	run -0 sandbox sh -c 'setsid sleep 7654 & exit 0'
	run ! pgrep -f 'sleep 765[4]'
}

@test "sandbox: nothing survives when it is killed" {
	local signal pid
	for signal in TERM HUP KILL; do
		env -u HAWSER_SRC -u HAWSER_BUILD "$tree/test/sandbox" \
			sh -c 'setsid sleep 8765 & touch started; sleep 8765' 3>&- &
		pid=$!
		wait_until test -e "$tree/started"
		rm "$tree/started"
		kill -"$signal" "$pid"
		wait_until eval '! pgrep -f "sleep 876[5]"'
	done
}

@test "run: passed tests of all kinds make one total" {
	unit test-a 'echo 1..2' 'echo ok 1 - a: one' 'echo ok 2 - a: two'
	echo '@test "b: one" { true; }' >"$tree/test/b.bats"
	echo 'def test_one(): pass' >"$tree/test/test_c.py"
	run -0 runner
	last_line "4 passed, 0 failed"
}

@test "run: a failed test is shown with its output and makes the status 1" {
	unit test-a 'echo 1..1' 'echo said before' 'echo not ok 1 - a: one' 'echo "# said after"'
	echo '@test "b: one" { echo from bats; false; }' >"$tree/test/b.bats"
	printf 'def test_one():\n    assert 1 == 2, "from pytest"\n' >"$tree/test/test_c.py"
	run -1 runner
	last_line "0 passed, 3 failed"
	says "said before"
	says "said after"
	says "# from bats"
	says "from pytest"
}

@test "run: skips are counted and listed with their reasons" {
	unit test-a 'echo 1..1' 'echo no unicorn' 'echo "not ok 1 # SKIP a: one"'
	echo '@test "b: one" { skip "no dragon"; }' >"$tree/test/b.bats"
	printf 'import pytest\ndef test_one():\n    pytest.skip("no griffin")\n' >"$tree/test/test_c.py"
	run -0 runner
	last_line "0 passed, 0 failed, 3 skipped"
	says "skipped, no unicorn:"
	says "skipped, no dragon:"
	says "skipped, no griffin:"
}

@test "run: a program that exits with 77 before its first test is skipped, and has said why" {
	unit test-a 'echo no phoenix' 'exit 77'
	run runner
	last_line "0 passed, 0 failed, 1 skipped"
	says "skipped, no phoenix:"
	unit test-a 'echo 1..1' 'echo ok 1 one' 'exit 77'
	run runner
	last_line "1 passed, 1 failed"
}

@test "run: HAWSER_REQUIRE=all makes a skip a failure unless cannot.txt has it" {
	unit test-a 'echo 1..2' 'echo no unicorn' 'echo "not ok 1 # SKIP a: one"' \
		'echo no unicorn' 'echo "not ok 2 # SKIP a: two"'
	echo 'src/*/test-a.c | a: t* | there are no unicorns' >"$tree/test/cannot.txt"
	run -1 strict_runner
	last_line "0 passed, 1 failed, 1 skipped"
	says "HAWSER_REQUIRE=all: no unicorn"
}

@test "run: HAWSER_REQUIRE=all names the lines of cannot.txt that excuse nothing" {
	unit test-a 'echo 1..1' 'echo ok 1 - a: one'
	echo 'src/*/test-a.c | a: one | not any more' >"$tree/test/cannot.txt"
	run -0 strict_runner
	says "test/cannot.txt:1 excuses nothing"
	last_line "1 passed, 0 failed"
}

@test "run: a file that announces more tests than it runs fails" {
	unit test-a 'echo 1..2' 'echo ok 1 - a: one' 'kill -SEGV $$'
	run -1 runner
	last_line "1 passed, 1 failed"
	says "2 tests announced, 1 ran, exit status 139"
}

@test "run: a file without a test fails" {
	unit test-a 'exit 0'
	run -1 runner
	last_line "0 passed, 1 failed"
	says "no test ran"
}

@test "run: a file whose tests pass but whose exit status does not fails" {
	unit test-a 'echo 1..1' 'echo ok 1 - a: one' 'echo LeakSanitizer' 'exit 23'
	run -1 runner
	last_line "1 passed, 1 failed"
	says "exit status 23 though no test failed"
}

@test "run: a test that is not built fails" {
	touch "$tree/src/base/test-a.c"
	run -1 runner
	says "not built"
}

@test "run: a file that does not end is killed, with what it started, and fails" {
	unit test-a 'echo 1..2' 'echo ok 1 - a: one' 'setsid sleep 6543 &' 'sleep 6543'
	run -1 runner --timeout 1
	last_line "1 passed, 1 failed"
	says "not finished after 1 s"
	run ! pgrep -f 'sleep 654[3]'
}

@test "run: pytest that crashes halfway fails" {
	printf 'import os\ndef test_one():\n    os._exit(0)\n' >"$tree/test/test_c.py"
	run -1 runner
	last_line "0 passed, 1 failed"
}

@test "run: a tree without tests fails" {
	run -1 runner
	last_line "0 passed, 1 failed"
}

@test "run: a filter picks files, or else tests" {
	unit test-a 'echo 1..1' 'echo ok 1 - a: one'
	printf '@test "b: %s" { true; }\n' one two three >"$tree/test/b.bats"
	run -0 runner --filter test-a
	last_line "1 passed, 0 failed"
	run -0 runner --filter 'b: t*'
	last_line "2 passed, 0 failed"
	run -0 runner --filter 'b.bats' --list
	[ "$output" = test/b.bats ]
}

@test "run: files can be left out" {
	unit test-a 'echo 1..1' 'echo "ok 1 - a: one"'
	echo '@test "b: one" { true; }' >"$tree/test/b.bats"
	run -0 runner --without 'src/*' --without 'test/c*' --list
	[ "$output" = test/b.bats ]
}

@test "run: without root, what needs root is skipped and the rest runs" {
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
	says "skipped, needs root:"
}

# fuzz_tree EMPTY-EDGES EDGES: a tree with one fuzzer, built already, that says it covers so much
fuzz_tree() {
	mkdir -p "$tree/tools" "$tree/build-fuzz/src" "$tree/test/corpus/a"
	cp "$HAWSER_SRC/tools/fuzz" "$tree/tools"
	printf '#!/bin/sh\n' >"$tree/tools/build"
	touch "$tree/src/base/fuzz-a.c"
	echo x >"$tree/test/corpus/a/seed"
	printf '%s\n' '#!/bin/sh' "cov=$2" "[ \$1 = -runs=1 ] && cov=$1" \
		'echo "#9 DONE   cov: $cov ft: 7 corp: 3/9b"' >"$tree/build-fuzz/src/fuzz-a"
	chmod +x "$tree/tools/build" "$tree/build-fuzz/src/fuzz-a"
}

@test "fuzz: a fuzzer that gets beyond its entry passes, with its figures" {
	fuzz_tree 10 100
	run -0 env FUZZ_SECONDS=1 "$tree/tools/fuzz"
	[[ ${lines[1]} =~ ^a\ +9\ +100\ +7\ +3$ ]]
	[[ ${lines[-1]} == "1 fuzzers, 0 failed;"* ]]
}

@test "fuzz: a fuzzer that reaches nothing beyond its entry fails" {
	fuzz_tree 10 30
	run -1 "$tree/tools/fuzz"
	says "a: reaches nothing: 30 edges, 10 with an empty input"
}

@test "fuzz: a crash, a missing corpus and a fuzzer that is not built fail" {
	fuzz_tree 10 100
	echo 'echo "ERROR: AddressSanitizer"; exit 1' >>"$tree/build-fuzz/src/fuzz-a"
	run -1 "$tree/tools/fuzz"
	says "ERROR: AddressSanitizer"
	rm "$tree/test/corpus/a/seed"
	run -1 "$tree/tools/fuzz"
	says "no corpus"
	rm "$tree/build-fuzz/src/fuzz-a"
	run -1 "$tree/tools/fuzz"
	says "not built"
}
