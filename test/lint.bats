#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Each rule of tools/lint/hawser-lint can fail, and a clean tree passes all of them.
# Needs: no root

bats_require_minimum_version 1.5.0

# A small tree without violations; each test adds one.
setup() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree"
	cd "$tree" || return
	git init -q .
	git config user.name hawser
	git config user.email hawser@localhost
	git commit -q --allow-empty -m 'a subject from before the rule'
	c_file include/hawser/x.h '#include <stddef.h>'
	c_file src/base/buf.h '#include <hawser/x.h>'
	c_file src/base/json/value.c '#include "base/buf.h"' '#include <jansson.h>'
	c_file src/net/rtnl/link.h 'struct buf;'
	c_file src/net/rtnl/link.c '#include "net/rtnl/link.h"' '#include "base/buf.h"'
	c_file src/plugins/bridge/bridge.c '#include "base/buf.h"' '#include "net/rtnl/link.h"'
	c_file examples/hello.c '#include <hawser/x.h>'
}

# c_file FILE LINE...: create a tracked C file with a licence line
c_file() {
	local file=$1
	shift
	mkdir -p "$(dirname "$file")"
	printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' "$@" >"$file"
	git add "$file"
}

lint() {
	"$HAWSER_SRC/tools/lint/hawser-lint" --root "$tree" --since "$(git rev-list --max-parents=0 HEAD)" "$@"
}

# refused RULE FILE:LINE TEXT: assert that the rule reports only this line, with a message containing TEXT
refused() {
	run -1 lint "$1"
	[ "${#lines[@]}" -eq 1 ]
	[[ ${lines[0]} == "$2: "*"$3"* ]]
}

@test "lint: a clean tree passes every rule" {
	run -0 lint
	[ -z "$output" ]
}

@test "lint: all rules run if none is named" {
	c_file src/base/bad.h 'struct a x = atoi("1");' '#include "net/rtnl/link.h"'
	echo 'int x;' >src/base/bare.c
	git add src/base/bare.c
	run -1 lint
	[[ $output == *"does not compile alone"* ]]
	[[ $output == *"no arrow"* ]]
	[[ $output == *"banned"* ]]
	[[ $output == *"no line with SPDX"* ]]
}

@test "lint: an include against the direction of an arrow is refused" {
	c_file src/base/str.c '#include "base/buf.h"' '#include "net/rtnl/link.h"'
	refused arrows src/base/str.c:3 "no arrow from src/base to net/rtnl"
}

@test "lint: an include between two folders that no arrow connects is refused" {
	c_file src/cni/runtime/run.c '#include "net/rtnl/link.h"'
	refused arrows src/cni/runtime/run.c:2 "no arrow from src/cni/runtime to net/rtnl"
}

@test "lint: an include without an arrow is refused in angle brackets too" {
	c_file src/cni/runtime/run.c '#include <net/rtnl/link.h>'
	refused arrows src/cni/runtime/run.c:2 "no arrow from src/cni/runtime to net/rtnl"
}

@test "lint: an include without its folder is refused" {
	c_file src/net/rtnl/addr.c '#include "link.h"'
	refused arrows src/net/rtnl/addr.c:2 "without its folder"
}

@test "lint: an include from a folder that arrows.txt does not list is refused" {
	c_file src/util/x.c '#include "base/buf.h"'
	refused arrows src/util/x.c:2 "no arrow from src/util to base"
}

@test "lint: a public header that includes an internal header is refused" {
	c_file include/hawser/x.h '#include "base/buf.h"'
	refused arrows include/hawser/x.h:2 "no arrow from include/hawser to base"
}

@test "lint: an example that includes an internal header is refused" {
	c_file examples/hello.c '#include "base/buf.h"'
	refused arrows examples/hello.c:2 "to base"
}

@test "lint: a header of another library is refused outside the files and folders that may include it" {
	c_file src/cni/runtime/conf.c '#include <jansson.h>'
	refused arrows src/cni/runtime/conf.c:2 "<jansson.h> is for"
	c_file src/cni/runtime/conf.c
	c_file src/image/pull/pull.c '#include <curl/multi.h>'
	refused arrows src/image/pull/pull.c:2 "<curl/multi.h> is for fetch/http only"
}

@test "lint: a foreign header that belongs to one file is refused in other files of its folder" {
	c_file src/pod/network/watch.c '#include <uv.h>'
	run -0 lint arrows
	c_file src/pod/network/template.c '#include <uv.h>'
	refused arrows src/pod/network/template.c:2 "<uv.h> is for"
}

@test "lint: a folder may not include a header of its own subfolder without an arrow" {
	c_file src/net/netns.c '#include "net/rtnl/link.h"'
	refused arrows src/net/netns.c:2 "no arrow from src/net to net/rtnl"
}

@test "lint: a unit test may include every header that its top-level folder may include" {
	c_file src/net/test-netns.c '#include "net/rtnl/link.h"'
	run -0 lint arrows
	c_file src/net/test-netns.c '#include "cni/runtime/run.h"'
	refused arrows src/net/test-netns.c:2 "no arrow from src/net to cni/runtime"
}

@test "lint: the daemon may not include a header of hawser-fetch" {
	c_file src/fetch/http/http.h
	c_file src/cri/daemon.c '#include "fetch/http/http.h"'
	refused arrows src/cri/daemon.c:2 "no arrow from src/cri to fetch/http"
}

@test "lint: a service may not include the daemon's header" {
	c_file src/cri/service/pull.c '#include "cri/daemon.h"'
	refused arrows src/cri/service/pull.c:2 "no arrow from src/cri/service to cri"
}

@test "lint: arrows that lead from the daemon to hawser-fetch, even through other folders, are refused" {
	cp -r "$HAWSER_SRC/tools/lint" lists
	echo 'image/pull: image/store fetch/tar' >>lists/arrows.txt
	run -1 lint --lists lists arrows
	[ "${lines[0]}" = "tools/lint/arrows.txt:1: the arrows lead from cri to fetch" ]
}

@test "lint: a phrase in phrases.txt is refused, and the error says what to write instead" {
	c_file src/base/bad.c 'const char *s = "a record that is none";'
	refused phrases src/base/bad.c:2 'do not write "is none": say what is wrong'
}

@test "lint: a phrase that is split over two lines of a comment is refused" {
	c_file src/base/bad.c '/* The record is' ' * none of these. */'
	refused phrases src/base/bad.c:2 'do not write "is none"'
}

@test "lint: a commit subject without an area or an imperative verb, or over 72 characters, is refused" {
	local bad
	git commit -q --allow-empty -m 'net/route, net/addr: treat EEXIST as success'
	git commit -q --allow-empty -m 'net: read, check and write a route'
	run -0 lint subjects
	for bad in 'a change' 'net: Adds a route' 'net: adds a route' 'net: added a route' \
		'net: the route' "net: add $(printf '%070d' 0)"; do
		git commit -q --allow-empty -m "$bad"
		run -1 lint subjects
		[ "${#lines[@]}" -eq 1 ]
		[[ ${lines[0]} == "commit "*": subject \"$bad\""* ]]
		git reset -q --soft HEAD~
	done
}

# test_file LINE: create a tracked test file with this line
test_file() {
	mkdir -p test
	printf '%s\n' '# SPDX-License-Identifier: Apache-2.0' "$1" >test/x
	git add test/x
}

@test "lint: a test that sleeps is refused, unless a comment says which interval it measures" {
	local line
	for line in 'until [ -e x ]; do sleep 0.01; done' 'sleep 5' 'sleep .5 && x' 'sleep "$seconds"' 'time.sleep(0.1)' \
		'from time import monotonic, sleep' 'usleep(1000);' 'time_sleep(WAIT_MS);'; do
		test_file "$line"
		refused sleeps test/x:2 "use wait_until"
		test_file "$line # the interval of the measurement"
		run -0 lint sleeps
	done
	for line in 'sleep infinity &' 'setsid sleep 1000 &' '# asleep 5' 'wait_until test -e x'; do
		test_file "$line"
		run -0 lint sleeps
	done
	c_file src/base/good.c 'void f(void) { usleep(1); }'
	run -0 lint sleeps
}

@test "lint: every banned call is refused, and the error says what to use instead" {
	local name count=0
	while read -r name _; do
		c_file src/base/bad.c "void f(void) { $name (0); }"
		refused banned src/base/bad.c:2 "$name() is banned: use "
		count=$((count + 1))
	done < <(grep '^[a-z]' "$HAWSER_SRC/tools/lint/banned.txt")
	[ "$count" -ge 10 ]
}

@test "lint: a banned name in a comment, a string, a longer name or a struct member is accepted" {
	c_file src/base/good.c '/* strcpy(a, b) */ // atoi(x)' 'const char *s = "gets(x)";' \
		'int my_system(int); int f(struct s *p) { return p->signal(1) + my_system(2); }'
	run -0 lint banned
}

# c_function LINE...: create src/base/f.c with a function of these lines; the first one is line 4
c_function() {
	c_file src/base/f.c 'int f(int x, struct hw_err *e)' '{' "${@/#/$'\t'}" '}'
}

@test "lint: a call that can fail in a declaration is refused" {
	c_function 'int r = get(x, e);' '' 'return r < 0 ? r : 0;'
	refused results src/base/f.c:4 "r: declare first"
	c_function 'struct hw_err why;' '' 'int r = x ? get(x, &why) : 0;' 'return r;'
	refused results src/base/f.c:6 "r: declare first"
	c_function 'autoclose int fd =' '	open("x", 0);' 'char c;' '' 'if (fd < 0)' '	return -1;'
	refused results src/base/f.c:4 "fd: declare first"
	c_function 'const char *s = strchr("x", x);' 'int r;' '' 'if (x && !s)' '	return -1;'
	refused results src/base/f.c:4 "s: declare first"
}

@test "lint: a call that cannot fail in a declaration, and a call after the declarations, are accepted" {
	c_function 'struct object *p = object_of(x);' 'size_t n = strlen("x");' \
		'int fd = take_fd(p->fd), code = err_wire(e), r;' '' 'r = get(p, n, e);' \
		'if (r < 0)' '	return r;' 'if (!p->next)' '	return code;' 'else' '	r = get(p, fd, e);'
	run -0 lint results
	c_function 'int64_t size = file_size(x);' '' 'return size < 0 ? 0 : size;'
	run -0 lint results
}

@test "lint: a new descriptor that is not checked is refused" {
	c_function 's->fd = eventfd(0, 0);' 'return poll(s->fd, x < 0);'
	refused results src/base/f.c:4 "fd: check the result of eventfd()"
	c_file src/base/f.c 'void f(struct s *s)' '{' \
		'	*s = (struct s){ .fd =' '		epoll_create1(0) };' '}' \
		'bool g(int fd)' '{' '	return fd < 0;' '}'
	refused results src/base/f.c:4 "fd: check the result of epoll_create1()"
}

@test "lint: a new descriptor that the function checks is accepted" {
	c_function '*s = (struct s){ .fd = eventfd(0, 0), .other = x };' 'if (s->fd < 0)' '	return -1;'
	run -0 lint results
}

@test "lint: a call that can fail in a declaration of a unit test is accepted" {
	c_file src/base/test-f.c 'int main(void)' '{' '	int fd = open("x", 0);' '' '	assert(fd >= 0);' '}'
	run -0 lint results
}

@test "lint: a file without a licence line is refused" {
	echo 'all:' >Makefile
	git add Makefile
	refused spdx Makefile:1 "no line with SPDX"
}

@test "lint: data files, the licence and untracked files need no licence line" {
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
