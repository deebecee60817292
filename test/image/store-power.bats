#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/image/store-power.bats - the image store after a power cut
#
# A virtual machine with its own disk is powered off. Data that it had not written to the disk is lost.
bats_require_minimum_version 1.5.0
load ../lib

setup() {
	need linux.uml modprobe mke2fs strace
	disk=$BATS_TEST_TMPDIR/disk
	truncate -s 64M "$disk"
	mke2fs -q -t ext4 "$disk"
}

# machine COMMAND...: boot the virtual machine and run test/uml/power in it
machine() {
	"$HAWSER_SRC/test/uml/run" -d "$disk" "$HAWSER_SRC/test/uml/power" "$@"
}

@test "store: an image that was reported as stored survives a power cut" {
	run -124 machine answer # the machine is switched off before the command exits
	run -0 machine check
	[ "${lines[*]}" = "docker.io/library/new:latest docker.io/library/old:latest" ] ||
		[ "${lines[*]}" = "docker.io/library/old:latest docker.io/library/new:latest" ]
}

@test "store: a power cut at any step leaves a consistent store" {
	run -0 machine count
	[ "${#lines[@]}" -ge 6 ]
	points=("${lines[@]}")
	for point in "${points[@]}"; do
		echo "before $point"
		# shellcheck disable=SC2086 # a system call and its number
		run -124 machine cut $point
		[[ $output != *done* ]]
		[[ $output == *"/old:latest"* ]] # printed by check, for the store after the previous power cut
	done
	run -0 machine check
	[[ $output == *"/old:latest"* ]]
}

@test "store: a layer that was not synced to disk is detected after a power cut" {
	run -124 machine answer strace -f -o /dev/null -e inject=syncfs:retval=0
	run -1 machine check
	[[ $output == *"is incomplete" ]]
}
