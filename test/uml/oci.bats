#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Unit tests of src/oci on a kernel whose cgroup controllers are free: with cgroup v2, and with v1 and a
# cgroup2 mount beside it that has controllers
load ../lib

# passes NAME [SKIPPED...]: assert that all tests of test-NAME pass, and that only these are skipped
passes() {
	run "$HAWSER_BUILD/src/test-$1"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep -c '^not ok .* # SKIP' <<<"$output")" -eq "$(($# - 1))" ]
	for name in "${@:2}"; do
		grep -qF "# SKIP $name" <<<"$output"
	done
}

teardown() {
	umount -R /sys/fs/cgroup
}

@test "uml: cgroups of v2 are created, read, killed and removed" {
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	grep -q pids /sys/fs/cgroup/cgroup.controllers
	passes cgroup "cgroup: a cgroup without processors is completed"
	passes cgroup-kill
	passes cgroup-stats
}

@test "uml: cgroups of v1 with a cgroup2 mount beside it are created, read, killed and removed" {
	mount -t tmpfs tmpfs /sys/fs/cgroup
	for name in cpu freezer memory; do
		mkdir "/sys/fs/cgroup/$name"
		mount -t cgroup -o "$name" cgroup "/sys/fs/cgroup/$name"
	done
	mkdir /sys/fs/cgroup/unified
	mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
	grep -q pids /sys/fs/cgroup/unified/cgroup.controllers
	passes cgroup "cgroup: a cgroup without processors is completed"
	passes cgroup-kill
	passes cgroup-stats
}

@test "uml: oom_score_adj can be lowered with CAP_SYS_RESOURCE" {
	mount -t tmpfs tmpfs /sys/fs/cgroup
	passes oom-score
}

@test "uml: hawser-pause starts, works and ends with cgroup v2 and CAP_SYS_RESOURCE" {
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	passes pause
}
