# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# test/lib.bash - functions for all bats files: `load lib`, or `load ../lib` in the folder of an area
#
# Every test file runs inside test/sandbox: it has its own network, /run, /tmp, /etc/cni, /opt/cni
# and /var/lib/cni, so nothing needs cleaning up. HAWSER_SRC and HAWSER_BUILD are the source and
# the build directory; our programs are first in PATH.

# shellcheck source=test/wait.bash
source "${BASH_SOURCE[0]%/*}/wait.bash"

# Debian's Go plugins
# shellcheck disable=SC2034 # used by the tests
GO_PLUGINS=/usr/lib/cni

# need PROGRAM...: skip the test if one of these programs is missing
need() {
	local program
	for program; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
}

# need_go_plugins NAME...: skip the test if one of Debian's Go plugins is missing
need_go_plugins() {
	local name
	for name; do
		[ -x "$GO_PLUGINS/$name" ] || skip "containernetworking-plugins ($name) is not installed"
	done
}

# fails_with [CODE] MESSAGE: assert that the last `run` failed and printed this CNI error object. MESSAGE
# is the exact text, or a pattern if it contains *
# shellcheck disable=SC2154 # status and output are those of `run`
fails_with() {
	local message=${*: -1} actual
	echo "$output"
	[ "$status" = 1 ]
	[ $# = 1 ] || [ "$(jq .code <<<"$output")" = "$1" ]
	actual=$(jq -r .msg <<<"$output")
	# shellcheck disable=SC2053 # a pattern
	[ "$actual" = "$message" ] || [[ $message == *'*'* && $actual == $message ]]
}

# sanitizers: print the sanitizers of this build, or "none"
sanitizers() {
	meson introspect "$HAWSER_BUILD" --buildoptions | jq -r '.[] | select(.name == "b_sanitize").value'
}

# install_hawser: install into $DESTDIR, so that pkg-config, the compiler and the dynamic linker find
# libhawser there and nowhere else. Call it in setup_file.
install_hawser() {
	local pc sanitize
	export DESTDIR=$BATS_FILE_TMPDIR/root PKG_CONFIG_PATH=$BATS_FILE_TMPDIR/pkgconfig LD_LIBRARY_PATH
	meson install -C "$HAWSER_BUILD" --no-rebuild --quiet --destdir "$DESTDIR"
	pc=$(find "$DESTDIR" -name hawser.pc)
	LD_LIBRARY_PATH=$(dirname "$(dirname "$pc")")
	mkdir "$PKG_CONFIG_PATH"
	sed "s|^prefix=|&$DESTDIR|" "$pc" >"$PKG_CONFIG_PATH/hawser.pc"
	# a program that links with a sanitized library must be sanitized too
	sanitize=$(sanitizers)
	[ "$sanitize" = none ] || export CFLAGS="-g -fsanitize=$sanitize" LDFLAGS="-fsanitize=$sanitize"
}

# delete_pods: delete the links and namespaces of all pods. Links are deleted first, because the
# kernel deletes those of a deleted namespace asynchronously.
delete_pods() {
	local link netns

	for link in $(ip -j link show type veth | jq -r '.[].ifname'); do ip link del "$link" || true; done
	for netns in $(ip netns list | cut -d ' ' -f 1); do ip netns del "$netns"; done
}

# connect FROM TO ADDRESS PROTOCOL PORT [SERVER-PORT]: send a message from netns FROM to ADDRESS, print the source
# address that a server in netns TO sees, and fail if there is no answer. FROM and TO may be "host".
# blocked ...: the same, but assert that the message does not arrive at the server
connect() { "$HAWSER_SRC/test/connect.py" 30 "$@"; }
blocked() {
	local status=0
	"$HAWSER_SRC/test/connect.py" 0.7 "$@" || status=$?
	[ "$status" = 3 ]
}

# links_and_addresses [NETNS]: print the links and their addresses, without the attributes that the kernel
# changes asynchronously after a link is up: the link's state and link-local addresses
links_and_addresses() {
	ip ${1:+-n "$1"} -j addr |
		jq -c '.[] | [.ifname, .address, (.addr_info[] | select(.scope != "link") | .local)]'
}
