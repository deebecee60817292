#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# examples/hello, a plugin outside our tree: built against an installed copy through pkg-config
# shellcheck disable=SC2154 # stderr comes from run
load ../lib
bats_require_minimum_version 1.5.0

setup_file() {
	install_hawser
	cp -r "$HAWSER_SRC/examples/hello" "$BATS_FILE_TMPDIR/hello"
	make -C "$BATS_FILE_TMPDIR/hello"
}

setup() {
	need jq
	hello=$BATS_FILE_TMPDIR/hello/hello
	cd "$BATS_TEST_TMPDIR" || return
	mkdir greetings
	export HAWSER_STATE=$PWD/state
	unset CNI_COMMAND CNI_ARGS CNI_NETNS_OVERRIDE
}

# call VERB [CONTAINER [MEMBERS [DIRECTORY]]]: call the plugin; MEMBERS are added to the configuration
call() {
	CNI_COMMAND=$1 CNI_CONTAINERID=${2-c1} CNI_NETNS=/nowhere CNI_IFNAME=eth0 CNI_PATH=/nowhere "$hello" \
		<<<"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"directory\":\"${4-$PWD/greetings}\"${3:+,$3}}"
}

@test "hello: the source has at most sixty lines and includes only public headers" {
	[ "$(wc -l <"$HAWSER_SRC/examples/hello/hello.c")" -le 60 ]
	diff - <(grep '^#include' "$HAWSER_SRC/examples/hello/hello.c" | grep -v '<[a-z]*\.h>') <<-END
		#include <hawser/plugin.h>
	END
	ldd "$hello" | grep -q "libhawser.so.1 => $DESTDIR"
}

@test "hello: ADD writes a greeting, CHECK finds it, DEL removes it" {
	run call ADD
	[ "$status" = 0 ]
	[ "$(jq -c . <<<"$output")" = '{"cniVersion":"1.1.0"}' ]
	[ "$(<greetings/c1-eth0)" = "hello c1" ]
	[ -z "$(call CHECK)" ]
	[ -z "$(call DEL)" ]
	[ ! -e greetings/c1-eth0 ]
	call DEL
	run call CHECK
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$output")" == *"/greetings/c1-eth0: No such file or directory" ]]
}

@test "hello: the result of the previous plugin is passed on" {
	run call ADD c1 '"word":"hi","prevResult":{"ips":[{"address":"10.1.2.3/24"}]}'
	[ "$(jq -c . <<<"$output")" = '{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}' ]
	[ "$(<greetings/c1-eth0)" = "hi c1" ]
}

@test "hello: GC removes invalid attachments, although the plugin has no code for GC" {
	call ADD c1
	call ADD c2
	call GC "" '"cni.dev/valid-attachments":[{"containerID":"c2","ifname":"eth0"}]'
	[ "$(ls greetings)" = c2-eth0 ]
}

@test "hello: errors are printed as CNI error objects" {
	run call ADD c1 "" /nowhere
	[ "$status" = 1 ]
	[ "$(jq -r .msg <<<"$output")" = "write /nowhere/c1-eth0: No such file or directory" ]
	run call ADD c1 '"word":7'
	[ "$(jq .code <<<"$output")" = 7 ]
	[[ "$(jq -r .msg <<<"$output")" == "failed to load netconf: "*word* ]]
	run call ADD c1 '"directory":""'
	[ "$(jq .code <<<"$output")" = 7 ]
}

@test "hello: VERSION, the about text and --help come from the library" {
	run call VERSION
	[ "$(jq -c .supportedVersions <<<"$output")" = '["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]' ]
	run --separate-stderr "$hello"
	[ "$status" = 0 ]
	[[ "$stderr" == "CNI hello plugin "* ]]
	run "$hello" --help
	[[ "$output" == *directory*word* ]]
}
