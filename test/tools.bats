#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/tools.bats - tools that run tests: tools/stages.bash adds up totals, tools/lint/run --changed finds
# changed files, tools/fuzz detects a fuzzer that does not work.
# shellcheck disable=SC2154 # variables come from harness.bash and from run
bats_require_minimum_version 1.5.0
load harness

# stages LINE...: run these lines in a shell that has sourced tools/stages.bash
stages() {
	bash -c "set -euo pipefail; source '$HAWSER_SRC/tools/stages.bash'"$'\n'"$(printf '%s\n' "$@")"
}

@test "stages: the last line is the sum of all stages, and each stage has a line with its total" {
	run -0 stages 'stage one echo "2 passed, 0 failed"' 'stage two echo "3 passed, 0 failed, 4 skipped"' end_stages
	last_line "5 passed, 0 failed, 4 skipped"
	[[ ${lines[-3]} =~ ^one\ +2\ passed,\ 0\ failed,\ [0-9]+\ s$ ]]
	[[ ${lines[-2]} =~ ^two\ +3\ passed,\ 0\ failed,\ 4\ skipped,\ [0-9]+\ s$ ]]
}

@test "stages: a stage that fails without a total counts as one failure, and the next stage runs" {
	run -1 stages 'stage one false' 'stage two sh -c "echo 1 passed, 0 failed; exit 3"' \
		'stage three echo "1 passed, 2 failed"' 'stage four echo nothing' end_stages
	last_line "2 passed, 5 failed"
}

@test "stages: the total of a stage that make runs counts after a failure, too" {
	run -1 stages 'stage one sh -c "echo 3 passed, 2 failed; echo make: Error 1; exit 2"' end_stages
	last_line "3 passed, 2 failed"
}

# refuse PATTERN: print a script that fails if a file among its arguments contains PATTERN
refuse() {
	printf '%s\n' '#!/bin/sh' 'for file; do' "	case \$file in -*) ;; *) ! grep -l '$1' \"\$file\" || exit 1 ;; esac" 'done'
}

# lint_tree: a git repository with tools/lint, a branch main, and a changed, a new and an unchanged C file. Scripts
# stand for the programs that lint runs, which are not installed for the tests: clang-tidy notes its arguments,
# clang-format refuses several spaces in a row, and shellcheck refuses $1 without quotes.
lint_tree() {
	mkdir -p "$tree/tools" "$tree/build"
	cp -r "$HAWSER_SRC/tools/lint" "$tree/tools"
	cp "$HAWSER_SRC"/.clang-{format,tidy} "$tree"
	printf '#!/bin/sh\n' >"$tree/tools/lint/hawser-lint"
	echo '[{"file": "../old.c"}, {"file": "../changed.c"}, {"file": "../new.c"}]' >"$tree/build/compile_commands.json"
	cd "$tree" || return
	git init -q -b main .
	git config user.name hawser
	git config user.email hawser@localhost
	echo '/build/' >.gitignore
	echo 'int   old;' | tee old.c >changed.c
	git add .
	git commit -q -m start
	git checkout -q -b work
	printf '#!/bin/sh\necho "$@" >>%s/tidy\n' "$tree/build" >build/clang-tidy
	refuse '[a-z]  ' >build/clang-format-14
	refuse 'echo .1' >build/shellcheck
	chmod +x build/clang-tidy build/clang-format-14 build/shellcheck
	PATH=$tree/build:$PATH
}

@test "lint: --changed checks the files that differ from main and new files, and no others" {
	need jq
	lint_tree
	run -0 tools/lint/run --changed
	last_line "5 passed, 0 failed"
	echo 'int changed;' >changed.c
	git commit -q -a -m change
	echo 'int new;' >new.c
	run -0 tools/lint/run --changed
	run -0 cat build/tidy
	[ "$output" = "-p build --quiet changed.c new.c" ]
	echo 'int   new;' >new.c
	run -1 tools/lint/run --changed
	output_has "lint: format: FAILED"
	last_line "4 passed, 1 failed"
	rm new.c
	printf '#!/bin/sh\necho $1\n' >script
	run -1 tools/lint/run --changed
	output_has "lint: shell: FAILED"
}

# fuzz_tree EMPTY-EDGES EDGES: a source tree with one built fuzzer that reports this coverage
fuzz_tree() {
	mkdir -p "$tree/tools" "$tree/build-clang/src" "$tree/test/corpus/a"
	cp "$HAWSER_SRC/tools/fuzz" "$tree/tools"
	printf '#!/bin/sh\n' >"$tree/tools/build"
	touch "$tree/src/base/fuzz-a.c"
	echo x >"$tree/test/corpus/a/seed"
	printf '%s\n' '#!/bin/sh' "cov=$2" "[ \$1 = -runs=1 ] && cov=$1" \
		'echo "#9 DONE   cov: $cov ft: 7 corp: 3/9b"' >"$tree/build-clang/src/fuzz-a"
	chmod +x "$tree/tools/build" "$tree/build-clang/src/fuzz-a"
}

@test "fuzz: a fuzzer that covers enough code passes, and its figures are printed" {
	fuzz_tree 10 100
	run -0 env FUZZ_SECONDS=1 "$tree/tools/fuzz"
	[[ ${lines[1]} =~ ^a\ +9\ +100\ +7\ +3$ ]]
	last_line "1 passed, 0 failed"
}

@test "fuzz: a fuzzer that covers hardly more than its entry function fails" {
	fuzz_tree 10 30
	run -1 "$tree/tools/fuzz"
	output_has "a: covers too little: 30 edges, 10 with an empty input"
	last_line "0 passed, 1 failed"
}

@test "fuzz: a crash, a missing corpus and an unbuilt fuzzer are failures" {
	fuzz_tree 10 100
	echo 'echo "ERROR: AddressSanitizer"; exit 1' >>"$tree/build-clang/src/fuzz-a"
	run -1 "$tree/tools/fuzz"
	output_has "ERROR: AddressSanitizer"
	rm "$tree/test/corpus/a/seed"
	run -1 "$tree/tools/fuzz"
	output_has "no corpus"
	rm "$tree/build-clang/src/fuzz-a"
	run -1 "$tree/tools/fuzz"
	output_has "not built"
}
