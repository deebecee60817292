#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The plugin side of the protocol compared with upstream's: the same invalid input to Debian's loopback
# (plugins 1.1.1, spec 1.0.0) and to ours must give the same exit status, code, text and details.
# Intended differences are rows of docs/compatibility.md and are tested at the end.
# shellcheck disable=SC2030,SC2031 # each test has its own conf
load ../lib

ours=$HAWSER_BUILD/cni/loopback
upstream=$GO_PLUGINS/loopback
conf='{"cniVersion":"1.0.0","name":"net","type":"loopback"}'

setup() {
	need jq
	need_go_plugins loopback
	ip netns add pod
}

teardown() {
	ip netns del pod
}

# call PLUGIN [NAME=VALUE...]: run PLUGIN for ADD with $conf and these environment variables
call() {
	local plugin=$1
	shift
	env -u CNI_ARGS -u CNI_NETNS_OVERRIDE CNI_COMMAND=ADD CNI_CONTAINERID=c1 \
		CNI_NETNS=/run/netns/pod CNI_IFNAME=eth0 CNI_PATH=/x "$@" "$plugin" <<<"$conf"
}

# same [NAME=VALUE...]: assert that output and exit status of both plugins are equal; $output is the output
same() {
	local theirs their_status
	run call "$upstream" "$@"
	theirs=$output their_status=$status
	run call "$ours" "$@"
	diff <(echo "$theirs") <(echo "$output")
	[ "$their_status" = "$status" ]
}

# same_start TEXT [NAME=VALUE...]: like same, but only the start of the message is compared, because the rest
# comes from the JSON library
same_start() {
	local start=$1 theirs
	shift
	run call "$upstream" "$@"
	theirs=$output
	run call "$ours" "$@"
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$theirs")" == "$start"* ]]
	[[ "$(jq -r .msg <<<"$output")" == "$start"* ]]
	[ "$(jq .code <<<"$theirs")" = "$(jq .code <<<"$output")" ]
}

failed() { [ "$status" = 1 ] && [ "$(jq .code <<<"$output")" = "$1" ]; }

@test "skel: missing variables are reported as in upstream" {
	for verb in ADD CHECK DEL; do
		for missing in CNI_CONTAINERID CNI_NETNS CNI_IFNAME CNI_PATH; do
			[ "$verb $missing" != "DEL CNI_NETNS" ] || continue
			same CNI_COMMAND=$verb $missing=
			failed 4
		done
		same CNI_COMMAND=$verb CNI_CONTAINERID= CNI_NETNS= CNI_IFNAME= CNI_PATH=
		failed 4
	done
}

@test "skel: invalid container IDs are refused as in upstream" {
	for id in -c .c _c 'c/1' 'c 1' $'c\n' 'cä'; do
		same "CNI_CONTAINERID=$id"
		failed 4
	done
}

@test "skel: invalid interface names are refused as in upstream" {
	for name in . .. a/b a:b 'a b' $'a\tb' $'a\xc2\xa0b' $'a\xe2\x80\xafb' 0123456789abcdef ääääääää; do
		same "CNI_IFNAME=$name"
		failed 4
	done
}

@test "skel: unknown verbs are refused as in upstream" {
	for verb in add FOO "ADD " version; do
		same "CNI_COMMAND=$verb"
		failed 4
	done
}

@test "skel: malformed configurations and missing names are refused as in upstream" {
	for conf in '' '{' '[]' 'x' '"x"' '{"name":1}' '{"name":{}}' '{"name":"net"} x' '{"name":"net",}' \
		"{'name':'net'}"; do
		same_start "error unmarshall network config: "
		failed 6
	done
	for conf in 'null' '{}' '{"name":null}' '{"name":""}' '{"name":"a b"}' '{"name":"-a"}' '{"name":"a/b"}' \
		'{"name":"net","NAME":"a b"}'; do
		same
		failed 7
	done
}

@test "skel: unsupported versions are refused as in upstream" {
	for version in 2.0.0 1.0 1.0.0.0 x 0.3.2; do
		conf="{\"cniVersion\":\"$version\",\"name\":\"net\"}"
		for verb in ADD DEL; do
			run call "$upstream" CNI_COMMAND=$verb
			# Debian's plugin does not support 1.1.0
			theirs=${output/'\"1.0.0\"]'/'\"1.0.0\" \"1.1.0\"]'}
			run call "$ours" CNI_COMMAND=$verb
			[ "$theirs" = "$output" ]
			failed 1
		done
	done
	conf='{"cniVersion":"0.3.1","name":"net"}'
	same CNI_COMMAND=CHECK
	failed 1
	conf='{"name":"net"}'
	same CNI_COMMAND=CHECK
	failed 1
	for version in x 1.0.0.0 1.x 1..2; do
		conf="{\"cniVersion\":\"$version\",\"name\":\"net\"}"
		same_start "" CNI_COMMAND=CHECK
		failed 6
	done
	conf='{"cniVersion":1,"name":"net"}'
	same_start "decoding version from network config: "
	failed 6
}

@test "skel: keys are case-insensitive, and the last one of duplicate keys is used" {
	conf='{"CNIVERSION":"1.0.0","Name":"net"}'
	same CNI_COMMAND=DEL
	[ "$status" = 0 ]
	conf='{"name":"a b","name":"net","cniVersion":"9.9.9","cniVersion":"1.0.0"}'
	same CNI_COMMAND=DEL
	[ "$status" = 0 ]
}

@test "skel: a missing namespace is reported by the plugin, not by skel" {
	same_start 'failed to Statfs "/nowhere": ' CNI_NETNS=/nowhere
	same CNI_COMMAND=DEL CNI_NETNS=/nowhere
	[ "$status" = 0 ]
	same CNI_COMMAND=DEL CNI_NETNS=
	[ "$status" = 0 ]
}

@test "skel: VERSION prints the same format as in upstream" {
	run call "$upstream" CNI_COMMAND=VERSION
	theirs=$output
	run call "$ours" CNI_COMMAND=VERSION
	[ "$(jq -c 'keys' <<<"$theirs")" = "$(jq -c 'keys' <<<"$output")" ]
	[ "$(jq -c '.supportedVersions + ["1.1.0"]' <<<"$theirs")" = "$(jq -c .supportedVersions <<<"$output")" ]
}

@test "skel: without CNI_COMMAND both plugins print name and versions on standard error and succeed" {
	for plugin in "$upstream" "$ours"; do
		run env -u CNI_COMMAND "$plugin"
		[ "$status" = 0 ]
		[[ "${lines[0]}" == "CNI loopback plugin "* ]]
		[[ "${lines[1]}" == "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0"* ]]
		[ -z "$(env -u CNI_COMMAND "$plugin" 2>/dev/null)" ]
	done
}

# ---- intended differences: rows of docs/compatibility.md --------------------------------

@test "skel: the plugin's own namespace is refused, and nothing is changed" {
	ip netns exec pod ip link set lo down
	run ip netns exec pod env CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/pod CNI_IFNAME=eth0 \
		CNI_PATH=/x "$ours" <<<"$conf"
	failed 8
	[ "$(jq -r .msg <<<"$output")" = "plugin's netns and netns from CNI_NETNS should not be the same" ]
	[[ "$(ip -n pod link show lo)" == *"state DOWN"* ]]
	run ip netns exec pod env CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/pod CNI_IFNAME=eth0 \
		CNI_PATH=/x CNI_NETNS_OVERRIDE=TRUE "$ours" <<<"$conf"
	[ "$status" = 0 ]
}

@test "skel: an invalid variable is reported before a missing one (newer upstream)" {
	run call "$ours" CNI_CONTAINERID=-c CNI_IFNAME= CNI_PATH=
	failed 4
	[ "$(jq -r .msg <<<"$output")" = "invalid characters in containerID" ]
	run call "$upstream" CNI_CONTAINERID=-c CNI_IFNAME= CNI_PATH=
	[ "$(jq -r .msg <<<"$output")" = "required env variables [CNI_IFNAME,CNI_PATH] missing" ]
}

@test "skel: GC and STATUS are supported (newer upstream)" {
	conf='{"cniVersion":"1.1.0","name":"net"}'
	for verb in GC STATUS; do
		run call "$ours" CNI_COMMAND=$verb
		[ "$status" = 0 ]
	done
	conf='{"cniVersion":"1.0.0","name":"net"}'
	run call "$ours" CNI_COMMAND=GC
	failed 1
	[ "$(jq -r .msg <<<"$output")" = "config version does not allow GC" ]
}
