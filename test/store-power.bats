#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/store-power.bats - the image store after real power cuts: a second kernel with a disk of its
# own is switched off, and what it had not written is lost
bats_require_minimum_version 1.5.0
load lib

setup() {
	need linux.uml modprobe mke2fs strace
	disk=$BATS_TEST_TMPDIR/disk
	truncate -s 64M "$disk"
	mke2fs -q -t ext4 "$disk"
}

# machine COMMAND...: boot it, with test/uml/power
machine() {
	"$HAWSER_SRC/test/uml/run" -d "$disk" "$HAWSER_SRC/test/uml/power" "$@"
}

@test "store: what was said to be stored is there after a power cut" {
	run -124 machine answer # it has not come to an end
	run -0 machine check
	[ "${lines[*]}" = "docker.io/library/new:latest docker.io/library/old:latest" ] ||
		[ "${lines[*]}" = "docker.io/library/old:latest docker.io/library/new:latest" ]
}

@test "store: a power cut at any step leaves a store that is whole" {
	run -0 machine count
	[ "${#lines[@]}" -ge 6 ]
	points=("${lines[@]}")
	for point in "${points[@]}"; do
		echo "before $point"
		# shellcheck disable=SC2086 # a name and a number
		run -124 machine cut $point
		[[ $output != *done* ]]
		[[ $output == *"/old:latest"* ]] # of the cut before
	done
	run -0 machine check
	[[ $output == *"/old:latest"* ]]
}

@test "store: a layer that was not written to disk is noticed after a power cut" {
	run -124 machine answer strace -f -o /dev/null -e inject=syncfs:retval=0
	run -1 machine check
	[[ $output == *"is not whole" ]]
}
