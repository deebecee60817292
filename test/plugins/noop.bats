#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# noop behaves like upstream's test plugin noop: what it writes to the debug file, and how it responds.
# shellcheck disable=SC2154 # stderr comes from run
load ../lib
bats_require_minimum_version 1.5.0

setup() {
	need jq
	cd "$BATS_TEST_TMPDIR" || return
	unset CNI_ARGS CNI_NETNS_OVERRIDE
	debug=$PWD/debug
	args=""
}

# call VERB [MORE [VERSION]]: call the plugin; MORE: additional members of the configuration
call() {
	CNI_COMMAND=$1 CNI_CONTAINERID=c1 CNI_NETNS=/some/netns CNI_IFNAME=eth0 CNI_PATH=/some/path \
		CNI_ARGS=$args "$HAWSER_BUILD/cni/noop" < <(printf '%s' "$(conf "${2-}" "${3-}")")
}
conf() { echo "{\"cniVersion\":\"${2:-1.1.0}\",\"name\":\"net\"${1:+,$1}}"; }

# debug_file JSON: write the debug file, and name it in CNI_ARGS
debug_file() {
	echo "$1" >"$debug"
	args="DEBUG=$debug"
}

verbs="ADD CHECK DEL GC STATUS"

@test "noop: without a debug file every verb prints {} and a notice" {
	for verb in $verbs; do
		run --separate-stderr call "$verb"
		[ "$status" = 0 ]
		[ "$output" = '{}' ]
		[ "$stderr" = "CNI_ARGS or config empty, no debug behavior" ]
	done
}

@test "noop: the plugin writes its arguments and input to the debug file, byte for byte" {
	for verb in $verbs; do
		debug_file '{"ReportResult":"{}"}'
		CNI_NETNS_OVERRIDE=yes call "$verb" '"x":1'
		[ "$(stat -c %a "$debug")" = 600 ]
		diff - <(jq -S . "$debug") <<-END
			$(jq -nS --arg verb "$verb" --arg args "$args" --arg stdin "$(conf '"x":1' | tr -d '\n' | base64 -w 0)" '{
				Command: $verb, ReportResult: "{}", ReportError: "", ReportErrorCode: 0, ReportStderr: "",
				ExitWithCode: 0,
				CmdArgs: { ContainerID: "c1", Netns: "/some/netns", IfName: "eth0", Args: $args,
					   Path: "/some/path", NetnsOverride: "yes", StdinData: $stdin } }')
		END
	done
}

@test "noop: the configuration may name the debug file; CNI_ARGS takes precedence" {
	echo '{"ReportResult":"{\"a\":1}"}' >one
	run call DEL "\"debugFile\":\"$PWD/one\""
	[ "$output" = '{"a":1}' ]
	debug_file '{"ReportResult":"{\"b\":2}"}'
	run call DEL "\"debugFile\":\"$PWD/one\""
	[ "$output" = '{"b":2}' ]
}

@test "noop: a result is printed exactly as it is in the debug file" {
	debug_file '{"ReportResult":" any < bytes \" \u0001 at all\n"}'
	call ADD >out
	printf ' any < bytes " \001 at all\n' | cmp - out
}

@test "noop: an error has the code in the debug file, or 999" {
	debug_file '{"ReportError":"banana","ReportResult":"{}"}'
	run call ADD
	[ "$status" = 1 ]
	[ "$output" = '{
    "code": 999,
    "msg": "banana"
}' ]
	debug_file '{"ReportError":"banana","ReportErrorCode":77}'
	run call DEL
	[ "$(jq .code <<<"$output")" = 77 ]
}

@test "noop: a failed ADD is recorded as an ADD and not undone" {
	debug_file '{"ReportError":"banana"}'
	echo '[]' >log
	run call ADD "\"commandLog\":\"$PWD/log\""
	[ "$(jq -r .Command "$debug")" = ADD ]
	[ "$(jq -c 'map(.Command)' log)" = '["ADD"]' ]
}

@test "noop: ReportStderr is printed on standard error" {
	debug_file '{"ReportStderr":"some output\n"}'
	run --separate-stderr call CHECK
	[ "$status" = 0 ]
	[ -z "$output" ]
	[ "$stderr" = "some output" ]
}

@test "noop: each call is appended to the command log" {
	debug_file '{"ReportResult":"{}"}'
	: >log
	for verb in $verbs; do
		call "$verb" "\"commandLog\":\"$PWD/log\""
	done
	[ "$(jq -c 'map(.Command)' log)" = '["ADD","CHECK","DEL","GC","STATUS"]' ]
	[ "$(jq -r '.[2].CmdArgs.ContainerID' log)" = c1 ]
}

@test "noop: PASSTHROUGH prints prevResult in the configuration's version" {
	debug_file '{"ReportResult":"PASSTHROUGH"}'
	prev='"prevResult":{"cniVersion":"0.3.1","ips":[{"version":"4","address":"10.1.2.3/24"}]}'
	run call ADD "$prev" 0.4.0
	[ "$(jq -c . <<<"$output")" = \
		'{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.2.3/24"}],"dns":{}}' ]
}

@test "noop: INJECT-DNS prints prevResult with another name server" {
	debug_file '{"ReportResult":"INJECT-DNS"}'
	run call ADD '"prevResult":{"ips":[{"address":"10.1.2.3/24"}],"dns":{"nameservers":["9.9.9.9"],"domain":"d"}}'
	[ "$(jq -c .dns <<<"$output")" = '{"domain":"d","nameservers":["1.2.3.4"]}' ]
	[ "$(jq -r '.ips[0].address' <<<"$output")" = 10.1.2.3/24 ]
}

@test "noop: ExitWithCode sets the exit status, after the result is printed" {
	debug_file '{"ReportResult":"{\"a\":1}","ExitWithCode":3}'
	run call ADD
	[ "$status" = 3 ]
	[ "$output" = '{"a":1}' ]
}

@test "noop: VERSION reports an extra version, or only the versions in the debug file" {
	run env CNI_COMMAND=VERSION "$HAWSER_BUILD/cni/noop"
	[ "$output" = '{"cniVersion":"1.1.0","supportedVersions":["0.-42.0","0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}' ]
	debug_file '{"ReportVersionSupport":["9.8.7","foo"]}'
	run call VERSION
	[ "$output" = '{"cniVersion":"1.1.0","supportedVersions":["9.8.7","foo"]}' ]
	debug_file '{"ReportVersionSupport":[]}'
	run call VERSION
	[ "$output" = '{"cniVersion":"1.1.0","supportedVersions":[]}' ]
	debug_file '{"ReportVersionSupport":null}'
	run call VERSION
	[[ "$output" == *'"0.-42.0"'* ]]
}

@test "noop: ADD accepts 0.-42.0, the extra version that VERSION reports" {
	run --separate-stderr call ADD "" 0.-42.0
	[ "$output" = '{}' ]
	run call ADD "" 0.-43.0
	[ "$(jq .code <<<"$output")" = 1 ]
}

@test "noop: the debug file keeps ReportVersionSupport" {
	debug_file '{"ReportVersionSupport":["9.8.7"]}'
	call DEL
	[ "$(jq -c .ReportVersionSupport "$debug")" = '["9.8.7"]' ]
}

@test "noop: a pair in CNI_ARGS that does not have exactly one = is refused" {
	for args in "DEBUG=$debug;" "A" "A=b=c"; do
		run call ADD
		[ "$status" = 1 ]
		[[ "$(jq -r .msg <<<"$output")" == "CNI_ARGS invalid key/value pair: ["*"]" ]]
	done
	[ "$(jq -r .msg <<<"$output")" = "CNI_ARGS invalid key/value pair: [A b c]" ]
}

@test "noop: a debug file that is missing or damaged is an error" {
	args="DEBUG=/nowhere/debug"
	run call ADD
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$output")" == *"/nowhere/debug: No such file or directory" ]]
	debug_file '{'
	run call ADD
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$output")" == "$debug: "* ]]
}
