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

@test "sandbox: files written to /run, /tmp, /etc, /opt, /var/lib and /var/log are discarded" {
	local dirs="/run /tmp /etc /etc/cni /etc/cni/net.d /opt /opt/cni /var/lib /var/lib/cni /var/log"
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

# own_cgroups: print the paths of the cgroups of all sandboxes that were started here
own_cgroups() { find /sys/fs/cgroup -name 'hawser-sandbox-*'; }

# make_cgroups: create nested cgroups in every hierarchy, move the shell into them and freeze it
make_cgroups='
	for procs in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do
		[ -e "$procs" ] || continue
		dir=$(dirname "$procs")
		mkdir "$dir/a" "$dir/a/b"
		for file in cpuset.cpus cpuset.mems; do
			[ -e "$dir/a/b/$file" ] || continue
			cat "$dir/$file" >"$dir/a/$file"
			cat "$dir/$file" >"$dir/a/b/$file"
		done
		echo 0 >"$dir/a/b/cgroup.procs"
	done
	freezer=/sys/fs/cgroup/freezer/a/b/freezer.state
'

@test "sandbox: the command is in the empty root of every cgroup hierarchy" {
	run -0 sandbox sh -c 'cat /proc/self/cgroup; find /sys/fs/cgroup -mindepth 2 -type d'
	[ -z "$(grep -v '^[0-9]*:[^:]*:/$' <<<"$output")" ]
	[ "${#lines[@]}" -eq "$(wc -l </proc/self/cgroup)" ]
}

@test "sandbox: only the sandbox's own cgroup mounts are in mountinfo" {
	run -0 sandbox sh -c 'grep -e "- cgroup" /proc/self/mountinfo'
	[ "${#lines[@]}" -eq "$(grep -c -e '- cgroup' /proc/self/mountinfo)" ]
	[ -z "$(awk '$4 != "/"' <<<"$output")" ]
}

@test "sandbox: cgroups of the command are removed when it ends" {
	run -0 sandbox sh -ec "$make_cgroups cat /proc/self/cgroup"
	[ -z "$(grep -v ':/a/b$' <<<"$output")" ]
	[ -z "$(own_cgroups)" ]
}

@test "sandbox: cgroups of the command are removed when the sandbox is killed, with a frozen process" {
	local signal pid
	for signal in TERM HUP KILL; do
		env -u HAWSER_SRC -u HAWSER_BUILD "$tree/test/sandbox" sh -ec "$make_cgroups
			touch started
			[ ! -e \$freezer ] || echo FROZEN >\$freezer
			sleep infinity" 3>&- &
		pid=$!
		wait_until test -e "$tree/started"
		rm "$tree/started"
		[ -n "$(own_cgroups)" ]
		kill -"$signal" "$pid"
		wait_until is_empty own_cgroups
	done
}

@test "sandbox: a host without cgroups has none in the sandbox" {
	mkdir "$tree/kept"
	cd "$tree"
	# shellcheck disable=SC2016 # $0 is for the inner shell
	run -1 env -u HAWSER_SRC -u HAWSER_BUILD unshare --mount --propagation private sh -c '
		umount --lazy --recursive /sys/fs/cgroup && "$0"/test/sandbox grep cgroup /proc/mounts' "$tree"
	[ -z "$output" ]
	[ -d "$tree/kept" ]
}

# propagates OPTION...: whether a mount reaches a mount namespace that was created before the mount
propagates() {
	sandbox "$@" sh -ec '
		mkdir /tmp/volume /tmp/seen
		mkfifo /tmp/go
		unshare --mount --propagation slave sh -c "
			: >/tmp/ready
			read -r _ </tmp/go
			mountpoint -q /tmp/volume" &
		until [ -e /tmp/ready ]; do :; done
		mount -t tmpfs volume /tmp/volume
		echo >/tmp/go
		wait $!'
}

@test "sandbox: mounts propagate to other mount namespaces of the sandbox only with --shared" {
	propagates --shared
	run ! propagates
}
