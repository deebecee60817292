#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The networks in examples/ work without changes, and the manual page of each plugin contains one of them.
bats_require_minimum_version 1.5.0
load ../lib

setup() {
	need ip jq
	export CNI_PATH=$HAWSER_BUILD/cni
	cp "$HAWSER_SRC"/examples/*.conflist /etc/cni/net.d
	ip netns add pod
}

teardown() {
	ip netns del pod
	rm -rf /etc/cni/net.d/* /var/lib/cni/networks /var/lib/cni/results
}

plugins() { hawser-plugin list --json | jq -r '.[].name'; }
networks() { jq -r .name /etc/cni/net.d/*.conflist; }

@test "examples: every plugin is used by a network" {
	for plugin in $(plugins); do
		jq -e --arg plugin "$plugin" '[.. | .type? // empty] | index($plugin)' \
			"/etc/cni/net.d/$plugin.conflist"
	done
}

@test "examples: every file is a valid network with a unique name" {
	[ "$(networks | sort | uniq -d)" = "" ]
	for network in $(networks); do
		cnitool validate "$network"
	done
}

@test "examples: add, check and del of a pod work with each network and leave nothing behind" {
	for network in $(networks); do
		cnitool add "$network" /run/netns/pod
		cnitool check "$network" /run/netns/pod
		cnitool status "$network"
		cnitool del "$network" /run/netns/pod
		[ -z "$(ip -o link show type veth)" ]
		[ -z "$(ip -n pod -o link show type veth)" ]
		[ -z "$(find /var/lib/cni /run/hawser/attachments -type f ! -name lock ! -name 'last_reserved_ip.*')" ]
	done
}

@test "examples: every plugin has a manual page with all its keys and its example" {
	for plugin in $(plugins); do
		page=$HAWSER_BUILD/man/hawser-plugin-$plugin.7
		for key in $(hawser-plugin "$plugin" --help | grep -oE '^ *`[^`]+`' | tr -d '` '); do
			grep -qF ".It Cm ${key//-/\\-} Pq" "$page" || { echo "$page lacks $key"; false; }
		done
		diff <(sed -n '/^{$/,/^}$/p' "$page" | sed 's/\\-/-/g') "/etc/cni/net.d/$plugin.conflist"
	done
}
