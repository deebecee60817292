#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The documents say what is there.
load lib

# Every name that a test can print: cmocka's in the C files, bats's and pytest's in theirs, and the
# cases of the differential suite.
test_names() {
	"$HAWSER_SRC"/test/differential/run --list
	grep -rhoE '"[a-z0-9-]+: [^"]+"' "$HAWSER_SRC"/src --include='test-*.c' | tr -d '"'
	grep -rhoE '^@test "[^"]+"' "$HAWSER_SRC"/test --include='*.bats' | sed 's/^@test //' | tr -d '"'
	grep -rhoE '^def test_\w+' "$HAWSER_SRC"/test --include='test_*.py' | sed 's/^def //'
}

# Every row of compatibility.md but the heads of its tables, with its heading and a tab before it.
rows() {
	awk '/^#/ { heading = $0 } /^\| / && !/^\| (upstream|configuration) \|/ { print heading "\t" $0 }' \
		"$HAWSER_SRC/docs/compatibility.md"
}

# The last column but one.
named_tests() { rows | awk -F' \\| ' '{ print $(NF - 1) }'; }

@test "docs: every row of compatibility.md names a test that exists, and a kind" {
	test_names | sort -u >"$BATS_TEST_TMPDIR/names"
	named_tests | sort -u >"$BATS_TEST_TMPDIR/named"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/named")" -gt 30 ]
	comm -13 "$BATS_TEST_TMPDIR/names" "$BATS_TEST_TMPDIR/named" >"$BATS_TEST_TMPDIR/unknown"
	cat "$BATS_TEST_TMPDIR/unknown"
	[ ! -s "$BATS_TEST_TMPDIR/unknown" ]
	odd=$(rows | grep -v -e '| ours |$' -e '| newer upstream |$' || true)
	[ -z "$odd" ]
}

@test "docs: every row of compatibility.md has the columns of its table" {
	run awk -F' \\| ' '!/^\|/ { n = 0 } /^\| / { if (!n) n = NF; if (NF != n) print FILENAME ":" FNR }' \
		"$HAWSER_SRC/docs/compatibility.md"
	[ "$output" = "" ]
}

# Peer, plugin, case and reason of every row of allowed.tsv.
allowed() { grep -v '^#' "$HAWSER_SRC/test/differential/allowed.tsv" | cut -f 1-3,7; }

# (what differs because of a plugin before this one, "after ptp*", is explained with that one)
@test "docs: every difference that is allowed is explained, under its plugin and of its kind" {
	rows >"$BATS_TEST_TMPDIR/rows"
	[ "$(allowed | wc -l)" -gt 30 ]
	while IFS=$'\t' read -r peer plugin case reason; do
		kind=ours
		[ "$peer" != 1.1.1 ] || kind="newer upstream"
		[[ $case != "after "* ]] || plugin=$(tr -d '*' <<<"${case#after }")
		grep -E "^## (.* )?$plugin( .*)?"$'\t' "$BATS_TEST_TMPDIR/rows" | grep "| $kind |\$" |
			grep -qF -- "$reason" || echo "$kind, $plugin: $reason"
	done < <(allowed) | sort -u >"$BATS_TEST_TMPDIR/unexplained"
	cat "$BATS_TEST_TMPDIR/unexplained"
	[ ! -s "$BATS_TEST_TMPDIR/unexplained" ]
}

@test "docs: every link between the documents leads somewhere" {
	cd "$HAWSER_SRC"
	for file in *.md docs/*.md bench/*.md examples/*/*.md; do
		for link in $(grep -oE '\]\([^)#:]+\)' "$file" | tr -d '])('); do
			[ -e "$(dirname "$file")/$link" ] || { echo "$file: $link"; false; }
		done
	done
}

@test "docs: README's table of plugins has every plugin and no other" {
	sed -n '/^| plugin |/,/^$/s/^| `\([a-z-]*\)` |.*/\1/p' "$HAWSER_SRC/README.md" | sort |
		diff - <(hawser-plugin list --json | jq -r '.[].name' | sort)
}
