# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # work is set by run, plugin by the scenario
#
# test/faults/attach.bash - one attachment by cnitool, with a chain of loopback and $plugin
#
# $plugin creates a link on the host and a file. After the repair, links, files, the cache entry and
# attachment records must not exist; directories and empty lock files below locks/ may exist.
export CNI_PATH=$HAWSER_BUILD/test/cni:$HAWSER_BUILD/cni NETCONFPATH=$work/net.d
export HAWSER_STATE=$work/state
cnitool=$HAWSER_BUILD/bin/cnitool
at=(faults /run/netns/faults)

prepare() {
	ip netns add faults
	# lo gets its address when it is brought up for the first time, and keeps it when it is brought down
	ip -n faults link set lo up
	ip -n faults link set lo down
	mkdir "$work/net.d"
	cat >"$work/net.d/10-faults.conflist" <<-END
		{ "cniVersion": "1.1.0", "name": "faults", "plugins": [
			{ "type": "loopback" },
			{ "type": "$plugin", "directory": "$work/made" } ] }
	END
}

finish() { ip netns delete faults; }

# Removes leftovers of the previous point, which would hide those of this point.
setup() {
	local link

	rm -rf "$work/made" "$HAWSER_STATE" /var/lib/cni/results
	for link in /sys/class/net/test*; do
		[ ! -e "$link" ] || ip link delete "${link##*/}"
	done
}

state_made() {
	state_files "$work/made" /var/lib/cni "$HAWSER_STATE/attachments"
	state_processes
}

state() {
	state_links faults
	state_made
}

operation() { inject "$cnitool" add "${at[@]}"; }
verify() { [ "$1" != 0 ] || "$cnitool" check "${at[@]}"; }
repair() { "$cnitool" del "${at[@]}"; }
