# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # output and status are those of run
#
# test/cni/cnitool.bash - a namespace, a shell script as plugin, and helpers for tests of cnitool
load ../lib

setup() {
	need ip jq
	rm -rf /etc/cni/net.d/* /var/lib/cni/results /tmp/plugins /tmp/made /tmp/calls
	mkdir -p /etc/cni/net.d /tmp/plugins
	ip netns add pod
	export CNI_PATH=/tmp/plugins:$HAWSER_BUILD/cni:$GO_PLUGINS
	# A plugin that logs its calls, creates /tmp/made, and then does what "mode" in its configuration says.
	cat >/tmp/plugins/script <<-'SCRIPT'
	#!/bin/bash
	input=$(cat)
	[ "$CNI_COMMAND" = VERSION ] && exec echo '{"cniVersion":"1.1.0","supportedVersions":["0.4.0","1.0.0","1.1.0"]}'
	echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME $CNI_ARGS" >>/tmp/calls
	echo "$input" >/tmp/input
	mode=$(jq -r ".mode.$CNI_COMMAND // \"\"" <<<"$input")
	case $CNI_COMMAND in
	ADD) touch /tmp/made ;;
	DEL) rm -f /tmp/made ;;
	esac
	case $mode in
	fail) echo '{"code":123,"msg":"it broke","details":"badly"}'; exit 1 ;;
	busy) echo '{"code":50,"msg":"not now"}'; exit 1 ;;
	hang) touch /tmp/hangs; sleep infinity ;;
	interrupt) kill -TERM $PPID ;;
	garbage) echo hello; exit 1 ;;
	esac
	[ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion":"1.0.0","ips":[{"address":"10.1.2.3/24"}]}'
	SCRIPT
	chmod +x /tmp/plugins/script
}

teardown() {
	cnitool del demo /run/netns/pod >/dev/null 2>&1 || true
	ip netns del pod 2>/dev/null || true
}

# network NAME VERSION PLUGIN...: write the configuration of a network
network() {
	local IFS=,
	echo "{\"cniVersion\":\"$2\",\"name\":\"$1\",\"plugins\":[${*:3}]}" \
		>"/etc/cni/net.d/10-$1.conflist"
}

# scripted [VERB MODE]: print the configuration of the plugin "script", with a mode for VERB
scripted() { echo "{\"type\":\"script\",\"mode\":{${1:+\"$1\":\"$2\"}}}"; }

nothing_left() {
	local left
	left=$(ls -d /tmp/made /var/lib/cni/results/* 2>/dev/null) || true
	[ -z "$left" ] || { printf '%s\n' "left: $left" "calls:" "$(</tmp/calls)" "output: $output"; return 1; }
}

has() { [[ "$output" == *"$1"* ]] || { echo "no \"$1\" in: $output"; return 1; }; }
lacks() { [[ "$output" != *"$1"* ]] || { echo "\"$1\" in: $output"; return 1; }; }
fails() { # COMMAND...: must exit with 1
	run "$@"
	[ "$status" = 1 ]
}
