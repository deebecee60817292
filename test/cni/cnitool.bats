#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# cnitool: arguments and results, with a shell script as plugin, with our plugins and with Debian's Go plugins
# shellcheck disable=SC2154 # variables are those of run
bats_require_minimum_version 1.5.0
load cnitool

@test "cnitool: the container ID is derived from the absolute path of the namespace, as in upstream" {
	network demo 1.0.0 "$(scripted)"
	cnitool add demo /var/run/netns/testing >/dev/null
	(cd /var/run && cnitool del demo ./netns//x/../testing/.)
	[ "$(cut -d' ' -f1-3 /tmp/calls)" = "ADD cnitool-77383ca0a0715733ca6f /var/run/netns/testing
DEL cnitool-77383ca0a0715733ca6f /var/run/netns/testing" ]
}

@test "cnitool: a relative path is resolved from the shell's working directory" {
	network demo 1.0.0 "$(scripted)"
	mkdir -p /tmp/real && ln -sfn /tmp/real /tmp/link
	(cd /tmp/link && cnitool add demo ns >/dev/null)
	[ "$(cut -d' ' -f3 /tmp/calls)" = /tmp/link/ns ]
}

@test "cnitool: add prints the result indented by four spaces and without a final newline" {
	network demo 1.0.0 "$(scripted)"
	cnitool add demo /run/netns/pod >/tmp/out
	printf '{\n    "cniVersion": "1.0.0",\n    "ips": [\n        {\n            "address": "10.1.2.3/24"\n        }\n    ]\n}' |
		cmp - /tmp/out
	[ -z "$(cnitool check demo /run/netns/pod)" ]
	[ -z "$(cnitool del demo /run/netns/pod)" ]
	nothing_left
}

@test "cnitool: on a terminal the result ends with a newline" {
	need script
	network demo 1.0.0 "$(scripted)"
	script -qec "cnitool add demo /run/netns/pod" /dev/null >/tmp/out </dev/null
	[ "$(tail -c 2 /tmp/out | od -An -c | tr -d ' ')" = '\r\n' ]
}

@test "cnitool: CNI_ARGS, CAP_ARGS and the interface name are passed to the plugin" {
	network demo 1.0.0 '{"type":"script","capabilities":{"ips":true,"mac":false}}'
	CNI_ARGS='A=1;B=two' CAP_ARGS='{"ips":["10.1.2.9"],"mac":"no","other":1}' CNI_IFNAME=net1 \
		cnitool add demo /run/netns/pod >/dev/null
	[ "$(cut -d' ' -f4- /tmp/calls)" = "net1 A=1;B=two" ]
	[ "$(jq -c .runtimeConfig /tmp/input)" = '{"ips":["10.1.2.9"]}' ]
	CNI_IFNAME=net1 cnitool add -i net2 demo /run/netns/pod >/dev/null
	CNI_IFNAME='' cnitool add demo /run/netns/pod >/dev/null
	[ "$(cut -d' ' -f4 /tmp/calls | tail -n 2 | xargs)" = "net2 eth0" ]
}

@test "cnitool: invalid CNI_ARGS, CAP_ARGS and interface names are refused before anything runs" {
	network demo 1.0.0 "$(scripted)"
	for args in A A= =1 'A=1;' 'A=1=2'; do
		CNI_ARGS=$args fails cnitool add demo /run/netns/pod
		has 'invalid CNI_ARGS pair "'
	done
	for args in '[' '[]' 7; do
		CAP_ARGS=$args fails cnitool add demo /run/netns/pod
		has "CAP_ARGS"
	done
	fails cnitool add -i a-name-that-is-too-long demo /run/netns/pod
	has "interface name is too long"
	[ ! -e /tmp/calls ]
}

@test "cnitool: add and del work with closed standard input and error, del without output, too" {
	network demo 1.0.0 "$(scripted)"
	cnitool add demo /run/netns/pod <&- 2>&-
	[ -e /tmp/made ]
	[ -n "$(ls /var/lib/cni/results)" ]
	cnitool del demo /run/netns/pod <&- >&- 2>&-
	nothing_left
}

@test "cnitool: without CNI_PATH plugins are searched in /opt/cni/bin" {
	network demo 1.0.0 "$(scripted)"
	mkdir -p /opt/cni/bin
	cp /tmp/plugins/script /opt/cni/bin/script
	env -u CNI_PATH cnitool add demo /run/netns/pod >/dev/null
	rm /opt/cni/bin/script
	CNI_PATH='' fails cnitool del demo /run/netns/pod
	has "in path [/opt/cni/bin]"
}

# leftovers: print what attachments leave behind, without objects that upstream's plugins create once per
# host
leftovers() {
	ip -o link | grep veth || true
	iptables-save -t nat | grep -E 'CNI-DN-|CNI-[0-9a-f]{24}' || true
	ls /var/lib/cni/results 2>/dev/null
	find /var/lib/cni/networks -name '10.*' 2>/dev/null || true
}

@test "cnitool: our loopback works with upstream's bridge, host-local and portmap in 0.4.0 and 1.0.0" {
	need_go_plugins bridge host-local portmap
	need iptables
	export CAP_ARGS='{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}'
	# If ip6tables exists, CHECK of portmap 1.1.1 also expects the IPv4 rules in ip6tables.
	mkdir -p /tmp/path /tmp/loopback
	ln -sf "$(command -v iptables)" "$HAWSER_BUILD/bin/cnitool" /tmp/path
	ln -sf "$HAWSER_BUILD/cni/loopback" /tmp/loopback
	cnitool() { PATH=/tmp/path CNI_PATH=/tmp/loopback:$GO_PLUGINS command cnitool "$@"; }
	for version in 0.4.0 1.0.0; do
		network demo $version '{"type":"loopback"}' '{"type":"bridge","bridge":"demo0","isGateway":true,"ipMasq":true,
			"ipam":{"type":"host-local","subnet":"10.99.0.0/24"}}' \
			'{"type":"portmap","capabilities":{"portMappings":true}}'
		cnitool validate demo >/dev/null
		run cnitool add demo /run/netns/pod
		[ "$status" = 0 ]
		[ "$(jq -r .cniVersion <<<"$output")" = $version ]
		address=$(jq -r '.ips[0].address' <<<"$output")
		ip -n pod addr show eth0 | grep -q "inet $address "
		iptables-save -t nat | grep -q CNI-DN-
		cnitool check demo /run/netns/pod
		ip -n pod addr del "$address" dev eth0
		fails cnitool check demo /run/netns/pod
		has 'plugin "bridge"'
		ip -n pod addr add "$address" dev eth0 # upstream's DEL needs the address to remove the ipMasq rules
		cnitool del demo /run/netns/pod
		cnitool del demo /run/netns/pod
		[ -z "$(leftovers)" ]
	done
}

@test "cnitool: del works after the namespace was deleted" {
	need_go_plugins bridge host-local
	network demo 1.0.0 '{"type":"loopback"}' '{"type":"bridge","bridge":"demo0","ipam":{"type":"host-local","subnet":"10.99.0.0/24"}}'
	cnitool add demo /run/netns/pod >/dev/null
	ip netns del pod
	cnitool del demo /run/netns/pod
	# the kernel deletes the links of a namespace some time after the last reference to it is released
	wait_until is_empty ip -o link show type veth
	leftovers
	[ -z "$(leftovers)" ]
}

@test "cnitool: every command works with a 1.1.0 chain of our plugins" {
	network demo 1.1.0 '{"type":"loopback"}' '{"type":"noop"}'
	cnitool status demo
	cnitool add demo /run/netns/pod >/dev/null
	cnitool check demo /run/netns/pod
	cnitool gc demo
	[ -z "$(ls /var/lib/cni/results)" ]
	run ! grep -q UP <(ip -n pod link show lo)
}

@test "cnitool: noop returns the result or the error in its debug file" {
	network demo 1.0.0 '{"type":"noop"}'
	echo '{"ReportResult":"{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.1.2.3/24\"}]}"}' >/tmp/debug
	CNI_ARGS=DEBUG=/tmp/debug run cnitool add demo /run/netns/pod
	[ "$status" = 0 ]
	[ "$(jq -r '.ips[0].address' <<<"$output")" = 10.1.2.3/24 ]
	[ "$(jq -r .Command /tmp/debug)" = ADD ]
	echo '{"ReportError":"told to","ReportErrorCode":42}' >/tmp/debug
	CNI_ARGS=DEBUG=/tmp/debug fails cnitool add --json demo /run/netns/pod
	[ "$(jq -c '[.code,.plugin]' <<<"$output")" = '[42,"noop"]' ]
}

@test "cnitool: --cache-dir is used by all commands" {
	network demo 1.1.0 "$(scripted)"
	cnitool --cache-dir /tmp/cache add demo /run/netns/pod >/dev/null
	[ -n "$(ls /tmp/cache/results)" ]
	[ ! -e /var/lib/cni/results ]
	cnitool --cache-dir /tmp/cache gc demo
	[ -z "$(ls /tmp/cache/results)" ]
	[ ! -e /tmp/made ]
}
