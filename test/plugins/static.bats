#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# static compared with upstream's plugin (Debian's); then features that only our plugin has.
bats_require_minimum_version 1.5.0
load ../lib

ours=$HAWSER_BUILD/cni/static
upstream=$GO_PLUGINS/static

setup() { need jq; }

# call PLUGIN VERB VERSION IPAM [MORE]: run a plugin; MORE: additional JSON members
call() {
	CNI_COMMAND=$2 CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/nosuch CNI_IFNAME=eth0 \
		CNI_ARGS=${ARGS:-} CNI_PATH=$HAWSER_BUILD/cni \
		"$1" <<<"{\"cniVersion\":\"$3\",\"name\":\"net\",\"type\":\"x\"${4:+,\"ipam\":$4}${5:+,$5}}"
}

# Debian's build of upstream's plugin prints an empty "dns" in results of CNI version 1.0.0, and prints the keys
# in a different order; newer releases of the plugin do neither.
normalize() { jq -S 'if .dns == {} then del(.dns) else . end'; }

# same VERSION IPAM [MORE]: assert that ADD of both plugins returns the same result
same() {
	call "$upstream" ADD "$@" | normalize >/tmp/upstream
	call "$ours" ADD "$@" | normalize >/tmp/ours
	diff /tmp/upstream /tmp/ours
}

# same_error VERSION IPAM [MORE]: assert that ADD of both plugins fails with the same message
same_error() {
	run call "$upstream" ADD "$@"
	[ "$status" = 1 ]
	expected=$(jq -r .msg <<<"$output")
	run call "$ours" ADD "$@"
	[ "$status" = 1 ]
	[ "$(jq -r .msg <<<"$output")" = "$expected" ]
}

one='{"type":"static","addresses":[{"address":"10.1.0.5/24","gateway":"10.1.0.1"}]}'
both='{"type":"static","addresses":[{"address":"10.1.0.5/24","gateway":"10.1.0.1"},{"address":"fd00::5/64"}],
	"routes":[{"dst":"0.0.0.0/0"},{"dst":"192.168.0.0/16","gw":"10.1.0.9"},{"dst":"::/0","gw":"fd00::1"}],
	"dns":{"nameservers":["10.1.0.1"],"domain":"example.org","search":["a","b"],"options":["ndots:2"]}}'

@test "static: ADD returns the same result as upstream in all versions that Debian's plugin supports" {
	need_go_plugins static
	for version in 0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0; do
		same "$version" "$one"
		same "$version" "$both"
	done
	same 1.0.0 '{"type":"static"}'
}

@test "static: addresses of CNI_ARGS follow those of the configuration, with their gateways" {
	need_go_plugins static
	ARGS='IP=10.9.0.5/24;GATEWAY=10.9.0.1' same 1.0.0 "$one"
	ARGS='IP=10.9.0.5/24, fd00:9::5/64;GATEWAY=10.9.0.1,fd00:9::1' same 1.0.0 '{"type":"static"}'
	ARGS='IgnoreUnknown=1;K8S_POD_NAME=x;IP=10.9.0.5/24' same 0.3.1 "$one"
}

@test "static: args.cni.ips replaces all other addresses, and runtimeConfig.ips replaces args.cni.ips" {
	need_go_plugins static
	args='"args":{"cni":{"ips":["10.8.0.5/24","fd00:8::5/64"]}}'
	runtime='"runtimeConfig":{"ips":["10.7.0.5/16"]}'
	ARGS='IP=10.9.0.5/24' same 1.0.0 "$both" "$args"
	ARGS='IP=10.9.0.5/24' same 1.0.0 "$both" "$runtime"
	same 1.0.0 "$both" "$args,$runtime"
	same 1.0.0 "$both" '"args":{"cni":{"ips":[]}},"runtimeConfig":{}'
}

@test "static: each error has the same text as in upstream" {
	need_go_plugins static
	same_error 1.0.0 ""
	same_error 1.0.0 '{"addresses":[{"address":"10.1.0.5"}]}'
	same_error 1.0.0 '{"addresses":[{"address":""}]}'
	ARGS='IP=10.1.0.5' same_error 1.0.0 "$one"
	ARGS='GATEWAY=10.1.0' same_error 1.0.0 "$one"
	same_error 1.0.0 "$one" '"args":{"cni":{"ips":["10.1.0.5"]}}'
	same_error 1.0.0 "$one" '"runtimeConfig":{"ips":["10.1.0.5"]}'
	two='{"addresses":[{"address":"10.1.0.5/24"},{"address":"10.2.0.5/24"}]}'
	same_error 0.2.0 "$two"
	same 0.3.0 "$two"
}

@test "static: GATEWAY of CNI_ARGS is also set for configured addresses whose network contains it" {
	ARGS='GATEWAY=10.1.0.254' run call "$ours" ADD 1.0.0 \
		'{"addresses":[{"address":"10.1.0.5/24"},{"address":"10.2.0.5/24"}]}'
	[ "$(jq -c '[.ips[].gateway]' <<<"$output")" = '["10.1.0.254",null]' ]
}

@test "static: the result does not contain prevResult" {
	previous='"prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.3.0.5/24"}],"interfaces":[{"name":"x"}]}'
	run call "$ours" ADD 1.0.0 "$one" "$previous"
	[ "$(jq -c '[.interfaces, .ips[].address]' <<<"$output")" = '[null,"10.1.0.5/24"]' ]
}

@test "static: DEL, GC and STATUS succeed silently, DEL even with an invalid configuration" {
	[ -z "$(call "$ours" DEL 1.1.0 '{"addresses":7}')" ]
	[ -z "$(call "$ours" GC 1.1.0 "$one" '"cni.dev/valid-attachments":[]')" ]
	[ -z "$(call "$ours" STATUS 1.1.0 "$one")" ]
	run call "$ours" STATUS 1.1.0 '{"addresses":[{"address":"10.1.0.5"}]}'
	[ "$status" = 1 ]
}

@test "static: CHECK finds a changed gateway, a missing address and a missing prevResult" {
	check() { # IP
		run call "$ours" CHECK 1.0.0 "$one" '"prevResult":{"cniVersion":"1.0.0","ips":['"$1"']}'
	}
	check '{"address":"10.1.0.5/24","gateway":"10.1.0.1"}'
	[ "$status" = 0 ]
	check '{"address":"10.1.0.5/24","gateway":"10.1.0.2"}'
	[ "$(jq -r .msg <<<"$output")" = "static: Failed to match addr 10.1.0.5 on interface eth0" ]
	check '{"address":"10.1.0.6/24"}'
	[ "$(jq -r .msg <<<"$output")" = "static: Failed to find addr 10.1.0.5 of interface eth0 in prevResult" ]
	run call "$ours" CHECK 1.0.0 "$one"
	[ "$(jq -r .msg <<<"$output")" = "Required prevResult missing" ]
}
