#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Whole-program tests of hawser-cri (pods.py) on a kernel whose cgroup controllers are free: with cgroup v2, and with
# v1 and a cgroup2 mount beside it that has controllers
load ../lib

# pods_work: assert that all tests of pods.py pass, and that none is skipped
pods_work() {
	PATH=$HAWSER_BUILD/bin:$PATH PYTHONPATH=$HAWSER_SRC/test PYTHONDONTWRITEBYTECODE=1 \
		run /usr/bin/python3 -m pytest -q -p no:cacheprovider -c /dev/null \
		--rootdir "$HAWSER_SRC" "$HAWSER_SRC/test/uml/pods.py"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output =~ \ passed && ! $output =~ skipped ]]
}

setup() {
	need conmon crun busybox /usr/bin/python3
	/usr/bin/python3 -c "import grpc, google.protobuf, pytest" || skip "python3-grpcio is not installed"
}

# A controller can change its hierarchy only when its last cgroup has been freed. Files on a tmpfs keep the cgroup that
# has written them.
teardown() {
	rm -rf /tmp/pytest-of-*
	find /sys/fs/cgroup -depth -type d -name hawser -exec rmdir {} +
	umount -R /sys/fs/cgroup
}

@test "uml: pods and containers work with cgroup v2" {
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	pods_work
}

@test "uml: pods and containers work with cgroup v1 and a cgroup2 mount that has controllers" {
	mount --make-rshared /
	mount -t tmpfs tmpfs /sys/fs/cgroup
	for name in cpu devices freezer memory; do
		mkdir "/sys/fs/cgroup/$name"
		wait_until mount -t cgroup -o "$name" cgroup "/sys/fs/cgroup/$name"
	done
	mkdir /sys/fs/cgroup/unified
	mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
	grep -q pids /sys/fs/cgroup/unified/cgroup.controllers
	pods_work
}
