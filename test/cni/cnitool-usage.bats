#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# cnitool: usage errors, help, completion
# shellcheck disable=SC2154 # variables are those of run
bats_require_minimum_version 1.5.0
load cnitool

@test "cnitool: an unknown command or option, or too few arguments, is an error that shows the usage" {
	fails cnitool frobnicate demo /run/netns/pod
	has 'unknown command "frobnicate"'
	has 'run "cnitool help" for a list of commands'
	fails cnitool statsu demo
	has 'did you mean "cnitool status"?'
	fails cnitool add demo
	has "usage: cnitool [OPTIONS] add NETWORK NETNS"
	fails cnitool
	has "usage: cnitool"
	fails cnitool add --frob demo /run/netns/pod
	has 'cnitool: unknown option --frob'
	has 'run "cnitool help add" for help'
	fails cnitool del --yes demo /run/netns/pod
	has 'cnitool: unknown option --yes'
	fails cnitool add --timeout soon demo /run/netns/pod
	has 'invalid value "soon" for --timeout: want a number of seconds'
	fails cnitool add --json
	[ "$(jq -r .msg <<<"$output")" = "missing argument" ]
}

@test "cnitool: extra arguments are ignored with a message, as in upstream" {
	network demo 1.0.0 "$(scripted)"
	run cnitool del demo /run/netns/pod more
	[ "$status" = 0 ]
	[ "$output" = 'cnitool: extra argument "more" is ignored' ]
}

@test "cnitool: help describes every command, and lists all of them" {
	run cnitool --help
	[ "$status" = 0 ]
	all=$output
	for command in add check del gc status list validate versions; do
		[[ "$all" == *"  $command "* ]]
		help=$(cnitool help $command)
		[[ "$help" == "usage: cnitool [OPTIONS] $command"* ]]
		[[ "$help" == *"  cnitool $command"* || "$help" == *"&& cnitool $command"* ]]
		[ "$help" = "$(cnitool $command --help)" ]
	done
	[[ "$(cnitool help gc)" == *"Delete EVERY attachment of a network"* ]]
	fails cnitool help frobnicate
	[[ "$(cnitool --version)" == "cnitool (hawser) "* ]]
}

# complete_words WORD...: print the completions of "cnitool WORD..."; the last word is incomplete
complete_words() {
	bash -c 'source "$HAWSER_SRC/completions/hawser"; COMP_WORDS=(cnitool "$@")
		COMP_CWORD=$#; _hawser cnitool; echo "${COMPREPLY[@]}"' - "$@"
}

@test "cnitool: completion offers commands, networks, namespaces and options" {
	network demo 1.0.0 "$(scripted)"
	[ "$(complete_words "")" = "add check del gc status list validate versions help" ]
	[ "$(complete_words v)" = "validate versions" ]
	[ "$(complete_words add "")" = demo ]
	[ "$(complete_words -i net1 add d)" = demo ]
	[ "$(complete_words add demo /run/netns/p)" = /run/netns/pod ]
	[ "$(complete_words add demo "")" = /run/netns/pod ]
	[ "$(complete_words add --ti)" = --timeout ]
	[ "$(complete_words versions "")" = demo ]
	[ "$(complete_words --conf-dir /etc/cni/n)" = /etc/cni/net.d ]
}
