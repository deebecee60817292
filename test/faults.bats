#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/faults.bats - the fault harness itself: it injects faults at the requested system call, and it
# detects leftovers

bats_require_minimum_version 1.5.0
load wait.bash

setup() {
	inject=$HAWSER_BUILD/test/inject
	report=$BATS_TEST_TMPDIR/report
	cd "$BATS_TEST_TMPDIR" || return
	"$inject" --count --report "$report" -- true || [ $? != 77 ] || skip "ptrace is not permitted"
}

# scenario NAME OPERATION REPAIR: write a scenario whose state is the files made*, and print its path
scenario() {
	cat >"$BATS_TEST_TMPDIR/$1.scenario" <<-END
		setup() { rm -f "\$work"/made*; }
		operation() { inject sh -c '$2'; }
		repair() { $3; }
		state() { state_files "\$work"/made*; }
		cd "\$work"
	END
	echo "$BATS_TEST_TMPDIR/$1.scenario"
}

@test "inject: a program's system calls are counted from its entry point" {
	"$inject" --count --list --report "$report" -- sh -c ': >made'
	grep -q '^counted [1-9][0-9]* [1-9][0-9]* 0$' "$report"
	grep -q ' openat *sh$' "$report"
	run ! grep -q ' arch_prctl ' "$report" # a system call of the dynamic linker
}

@test "inject: counting the system calls of a command twice gives the same numbers" {
	"$inject" --count --report "$report" -- sh -c ': >made; ls made'
	"$inject" --count --report "$report.2" -- sh -c ': >made; ls made'
	diff "$report" "$report.2"
}

@test "inject: system calls of descendants are also counted, even after exec" {
	"$inject" --count --list --report "$report" -- sh -c 'sh -c "/bin/ls / | wc -l; :"; :'
	grep -q ' ls$' "$report"
	grep -q ' wc$' "$report"
}

@test "inject: a command is killed before the system call takes effect" {
	"$inject" --count --list --report "$report" -- sh -c ': >first; : >second'
	# the last openat in the list opens "second"
	point=$(awk '$3 == "openat" && $4 == "sh" { n = $1 } END { print n }' "$report")
	rm first second
	run -137 "$inject" --kill "$point" --report "$report" -- sh -c ': >first; : >second'
	[ "$(<"$report")" = "killed at $point openat sh" ]
	[ -e first ]
	[ ! -e second ]
}

@test "inject: all processes are killed, parents first" {
	point=$("$inject" --count --list --report /dev/stdout -- sh -c 'ls / >out; echo >after' |
		awk '$4 == "ls" { n = $1 } END { print n }')
	rm after
	run -137 "$inject" --kill "$point" --report "$report" -- sh -c 'ls / >out; echo >after'
	grep -q ' ls$' "$report"
	[ ! -e after ]
}

@test "inject: a system call fails with a typical errno for that call" {
	point=$("$inject" --count --list --report /dev/stdout -- sh -c ': >made' |
		awk '$3 == "openat" { n = $2 } END { print n }')
	rm made
	run -2 "$inject" --fail "$point" --report "$report" -- sh -c ': >made'
	[[ $output == *"No space left on device"* ]]
	[ "$(<"$report")" = "failed at $point openat sh ENOSPC" ]
	[ ! -e made ]
}

@test "inject: --errno selects the errno of the failed system call" {
	point=$("$inject" --count --list --report /dev/stdout -- mkdir made |
		awk '$3 == "mkdir" || $3 == "mkdirat" { n = $2 } END { print n }')
	rmdir made
	run -1 "$inject" --fail "$point" --errno EROFS --report "$report" -- mkdir made
	[[ $output == *"Read-only file system"* ]]
	[ ! -e made ]
}

@test "inject: --list shows - instead of a number for --fail if a system call cannot fail" {
	"$inject" --count --list --report "$report" -- sh -c :
	[ "$(awk '$3 == "exit_group" { print $2 }' "$report")" = - ]
}

@test "inject: a point after the last system call is reported as missed, with the command's exit status" {
	run -3 "$inject" --kill 1000000 --report "$report" -- sh -c 'exit 3'
	[ "$(<"$report")" = "missed 1000000" ]
}

@test "inject: a command that hangs is killed at the deadline" {
	run -124 "$inject" --count --timeout 200 --report "$report" -- sh -c 'sleep infinity; :'
	[[ $(<"$report") == hung* ]]
	run ! pgrep -x sleep
}

@test "inject: a background process does not outlive inject" {
	"$inject" --count --linger 0 --report "$report" -- sh -c 'sleep infinity & exit 0'
	run ! pgrep -x sleep
}

# run_alone ARGUMENT...: run inject --alone. Processes that outlive it keep no pipe of bats open.
run_alone() { "$inject" --alone --report "$report" "$@" >/dev/null 2>&1 3>&-; }

# fifo_reader FILE: a command that creates FILE when something is written to the fifo "go"
fifo_reader() { echo "read -r _ <go; : >$1"; }

@test "inject: with --alone only the command is killed, with all its threads, and its children live on" {
	/usr/bin/python3 -c 'import threading' 2>/dev/null || skip "no python3"
	mkfifo go
	# Calls of the child may come before or after calls of its parent: so the point is one of many calls.
	cat >command.py <<-END
		import os, subprocess, threading
		child = subprocess.Popen(["sh", "-c", "echo ready; $(fifo_reader survived)"], stdout=subprocess.PIPE)
		child.stdout.readline()
		def create():
		    os.mkdir("first")
		    for _ in range(40):
		        os.getppid()
		    os.mkdir("second")
		thread = threading.Thread(target=create)
		thread.start()
		thread.join()
		os.mkdir("third")
		child.wait()
	END
	(echo >go) 3>&- &
	point=$("$inject" --count --list --report /dev/stdout -- /usr/bin/python3 command.py |
		awk '($3 == "mkdir" || $3 == "mkdirat") && ++n == 1 { print $1 + 20 }')
	wait $!
	rm -r first second third survived
	run -137 run_alone --kill "$point" -- /usr/bin/python3 command.py
	[[ $(<"$report") == "killed at $point "* ]]
	[ -e first ]
	[ ! -e second ]
	[ ! -e third ]
	[ ! -e survived ]
	echo >go
	wait_until test -e survived
}

@test "inject: with --alone, a background process outlives a command that ends by itself" {
	mkfifo go
	run_alone --count -- sh -c "sh -c '$(fifo_reader survived)' & exit 0"
	[[ $(<"$report") == counted* ]]
	[ ! -e survived ]
	echo >go
	wait_until test -e survived
}

@test "inject: with --alone, a child that has not reached its entry point lives on" {
	# the child executes ls, whose dynamic linker is not counted, and the point is the next call of the shell
	"$inject" --count --list --report "$report" -- sh -c 'ls / >out & : >first'
	point=$(awk '$4 == "ls" { print $1; exit }' "$report")
	rm -f out first
	run -137 run_alone --kill $((point - 1)) -- sh -c 'ls / >out & : >first; wait'
	wait_until grep -q '^bin$' out
}

@test "inject: with --fail-own, calls of other programs that the command executes cannot fail" {
	"$inject" --count --fail-own --list --report "$report" -- sh -c '(: >first); ls / >out'
	[ "$(awk '$4 == "ls" { print $2 }' "$report" | sort -u)" = - ]
	[ "$(awk '$4 == "sh" && $2 != "-" && $3 ~ /^open/' "$report" | wc -l)" -ge 2 ]
}

@test "inject: a write to an eventfd cannot fail" {
	"$inject" --count --list --report "$report" -- /usr/bin/python3 -c '
import os
os.eventfd_write(os.eventfd(0), 1) if hasattr(os, "eventfd") else exit(1)
os.write(os.open("file", os.O_WRONLY | os.O_CREAT), b"text")'
	[ "$(awk '/eventfd/ { found = 1 } found && $3 == "write" { print $2 == "-" }' "$report")" = $'1\n0' ]
}

@test "inject: a program that stops itself continues after SIGCONT" {
	"$inject" --count --timeout 20000 --report "$report" -- \
		sh -c '(while kill -CONT $$; do sleep 0.05; done) & kill -STOP $$; exit 0' # the interval of the signals
	[[ $(<"$report") == counted* ]]
}

@test "inject: an exec by a thread is traced" {
	/usr/bin/python3 -c 'import threading' 2>/dev/null || skip "no python3"
	run -0 "$inject" --count --report "$report" -- /usr/bin/python3 -c '
import os, threading
threading.Thread(target=lambda: os.execv("/bin/echo", ["echo", "traced"])).start()
threading.Event().wait()'
	[ "$output" = traced ]
}

@test "faults: a scenario passes if its repair leaves nothing behind at any point" {
	run -0 "$HAWSER_SRC/test/faults/run" --tap \
		"$(scenario good 'true >made1 && true >made2' 'rm -f made1 made2')"
	[[ ${lines[0]} == "1..2" ]]
	[[ $output == *"ok 1 good: killed at "*" points, nothing left behind"* ]]
	[[ $output == *"ok 2 good: failed at "*" points, nothing left behind"* ]]
}

@test "faults: a file left behind at some points is reported, with the command to repeat a point" {
	# made1 is removed only if made2 exists too
	run -1 "$HAWSER_SRC/test/faults/run" --tap --all \
		"$(scenario leak 'true >made1 && true >made2' '[ ! -e made2 ] || rm -f made1 made2')"
	[[ $output == *"not ok 1 leak: killed at "*" not repaired"* ]]
	[[ $output == *"to repeat: test/faults/run --point kill "*" leak"* ]]
	[[ $output == *"+file f "*"/made1"* ]]
}

@test "faults: a plugin that creates a file before it records the file is reported" {
	run -1 "$HAWSER_SRC/test/faults/run" --tap "$HAWSER_SRC/test/faults/broken/leaky.scenario"
	[[ $output == *"not ok 1 leaky: killed at "*" not repaired"* ]]
	[[ $output == *"+file f "*"/made/"* ]]
}

@test "faults: a repair that fails is reported" {
	run -1 "$HAWSER_SRC/test/faults/run" --tap \
		"$(scenario broken 'true >made1 && true >made2' 'rm made1 made2')"
	[[ $output == *"repair failed with 1: rm: cannot remove"* ]]
}

@test "faults: an operation that falsely reports success is reported" {
	# the shell ignores that its first command failed
	file=$(scenario false 'true >made1; true >made2' 'rm -f made1 made2')
	# shellcheck disable=SC2016
	echo 'verify() { [ "$1" != 0 ] || [ -e made1 ]; }' >>"$file"
	run -1 "$HAWSER_SRC/test/faults/run" --tap --all "$file"
	[[ $output == *"ok 1 false: killed"* ]]
	[[ $output == *"verify failed with 1"* ]]
	[[ $output == *"not ok 2 false: failed"* ]]
}

@test "faults: an operation that hangs after a failure is reported" {
	file=$(scenario hang 'true >made1 || sleep infinity; true' 'rm -f made1')
	echo 'timeout_ms=500' >>"$file"
	run -1 "$HAWSER_SRC/test/faults/run" --tap --all "$file"
	[[ $output == *"the operation hung"* ]]
}

@test "faults: a sanitizer report of an operation that fails is reported" {
	cat >bad.c <<-'END'
		#include <fcntl.h>
		#include <stdlib.h>
		int main(void)
		{
			char *p = malloc(1);
			if (open("made1", O_CREAT | O_WRONLY, 0600) < 0)
				p[1] = 0;
			return 0;
		}
	END
	cc -fsanitize=address -o bad bad.c
	file=$(scenario overflow "$PWD/bad" 'rm -f made1')
	run -1 "$HAWSER_SRC/test/faults/run" --tap --all "$file"
	[[ $output == *"heap-buffer-overflow"* ]]
}

@test "faults: an operation that fails without a fault is reported" {
	run -1 "$HAWSER_SRC/test/faults/run" --tap "$(scenario never 'exit 4' true)"
	[[ $output == *"the operation fails without a fault, with 4"* ]]
}

@test "faults: with the mode alone, a child that lives on is reported if the repair does not end it" {
	# the child is ended only if made1 exists
	file=$(scenario alone '(read -r _ <go) & true >made1' '[ ! -e made1 ] || pkill -f "read -r _ <go"; rm -f made1')
	cat >>"$file" <<-'END'
		modes=(kill alone fail)
		mkfifo "$work/go"
		state() { pgrep -fc "sh -c .read -r _ <go" || true; }
	END
	run -1 "$HAWSER_SRC/test/faults/run" --tap "$file" 3>&-
	[[ ${lines[0]} == "1..3" ]]
	[[ $output == *"ok 1 alone: killed at "* ]]
	[[ $output == *"not ok 2 alone: killed alone at "* ]]
	[[ $output == *"to repeat: test/faults/run --point alone "* ]]
}

@test "faults: --point repeats one point, --list lists the points" {
	file=$(scenario good 'true >made1' 'rm -f made1')
	run -0 "$HAWSER_SRC/test/faults/run" --list "$file"
	[[ $output == *" openat "* ]]
	run -0 "$HAWSER_SRC/test/faults/run" --point kill 3 "$file"
	[[ $output == *"point 3: killed at 3 "* ]]
}
