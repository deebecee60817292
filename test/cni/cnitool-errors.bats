#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# cnitool: errors of plugins and of the system, and their hints
# shellcheck disable=SC2154 # variables are those of run
bats_require_minimum_version 1.5.0
load cnitool

@test "cnitool: an error names network, file and plugin, and the ADD is undone" {
	network demo 1.0.0 '{"type":"loopback"}' "$(scripted ADD fail)"
	fails cnitool add demo /run/netns/pod
	[ "$output" = 'cnitool: network "demo" (/etc/cni/net.d/10-demo.conflist): plugin type="script" failed (add): it broke; badly' ]
	nothing_left
	[ "$(cut -d' ' -f1 /tmp/calls | xargs)" = "ADD DEL" ]
}

@test "cnitool: an error of check or status contains the name of the plugin" {
	network demo 1.1.0 '{"type":"loopback"}' '{"type":"script","mode":{"CHECK":"fail","STATUS":"busy"}}'
	cnitool add demo /run/netns/pod >/dev/null
	fails cnitool check demo /run/netns/pod
	[ "$output" = 'cnitool: network "demo" (/etc/cni/net.d/10-demo.conflist): plugin "script": it broke; badly' ]
	fails cnitool status demo
	[ "$output" = 'cnitool: network "demo" (/etc/cni/net.d/10-demo.conflist): plugin "script": not now' ]
	ip -n pod link set lo down
	fails cnitool check demo /run/netns/pod
	has 'plugin "loopback": loopback interface is down'
}

@test "cnitool: with --json the error is an object with code, network, file, plugin and hint" {
	network demo 1.1.0 "$(scripted STATUS busy)"
	fails cnitool status demo --json
	[ "$(jq -c . <<<"$output")" = '{"code":50,"msg":"not now","network":"demo","file":"/etc/cni/net.d/10-demo.conflist","plugin":"script"}' ]
	network demo 1.1.0 '{"type":"nosuch"}'
	fails cnitool add demo /run/netns/pod --json
	[ "$(jq -r .plugin <<<"$output")" = nosuch ]
	[[ "$(jq -r .hint <<<"$output")" == "set CNI_PATH"* ]]
}

@test "cnitool: a plugin that prints garbage or hangs is an error" {
	network demo 1.0.0 "$(scripted ADD garbage)"
	fails cnitool add demo /run/netns/pod
	has 'netplugin failed but error parsing its diagnostic message "hello\n": exit status 1'
	network demo 1.0.0 "$(scripted ADD hang)"
	fails cnitool add demo /run/netns/pod --timeout 1
	has "timed out after"
	has "hint: --timeout SECONDS sets a longer timeout"
	nothing_left
}

@test "cnitool: a DEL whose cache file cannot be removed fails and can be repeated" {
	network demo 1.0.0 '{"type":"loopback"}'
	cnitool add demo /run/netns/pod >/dev/null
	file=$(echo /var/lib/cni/results/demo-*)
	rm "$file"
	mkdir -p "$file/directory"
	fails cnitool del demo /run/netns/pod
	has "cache file $file: "
	rm -r "$file"
	cnitool del demo /run/netns/pod
}

@test "cnitool: a result that cannot be written is an error" {
	network demo 1.0.0 "$(scripted)"
	fails bash -c "cnitool add demo /run/netns/pod >/dev/full"
	has "attached, but the result could not be printed"
	mkfifo /tmp/fifo
	# shellcheck disable=SC2094 # a pipe without a reader
	exec {read}<>/tmp/fifo {write}>/tmp/fifo {read}<&-
	fails bash -c "cnitool add demo /run/netns/pod >&$write"
	exec {write}>&-
	has "attached, but the result could not be printed: write: Broken pipe"
	fails bash -c "cnitool add demo /run/netns/pod >&-"
	has "attached, but the result could not be printed: write: Bad file descriptor"
	for command in list "list --names" "list --json" help "help gc" --version; do
		fails bash -c "cnitool $command >/dev/full"
		has "No space left on device"
		fails bash -c "cnitool $command >&-"
		has "Bad file descriptor"
	done
}

@test "cnitool: the error for a missing plugin, network, directory or namespace has a hint" {
	network demo 1.0.0 '{"type":"nosuch"}'
	fails cnitool add demo /run/netns/pod --cni-path /tmp/a:/tmp/b
	has 'failed to find plugin "nosuch" in path [/tmp/a /tmp/b]'
	has "hint: set CNI_PATH to the directories that contain the plugins (currently /tmp/a:/tmp/b)"
	fails cnitool add other /run/netns/pod
	has 'network "other": no net configuration with name "other" in /etc/cni/net.d'
	has 'hint: set NETCONFPATH'
	NETCONFPATH=/tmp/nosuch fails cnitool add demo /run/netns/pod
	has "no net configurations found in /tmp/nosuch"
	network demo 1.0.0 '{"type":"loopback"}'
	fails cnitool add demo /run/netns/nosuch
	has 'create it with "ip netns add nosuch"'
}
