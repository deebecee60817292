# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# test/plugins/outside.bash - two pods and a neighbour of the host

# connect_outside: create the namespaces one and two, for pods, and the namespace outside. A veth pair connects the
# host (interface wire, 192.0.2.1 and fd99::1) with outside (eth0, 192.0.2.2 and fd99::2).
connect_outside() {
	local netns
	for netns in one two outside; do ip netns add $netns; done
	ip link add wire type veth peer name eth0 netns outside
	ip addr add 192.0.2.1/24 dev wire
	ip addr add fd99::1/64 dev wire nodad
	ip link set wire up
	ip -n outside addr add 192.0.2.2/24 dev eth0
	ip -n outside addr add fd99::2/64 dev eth0 nodad
	ip -n outside link set eth0 up
}
