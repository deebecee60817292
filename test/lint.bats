#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Each rule of tools/lint/hawser-lint can fail, and a clean tree passes all of them.
# Needs: no root

bats_require_minimum_version 1.5.0

# A small clean tree; each test puts one breach into it.
setup() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree/include/hawser" "$tree/src/base" "$tree/src/net" "$tree/src/cni" \
		"$tree/src/plugins" "$tree/examples"
	cd "$tree" || return
	git init -q .
	c_file include/hawser/x.h '#include <stddef.h>'
	c_file src/base/buf.h '#include <hawser/x.h>'
	c_file src/base/json/value.c '#include "base/buf.h"' '#include <jansson.h>'
	c_file src/net/rtnl/link.h 'struct buf;'
	c_file src/net/rtnl/link.c '#include "net/rtnl/link.h"' '#include "base/buf.h"'
	c_file src/plugins/bridge/bridge.c '#include "base/buf.h"' '#include "net/rtnl/link.h"'
	c_file examples/hello.c '#include <hawser/x.h>'
}

# c_file FILE LINE...: a tracked C file with a licence line
c_file() {
	local file=$1
	shift
	printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' "$@" >"$file"
	git add "$file"
}

lint() {
	"$HAWSER_SRC/tools/lint/hawser-lint" --root "$tree" "$@"
}

# refused RULE FILE:LINE TEXT: the rule finds exactly this
refused() {
	run -1 lint "$1"
	[ "${#lines[@]}" -eq 1 ]
	[[ ${lines[0]} == "$2: "*"$3"* ]]
}

@test "lint: a clean tree passes every rule" {
	run -0 lint
	[ -z "$output" ]
}

@test "lint: the whole list of rules is run when none is named" {
	c_file src/base/bad.h 'struct a x = atoi("1");' '#include "net/rtnl/link.h"'
	echo 'int x;' >src/base/bare.c
	git add src/base/bare.c
	run -1 lint
	[[ $output == *"does not compile alone"* ]]
	[[ $output == *"no arrow"* ]]
	[[ $output == *"banned"* ]]
	[[ $output == *"no line with SPDX"* ]]
}

@test "lint: an include against the arrows is refused" {
	c_file src/base/str.c '#include "base/buf.h"' '#include "net/rtnl/link.h"'
	refused arrows src/base/str.c:3 "no arrow from src/base to net"
}

@test "lint: an include between neighbours without an arrow is refused" {
	c_file src/cni/runtime/run.c '#include "net/rtnl/link.h"'
	refused arrows src/cni/runtime/run.c:2 "no arrow from src/cni to net"
}

@test "lint: angle brackets do not hide an include against the arrows" {
	c_file src/cni/runtime/run.c '#include <net/rtnl/link.h>'
	refused arrows src/cni/runtime/run.c:2 "no arrow from src/cni to net"
}

@test "lint: an include without its folder is refused" {
	c_file src/net/rtnl/addr.c '#include "link.h"'
	refused arrows src/net/rtnl/addr.c:2 "without its folder"
}

@test "lint: a folder that has no arrows is refused" {
	mkdir src/util
	c_file src/util/x.c '#include "base/buf.h"'
	refused arrows src/util/x.c:2 "no arrow from src/util to base"
}

@test "lint: a public header that includes an inner one is refused" {
	c_file include/hawser/x.h '#include "base/buf.h"'
	refused arrows include/hawser/x.h:2 "no arrow from include/hawser to base"
}

@test "lint: an example that includes an inner header is refused" {
	c_file examples/hello.c '#include "base/buf.h"'
	refused arrows examples/hello.c:2 "to base"
}

@test "lint: jansson outside base/json/value.c and base/json/field.c is refused" {
	c_file src/cni/runtime/conf.c '#include <jansson.h>'
	refused arrows src/cni/runtime/conf.c:2 "<jansson.h> is for"
}

@test "lint: every banned call is refused, with what to use instead" {
	local name count=0
	while read -r name _; do
		c_file src/base/bad.c "void f(void) { $name (0); }"
		refused banned src/base/bad.c:2 "$name() is banned: use "
		count=$((count + 1))
	done < <(grep '^[a-z]' "$HAWSER_SRC/tools/lint/banned.txt")
	[ "$count" -ge 10 ]
}

@test "lint: a banned name in a comment, a string, a longer name or a member is not a call" {
	c_file src/base/good.c '/* strcpy(a, b) */ // atoi(x)' 'const char *s = "gets(x)";' \
		'int my_system(int); int f(struct s *p) { return p->signal(1) + my_system(2); }'
	run -0 lint banned
}

@test "lint: a file without a licence line is refused" {
	echo 'all:' >Makefile
	git add Makefile
	refused spdx Makefile:1 "no line with SPDX"
}

@test "lint: data and the licence need no licence line, untracked files neither" {
	mkdir -p test/corpus/x test/data
	echo '{}' | tee a.json b.conflist LICENSE test/corpus/x/1 test/data/x >untracked
	git add a.json b.conflist LICENSE test
	run -0 lint spdx
}

@test "lint: a header that does not compile alone is refused" {
	c_file src/net/rtnl/addr.h 'size_t addr_len(void);'
	refused headers src/net/rtnl/addr.h:1 "does not compile alone"
}

@test "lint: a header that compiles with a warning is refused" {
	c_file src/net/rtnl/addr.h 'struct s { int a; struct t; };'
	refused headers src/net/rtnl/addr.h:1 "does not compile alone"
}
