#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/uml/mount.bats - src/image/store/mount.c on a kernel older than Linux 6.5, whose overlayfs takes
# all layers in one page of options
load ../lib

@test "mount: stacks of layers can be mounted by a kernel without lowerdir+" {
	[ "$(printf '%s\n' "$(uname -r)" 6.5 | sort -V | head -n 1)" != 6.5 ] ||
		skip "the second kernel is not older than Linux 6.5"
	"$HAWSER_BUILD/src/test-mount"
}
