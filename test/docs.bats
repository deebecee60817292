#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The documents say what is there.
load lib

# Every name that a test can print: cmocka's in the C files, bats's in the bats files, and the cases
# of the differential suite.
test_names() {
	"$HAWSER_SRC"/test/differential/run --list
	grep -rhoE '"[a-z0-9-]+: [^"]+"' "$HAWSER_SRC"/src --include='test-*.c' | tr -d '"'
	grep -rhoE '^@test "[^"]+"' "$HAWSER_SRC"/test --include='*.bats' | sed 's/^@test //' | tr -d '"'
}

# The fourth column of every row.
named_tests() {
	awk -F' \\| ' '/^\| / && !/^\| Go does/ { print $4 }' "$HAWSER_SRC/docs/compatibility.md"
}

@test "docs: every row of compatibility.md names a test that exists, and a kind" {
	test_names | sort -u >"$BATS_TEST_TMPDIR/names"
	named_tests | sort -u >"$BATS_TEST_TMPDIR/named"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/named")" -gt 30 ]
	comm -13 "$BATS_TEST_TMPDIR/names" "$BATS_TEST_TMPDIR/named" >"$BATS_TEST_TMPDIR/unknown"
	cat "$BATS_TEST_TMPDIR/unknown"
	[ ! -s "$BATS_TEST_TMPDIR/unknown" ]
	odd=$(grep '^| ' "$HAWSER_SRC/docs/compatibility.md" | grep -v '^| Go does' |
		grep -v -e '| ours |$' -e '| newer upstream |$' || true)
	[ -z "$odd" ]
}

@test "docs: every link between the documents leads somewhere" {
	cd "$HAWSER_SRC"
	for file in *.md docs/*.md bench/*.md examples/*/*.md; do
		for link in $(grep -oE '\]\([^)#:]+\)' "$file" | tr -d '])('); do
			[ -e "$(dirname "$file")/$link" ] || { echo "$file: $link"; false; }
		done
	done
}
