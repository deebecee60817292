#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/docs.bats - the documents match the source tree
load lib

# Prints the names of all tests: of cmocka in the C files, of bats and pytest files, and the cases of the
# differential suite.
test_names() {
	"$HAWSER_SRC"/test/differential/run --list
	grep -rhoE '"[a-z0-9-]+: [^"]+"' "$HAWSER_SRC"/src --include='test-*.c' | tr -d '"'
	grep -rhoE '^@test "[^"]+"' "$HAWSER_SRC"/test --include='*.bats' | sed 's/^@test //' | tr -d '"'
	grep -rhoE '^def test_\w+' "$HAWSER_SRC"/test --include='test_*.py' | sed 's/^def //'
}

# Prints every row of compatibility.md except table heads. Before each row it prints the heading of the row's
# section and a tab.
rows() {
	awk '/^#/ { heading = $0 } /^\| / && !/^\| (upstream|configuration) \|/ { print heading "\t" $0 }' \
		"$HAWSER_SRC/docs/compatibility.md"
}

# Prints the column with the names of tests, which is the last but one.
named_tests() { rows | awk -F' \\| ' '{ print $(NF - 1) }'; }

@test "docs: every row of compatibility.md names an existing test and a kind" {
	test_names | sort -u >"$BATS_TEST_TMPDIR/names"
	named_tests | sort -u >"$BATS_TEST_TMPDIR/named"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/named")" -gt 30 ]
	comm -13 "$BATS_TEST_TMPDIR/names" "$BATS_TEST_TMPDIR/named" >"$BATS_TEST_TMPDIR/unknown"
	cat "$BATS_TEST_TMPDIR/unknown"
	[ ! -s "$BATS_TEST_TMPDIR/unknown" ]
	odd=$(rows | grep -v -e '| ours |$' -e '| newer upstream |$' || true)
	[ -z "$odd" ]
}

@test "docs: every row of compatibility.md has as many columns as its table" {
	run awk -F' \\| ' '!/^\|/ { n = 0 } /^\| / { if (!n) n = NF; if (NF != n) print FILENAME ":" FNR }' \
		"$HAWSER_SRC/docs/compatibility.md"
	[ "$output" = "" ]
}

# Prints peer, plugin, case and reason of every row of allowed.tsv.
allowed() { grep -v '^#' "$HAWSER_SRC/test/differential/allowed.tsv" | cut -f 1-3,7; }

# (a case "after ptp*" differs because of ptp, so the section of ptp explains the difference)
@test "docs: every row of allowed.tsv is explained in compatibility.md, under its plugin and kind" {
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

@test "docs: every link between documents has a target" {
	cd "$HAWSER_SRC"
	for file in *.md docs/*.md bench/*.md examples/*/*.md; do
		for link in $(grep -oE '\]\([^)#:]+\)' "$file" | tr -d '])('); do
			[ -e "$(dirname "$file")/$link" ] || { echo "$file: $link"; false; }
		done
	done
}

@test "docs: README's table of plugins lists exactly the plugins of hawser-plugin" {
	sed -n '/^| plugin |/,/^$/s/^| `\([a-z-]*\)` |.*/\1/p' "$HAWSER_SRC/README.md" | sort |
		diff - <(hawser-plugin list --json | jq -r '.[].name' | sort)
}

# Prints the columns of each spec in critest.md: spec, hawser-cri, containerd, reason.
specs() { awk -F ' *[|] *' '$3 ~ /^(passed|failed|skipped)$/ && NF == 6 { print $2 "\t" $3 "\t" $4 "\t" $5 }' "$HAWSER_SRC/docs/critest.md"; }

@test "docs: critest.md is of the versions that make conformance uses; nothing failed on hawser-cri, and skips have reasons" {
	for program in cri_tools containerd; do
		version=$(sed -n "s/^${program}_version=//p" "$HAWSER_SRC/test/conformance/run")
		grep -q " $version\b" "$HAWSER_SRC/docs/critest.md"
	done
	specs >"$BATS_TEST_TMPDIR/specs"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/specs")" -gt 100 ]
	odd=$(awk -F '\t' '$2 == "failed" || ($2 == "skipped" || $3 == "skipped") && $4 == ""' "$BATS_TEST_TMPDIR/specs")
	[ "$odd" = "" ]
}
