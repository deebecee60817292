#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# src/image/store/mount.c before Linux 6.5, where the options of overlayfs must fit one page
load ../lib

@test "mount: stacks of layers are mounted on a kernel without the mount option lowerdir+" {
	[ "$(printf '%s\n' "$(uname -r)" 6.5 | sort -V | head -n 1)" != 6.5 ] ||
		skip "the second kernel is not older than Linux 6.5"
	"$HAWSER_BUILD/src/test-mount"
}
