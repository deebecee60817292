# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # variables are those of the tests and of run
#
# test/harness.bash - a source tree for the tests of test/run and of tools
load lib

# A separate source tree that contains only the runner; the tests write test files into it.
setup() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree/test" "$tree/src/base" "$tree/build/src"
	cp "$HAWSER_SRC"/test/{run,sandbox,wait.bash} "$tree/test"
	cd "$BATS_TEST_TMPDIR" || return
	echo '# nothing' >"$tree/test/allowed-skips.txt"
}

runner() {
	env -u HAWSER_REQUIRE -u HAWSER_SRC -u HAWSER_BUILD "$tree/test/run" "$@"
}

last_line() {
	[ "${lines[-1]}" = "$1" ] || { echo "last line: ${lines[-1]}"; false; }
}

output_has() {
	[[ $output == *"$1"* ]] || { echo "$output"; false; }
}

sandbox() {
	env -u HAWSER_SRC -u HAWSER_BUILD "$tree/test/sandbox" "$@"
}
