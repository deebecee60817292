#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# cnitool: the command gc
# shellcheck disable=SC2154 # variables are those of run
bats_require_minimum_version 1.5.0
load cnitool

@test "cnitool: gc deletes every attachment of the network, and none of other networks" {
	network demo 1.1.0 '{"type":"loopback"}' "$(scripted)"
	network other 1.1.0 '{"type":"loopback"}'
	cnitool add demo /run/netns/pod >/dev/null
	cnitool add -i net1 demo /run/netns/pod >/dev/null
	cnitool add other /run/netns/pod >/dev/null
	[ -z "$(cnitool gc demo </dev/null)" ]
	[ "$(ls /var/lib/cni/results)" = other-cnitool-9539caf00070aeae0bd6-eth0 ]
	[ "$(tail -n 3 /tmp/calls | cut -d' ' -f1,4 | xargs)" = "DEL eth0 DEL net1 GC" ]
	cnitool status demo
	cnitool gc other
	[ -z "$(ls /var/lib/cni/results)" ]
}

@test "cnitool: gc also deletes attachments that only the plugin's records contain" {
	export CNI_PATH=$HAWSER_BUILD/test/cni
	network demo 1.1.0 '{"type":"link-and-file","directory":"/tmp/linked"}'
	cnitool add demo /run/netns/pod >/dev/null
	rm /var/lib/cni/results/*
	[ -n "$(ls /tmp/linked)" ]
	cnitool gc demo </dev/null
	[ -z "$(ls /tmp/linked)" ]
	[ -z "$(find /run/hawser/attachments -type f)" ]
}

@test "cnitool: gc on a terminal lists the attachments and asks for confirmation" {
	need script
	network demo 1.1.0 '{"type":"loopback"}' "$(scripted)"
	cnitool add demo /run/netns/pod >/dev/null
	for answer in '' n; do
		run script -qec "cnitool gc demo" /dev/null <<<"$answer"
		[ "$status" = 1 ]
		has "cnitool-9539caf00070aeae0bd6 eth0 /run/netns/pod"
		has "[y/N]"
		has "nothing was changed"
		[ -e /tmp/made ]
	done
	run script -qec "cnitool gc demo" /dev/null <<<y
	[ "$status" = 0 ]
	nothing_left
	cnitool add demo /run/netns/pod >/dev/null
	run script -qec "cnitool gc --yes demo" /dev/null </dev/null
	[ "$status" = 0 ]
	lacks "[y/N]"
	nothing_left
}

@test "cnitool: gc on a terminal asks for confirmation even if the cache has no attachments" {
	need script
	network demo 1.1.0 "$(scripted)"
	run script -qec "cnitool gc demo" /dev/null <<<n
	[ "$status" = 1 ]
	has 'no attachments of network "demo" in the cache, but its plugins may have some'
	[ ! -e /tmp/calls ]
	network demo 1.0.0 "$(scripted)"
	run script -qec "cnitool gc demo" /dev/null </dev/null
	[ "$status" = 0 ]
	lacks "[y/N]"
}
