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
