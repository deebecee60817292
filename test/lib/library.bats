#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# libhawser as installed: found through pkg-config, exporting only hw_ symbols

load ../lib

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

setup_file() {
	export DESTDIR="$BATS_FILE_TMPDIR/root"
	meson install -C "$HAWSER_BUILD" --no-rebuild --quiet --destdir "$DESTDIR"
	PC=$(find "$DESTDIR" -name hawser.pc)
	LIBDIR=$(dirname "$(dirname "$PC")")
	MAN=$(dirname "$(find "$DESTDIR" -name libhawser.3)")
	SANITIZE=$(meson introspect "$HAWSER_BUILD" --buildoptions |
		/usr/bin/python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "b_sanitize"))')
	[ "$SANITIZE" = none ] || export CFLAGS="-g -fsanitize=$SANITIZE" LDFLAGS="-fsanitize=$SANITIZE"
	# Only our own .pc file gets DESTDIR in its paths; those of Debian stay unchanged.
	export PC LIBDIR MAN SANITIZE PKG_CONFIG_PATH="$BATS_FILE_TMPDIR/pc" LD_LIBRARY_PATH="$LIBDIR"
	mkdir "$PKG_CONFIG_PATH"
	sed "s|^prefix=|&$DESTDIR|" "$PC" >"$PKG_CONFIG_PATH/hawser.pc"
}

# declared: print the functions that the installed headers declare
declared() {
	cat "$DESTDIR"/*/*/include/hawser/*.h "$DESTDIR"/*/include/hawser/*.h 2>/dev/null |
		tr '\n' ' ' | grep -o 'HW_PUBLIC[^;(]*hw_[a-z_0-9]*(' | grep -o 'hw_[a-z_0-9]*(' | tr -d '(' | sort -u
}

# exported FILE NM-OPTION...: print the global symbols that FILE defines
exported() {
	nm "${@:2}" --defined-only "$1" | awk 'NF == 3 { sub(/@.*/, "", $3); print $3 }' |
		grep -v '^HAWSER_1$' | sort -u
}

# create_network: create a network with one plugin, a shell script
create_network() {
	mkdir -p bin conf
	cat >bin/shell <<'END'
#!/bin/sh
cat >/dev/null
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS" >>notes
[ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion":"1.0.0","ips":[{"address":"10.9.8.7/24"}]}'
END
	chmod +x bin/shell
	echo '{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"shell"}]}' >conf/net.conflist
}

# build_and_run_example MAKE-ARGUMENT...: build a copy of examples/run-network and run it
build_and_run_example() {
	cp -r "$HAWSER_SRC/examples/run-network" example
	cd example || return
	make clean
	make "$@"
	create_network
	CNI_PATH=$PWD/bin CNI_CACHE=$PWD/cache ./run-network conf net /ns >output
	diff output - <<-END
		attached to net
		address 10.9.8.7/24
		checked
		detached
	END
	diff notes - <<-END
		ADD run-network /ns
		CHECK run-network /ns
		DEL run-network /ns
	END
}

@test "library: the shared library exports exactly what the headers declare" {
	diff <(declared) <(exported "$LIBDIR/libhawser.so" -D)
}

@test "library: the static library exports exactly what the headers declare" {
	diff <(declared) <(exported "$LIBDIR/libhawser.a" -g)
}

@test "library: the shared library has its soname and only the expected dependencies" {
	readelf -d "$LIBDIR/libhawser.so" >dynamic
	grep -F 'Library soname: [libhawser.so.1]' dynamic
	# ignored: the library of a sanitizer, and ld-linux, which is linked for thread-local variables
	diff <(sed -n 's/.*Shared library: \[\(.*\)\]/\1/p' dynamic | grep -v -e 'san\.so' -e '^ld-linux' | sort) - <<-END
		libc.so.6
		libjansson.so.4
		libmd.so.0
	END
}

@test "library: every function has a reference page" {
	diff <(declared) <(find "$MAN" -name 'hw_*.3' -printf '%f\n' | sed 's/\.3$//' | sort)
}

@test "library: an undocumented function or parameter fails the build of the reference pages" {
	printf '/**\n * hw_a() - a\n */\nHW_PUBLIC void hw_a(int x);\nHW_PUBLIC int hw_b(void);\n' >bad.h
	run "$HAWSER_SRC/tools/mandoc-from-headers" --date today . bad.h
	[ "$status" = 1 ]
	[[ "$output" == *"hw_a: parameter x is not described"* ]]
	[[ "$output" == *"hw_b: no kernel-doc comment"* ]]
}

@test "library: the example builds through pkg-config and runs with the shared library" {
	build_and_run_example
	ldd run-network | grep -F "$LIBDIR/libhawser.so.1"
}

@test "library: the example builds through pkg-config and runs with the static library" {
	mkdir only
	cp "$LIBDIR/libhawser.a" only
	sed "s|^libdir=.*|libdir=$PWD/only|" "$PKG_CONFIG_PATH/hawser.pc" >only/hawser.pc
	PKG_CONFIG_PATH=$PWD/only build_and_run_example PKG_CONFIG="pkg-config --static"
	run ldd run-network
	[[ "$output" != *libhawser* ]]
}

@test "library: the headers compile as C++" {
	need g++
	for header in "$HAWSER_SRC"/include/hawser/*.h; do
		echo "#include <hawser/${header##*/}>"
	done >all.cc
	g++ -std=c++11 -Wall -Wextra -pedantic -Werror -fsyntax-only -I "$HAWSER_SRC/include" all.cc
}

@test "library: the headers compile as strict C11 without _GNU_SOURCE" {
	for header in "$HAWSER_SRC"/include/hawser/*.h; do
		echo "#include <hawser/${header##*/}>"
	done >all.c
	cc -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only -I "$HAWSER_SRC/include" all.c
}
