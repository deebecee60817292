#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/sandbox isolates its command from the machine.
# shellcheck disable=SC2154 # variables come from harness.bash and from run
bats_require_minimum_version 1.5.0
load harness

@test "sandbox: the exit status is that of the command" {
	run -7 sandbox sh -c 'exit 7'
}

@test "sandbox: the command is not PID 1" {
	run -0 sandbox sh -c 'echo $PPID'
	[ "$output" = 1 ]
}

@test "sandbox: the network has only lo, which is up, and /sys shows the same network" {
	ip link add dummy-br type bridge
	run -0 sandbox sh -c 'ip -o link show up; ls /sys/class/net'
	[ "${#lines[@]}" -eq 2 ]
	[[ ${lines[0]} == *": lo:"* ]]
	[ "${lines[1]}" = lo ]
}

@test "sandbox: named network namespaces created inside are not visible outside" {
	run -0 sandbox sh -c 'ip netns add inside && ip netns exec inside true && ip netns'
	[ "$output" = inside ]
	[ ! -e /run/netns/inside ]
}

@test "sandbox: files written to /run, /tmp, /etc, /opt and /var/lib are discarded" {
	local dirs="/run /tmp /etc /etc/cni /etc/cni/net.d /opt /opt/cni /var/lib /var/lib/cni"
	run -0 sandbox sh -c "for d in $dirs; do echo x >\$d/harness-was-here || exit 1; done"
	local dir
	for dir in $dirs; do
		[ ! -e "$dir/harness-was-here" ]
	done
}

@test "sandbox: CNI directories are empty even if the machine's are not" {
	mkdir -p /etc/cni/net.d /var/lib/cni /opt/cni/bin
	touch /etc/cni/net.d/theirs /var/lib/cni/theirs /opt/cni/bin/theirs
	run -0 sandbox find /etc/cni /var/lib/cni /opt/cni -type f
	[ -z "$output" ]
}

@test "sandbox: no process survives the end of the command" {
	run -0 sandbox sh -c 'setsid sleep 7654 & exit 0'
	run ! pgrep -f 'sleep 765[4]'
}

@test "sandbox: no process survives when the sandbox is killed" {
	local signal pid
	for signal in TERM HUP KILL; do
		env -u HAWSER_SRC -u HAWSER_BUILD "$tree/test/sandbox" \
			sh -c 'setsid sleep 8765 & touch started; sleep 8765' 3>&- &
		pid=$!
		wait_until test -e "$tree/started"
		rm "$tree/started"
		kill -"$signal" "$pid"
		wait_until eval '! pgrep -f "sleep 876[5]"'
	done
}
