#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# cnitool: Ctrl-C and other signals
# shellcheck disable=SC2154 # variables are those of run
bats_require_minimum_version 1.5.0
load cnitool

# interrupt SIGNAL|ctrl-c COMMAND...: run COMMAND on a new terminal, interrupt it twice when the plugin
# hangs, print the output of COMMAND, and return its exit status
interrupt() {
	rm -f /tmp/hangs
	PYTHONPATH=$HAWSER_SRC/test /usr/bin/python3 - "$@" <<-'PYTHON'
	import os, pty, signal, sys
	from waiting import wait_until
	how, command = sys.argv[1], sys.argv[2:]
	pid, terminal = pty.fork()
	if pid == 0:
	    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in a background job
	    os.execvp(command[0], command)
	wait_until(lambda: os.path.exists("/tmp/hangs"))
	for _ in range(2):
	    if how == "ctrl-c":
	        os.write(terminal, b"\x03")
	    else:
	        os.kill(pid, getattr(signal, how))
	written = b""
	try:
	    while True:
	        written += os.read(terminal, 4096)
	except OSError:
	    pass
	sys.stdout.buffer.write(written)
	sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	PYTHON
}

@test "cnitool: Ctrl-C kills the plugin and undoes the attachment, even if pressed twice" {
	network demo 1.0.0 "$(scripted)" "$(scripted ADD hang)"
	for how in ctrl-c SIGTERM SIGHUP; do
		fails interrupt "$how" cnitool --timeout 30 add demo /run/netns/pod
		has "cancelled after"
		nothing_left
		[ "$(tail -n 2 /tmp/calls | cut -d' ' -f1 | xargs)" = "DEL DEL" ]
	done
	run ! pgrep -f "sleep infinity"
}

@test "cnitool: an interrupt between two plugins, and another during the undo, leave nothing behind" {
	network demo 1.0.0 '{"type":"script","mode":{"ADD":"interrupt","DEL":"interrupt"}}' "$(scripted)"
	fails cnitool add demo /run/netns/pod
	has "cancel"
	lacks "undo"
	nothing_left
	[ "$(cut -d' ' -f1 /tmp/calls | xargs)" = "ADD DEL DEL" ]
}

@test "cnitool: after an interrupt before the first plugin, no plugin runs" {
	network demo 1.0.0 "$(scripted)"
	cnitool add demo /run/netns/pod >/dev/null
	cnitool del demo /run/netns/pod
	rm /tmp/calls
	exec {gc}<>/run/hawser/locks/libhawser-*
	flock "$gc" # as a running GC does
	cnitool add demo /run/netns/pod >/tmp/out 2>&1 {gc}<&- &
	# wait until cnitool has installed its signal handlers
	wait_until eval '((0x$(awk "/^SigCgt/ { print \$2 }" "/proc/$!/status") & 1 << 14))'
	kill -TERM $!
	status=0
	wait $! || status=$?
	exec {gc}<&-
	[ "$status" = 1 ]
	grep -q 'lock network "demo": cancelled' /tmp/out
	[ ! -e /tmp/calls ]
	nothing_left
}

@test "cnitool: after Ctrl-C during a del that hangs, the cache is kept for the next del" {
	network demo 1.0.0 "$(scripted DEL hang)"
	cnitool add demo /run/netns/pod >/dev/null
	fails interrupt ctrl-c cnitool --timeout 30 del demo /run/netns/pod
	has 'hint: interrupted'
	[ -n "$(ls /var/lib/cni/results)" ]
	network demo 1.0.0 "$(scripted)"
	cnitool del demo /run/netns/pod
	nothing_left
}
