# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # variables are those of the tests and of run
#
# test/cni/hawser-plugin.bash - functions for the tests of hawser-plugin as a program
load ../lib

program=$HAWSER_BUILD/bin/hawser-plugin

setup() {
	need ip jq
	unset CNI_COMMAND CNI_ARGS CNI_NETNS_OVERRIDE
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	for link in $(links); do ip link del "$link"; done
	rm -rf /run/hawser /tmp/things
}

conf='{"cniVersion":"1.1.0","name":"net","type":"noop"}'

# call PROGRAM VERB [CONTAINER [CONF]]
call() {
	CNI_COMMAND=$2 CNI_CONTAINERID=${3:-c1} CNI_NETNS=${netns:-/nowhere} CNI_IFNAME=eth0 CNI_PATH=/nowhere \
		"$1" <<<"${4:-$conf}"
}

# listing DIR: print names, types and link targets
listing() { find "$1" -mindepth 1 -printf '%P %y %l\n' | sort; }

# silence: open a pipe without data and without EOF as descriptor $silent, for use as standard input
silence() {
	mkfifo silence
	exec {silent}<>silence
}

links() { ip -j link show type bridge | jq -r '.[].ifname' | sort; }
things() { links; find /tmp/things -type f -printf '%f\n' 2>/dev/null | sort; }
