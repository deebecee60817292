# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# test/lib.bash - what bats files share: `load lib` at their top
#
# A test runs inside test/sandbox: the machine's network, /run, /tmp, /etc/cni, /opt/cni and
# /var/lib/cni are its own, so nothing needs cleaning up. HAWSER_SRC and HAWSER_BUILD say where
# the source and the build are; the programs are first in PATH.

# Debian's Go plugins
# shellcheck disable=SC2034 # for the tests
GO_PLUGINS=/usr/lib/cni

# need PROGRAM...: skip the test where a foreign program is missing
need() {
	local program
	for program; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
}

# need_go_plugins NAME...: skip the test where one of Debian's plugins is missing
need_go_plugins() {
	local name
	for name; do
		[ -x "$GO_PLUGINS/$name" ] || skip "containernetworking-plugins ($name) is not installed"
	done
}

# fails_with [CODE] MESSAGE: the last run failed, with this error object. MESSAGE is the text; a pattern
# if there is a * in it
# shellcheck disable=SC2154 # status and output are those of `run`
fails_with() {
	local message=${*: -1} told
	echo "$output"
	[ "$status" = 1 ]
	[ $# = 1 ] || [ "$(jq .code <<<"$output")" = "$1" ]
	told=$(jq -r .msg <<<"$output")
	# shellcheck disable=SC2053 # a pattern
	[ "$told" = "$message" ] || [[ $message == *'*'* && $told == $message ]]
}

# install_hawser: for setup_file: install into $DESTDIR, so that pkg-config, the compiler and the
# dynamic linker find libhawser there and nowhere else
install_hawser() {
	local pc sanitize
	export DESTDIR=$BATS_FILE_TMPDIR/root PKG_CONFIG_PATH=$BATS_FILE_TMPDIR/pkgconfig LD_LIBRARY_PATH
	meson install -C "$HAWSER_BUILD" --no-rebuild --quiet --destdir "$DESTDIR"
	pc=$(find "$DESTDIR" -name hawser.pc)
	LD_LIBRARY_PATH=$(dirname "$(dirname "$pc")")
	mkdir "$PKG_CONFIG_PATH"
	sed "s|^prefix=|&$DESTDIR|" "$pc" >"$PKG_CONFIG_PATH/hawser.pc"
	# what links with a sanitized library must be sanitized itself
	sanitize=$(meson introspect "$HAWSER_BUILD" --buildoptions |
		jq -r '.[] | select(.name == "b_sanitize").value')
	[ "$sanitize" = none ] || export CFLAGS="-g -fsanitize=$sanitize" LDFLAGS="-fsanitize=$sanitize"
}

# given [NETNS]: the links and their addresses, without what the kernel does of its own a while after
# a link is up: its state, and addresses of the link alone
given() {
	ip ${1:+-n "$1"} -j addr |
		jq -c '.[] | [.ifname, .address, (.addr_info[] | select(.scope != "link") | .local)]'
}
