#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# cnitool with a shell script as plugin, with our plugins and with Debian's Go plugins.
bats_require_minimum_version 1.5.0
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

# interrupt SIGNAL|ctrl-c COMMAND...: run COMMAND on a new terminal, interrupt it twice when the plugin
# hangs, print the output of COMMAND, and return its exit status
interrupt() {
	rm -f /tmp/hangs
	/usr/bin/python3 - "$@" <<-'PYTHON'
	import os, pty, signal, sys, time
	how, command = sys.argv[1], sys.argv[2:]
	pid, terminal = pty.fork()
	if pid == 0:
	    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in a background job
	    os.execvp(command[0], command)
	for _ in range(200):
	    if os.path.exists("/tmp/hangs"):
	        break
	    time.sleep(0.1)
	for _ in range(2):
	    if how == "ctrl-c":
	        os.write(terminal, b"\x03")
	    else:
	        os.kill(pid, getattr(signal, how))
	written = b""
	try:
	    while True:
	        written += os.read(terminal, 4096)
	except OSError:
	    pass
	sys.stdout.buffer.write(written)
	sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	PYTHON
}

@test "cnitool: Ctrl-C kills the plugin and undoes the attachment, even if pressed twice" {
	network demo 1.0.0 "$(scripted)" "$(scripted ADD hang)"
	for how in ctrl-c SIGTERM SIGHUP; do
		fails interrupt "$how" cnitool --timeout 30 add demo /run/netns/pod
		has "cancelled after"
		nothing_left
		[ "$(tail -n 2 /tmp/calls | cut -d' ' -f1 | xargs)" = "DEL DEL" ]
	done
	run ! pgrep -f "sleep infinity"
}

@test "cnitool: an interrupt between two plugins, and another during the undo, leave nothing behind" {
	network demo 1.0.0 '{"type":"script","mode":{"ADD":"interrupt","DEL":"interrupt"}}' "$(scripted)"
	fails cnitool add demo /run/netns/pod
	has "cancel"
	lacks "undo"
	nothing_left
	[ "$(cut -d' ' -f1 /tmp/calls | xargs)" = "ADD DEL DEL" ]
}

@test "cnitool: after an interrupt before the first plugin, no plugin runs" {
	network demo 1.0.0 "$(scripted)"
	cnitool add demo /run/netns/pod >/dev/null
	cnitool del demo /run/netns/pod
	rm /tmp/calls
	exec {gc}<>/run/hawser/locks/libhawser-*
	flock "$gc" # as a running GC does
	cnitool add demo /run/netns/pod >/tmp/out 2>&1 {gc}<&- &
	# wait until cnitool has installed its signal handlers
	wait_until eval '((0x$(awk "/^SigCgt/ { print \$2 }" "/proc/$!/status") & 1 << 14))'
	kill -TERM $!
	status=0
	wait $! || status=$?
	exec {gc}<&-
	[ "$status" = 1 ]
	grep -q 'lock network "demo": cancelled' /tmp/out
	[ ! -e /tmp/calls ]
	nothing_left
}

@test "cnitool: after Ctrl-C during a del that hangs, the cache is kept for the next del" {
	network demo 1.0.0 "$(scripted DEL hang)"
	cnitool add demo /run/netns/pod >/dev/null
	fails interrupt ctrl-c cnitool --timeout 30 del demo /run/netns/pod
	has 'hint: interrupted'
	[ -n "$(ls /var/lib/cni/results)" ]
	network demo 1.0.0 "$(scripted)"
	cnitool del demo /run/netns/pod
	nothing_left
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

@test "cnitool: add and del work with closed standard input and error, del without output, too" {
	network demo 1.0.0 "$(scripted)"
	cnitool add demo /run/netns/pod <&- 2>&-
	[ -e /tmp/made ]
	[ -n "$(ls /var/lib/cni/results)" ]
	cnitool del demo /run/netns/pod <&- >&- 2>&-
	nothing_left
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

@test "cnitool: without CNI_PATH plugins are searched in /opt/cni/bin" {
	network demo 1.0.0 "$(scripted)"
	mkdir -p /opt/cni/bin
	cp /tmp/plugins/script /opt/cni/bin/script
	env -u CNI_PATH cnitool add demo /run/netns/pod >/dev/null
	rm /opt/cni/bin/script
	CNI_PATH='' fails cnitool del demo /run/netns/pod
	has "in path [/opt/cni/bin]"
}

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

# bad_file NAME TEXT: assert that the file NAME is refused with an error that contains NAME and TEXT
bad_file() {
	fails cnitool add demo /run/netns/pod --conf-dir /tmp/conf
	has "/tmp/conf/$1"
	has "$2"
	fails cnitool validate demo --conf-dir /tmp/conf
	grep -q "$1" <(cnitool list --conf-dir /tmp/conf)
	[ -z "$(cnitool list --names --conf-dir /tmp/conf)" ]
	rm "/tmp/conf/$1"
	[ ! -e /tmp/calls ]
	nothing_left
}

@test "cnitool: an invalid configuration is refused with the name of its file and the reason" {
	mkdir -p /tmp/conf && cd /tmp/conf
	: >empty.conflist
	bad_file empty.conflist "the file is empty"
	echo 'hello' >text.conflist
	bad_file text.conflist "error parsing configuration list"
	echo '[]' >list.conflist
	bad_file list.conflist "expected an object"
	{ echo '{"name":"demo","plugins":[{"type":"script","x":"'; head -c 104857600 /dev/zero | tr '\0' x; echo '"}]}'; } >large.conflist
	bad_file large.conflist "too large"
	{ echo -n '{"name":"demo","cniVersion":"1.0.0","plugins":[{"type":"script","x":'; printf '[%.0s' {1..100000}; } >deep.conflist
	bad_file deep.conflist "deep"
	echo '{"name":7,"cniVersion":"1.0.0","plugins":[{"type":"script"}]}' >name.conflist
	bad_file name.conflist "invalid name type"
	echo '{"name":"demo","cniVersion":1,"plugins":[{"type":"script"}]}' >version.conflist
	bad_file version.conflist "invalid cniVersion type"
	echo '{"name":"demo","cniVersion":"1.0.0","plugins":{}}' >plugins.conflist
	bad_file plugins.conflist "invalid 'plugins' type"
	echo '{"name":"demo","cniVersion":"1.0.0","plugins":[]}' >none.conflist
	bad_file none.conflist "no plugins in list"
	echo '{"name":"demo","cniVersion":"1.0.0","plugins":[{"x":1}]}' >type.conflist
	bad_file type.conflist "missing 'type'"
	echo '{"name":"demo","cniVersion":"1.0.0","plugins":[{"type":["script"]}]}' >typetype.conflist
	bad_file typetype.conflist "type"
	printf '{"name":"demo","cniVersion":"1.0.0\0","plugins":[{"type":"script"}]}' >nul.conflist
	bad_file nul.conflist "error parsing configuration list"
	printf '{"name":"demo","cniVersion":"1.0.0","plugins":[{"type":"script","x":"\xff"}]}' >utf8.conflist
	bad_file utf8.conflist "error parsing configuration list"
}

@test "cnitool: plugin names with a slash, missing plugins and invalid network names are refused" {
	network demo 1.0.0 '{"type":"../plugins/script"}'
	fails cnitool add demo /run/netns/pod
	has "(/etc/cni/net.d/10-demo.conflist)"
	has "invalid plugin name: ../plugins/script"
	network demo 1.0.0 '{"type":"nosuch"}' "$(scripted)"
	fails cnitool add demo /run/netns/pod
	has 'failed to find plugin "nosuch"'
	echo '{"cniVersion":"1.0.0","name":"a b","plugins":[{"type":"script"}]}' >/etc/cni/net.d/20-bad.conflist
	fails cnitool add "a b" /run/netns/pod
	has "invalid characters found in network name"
	[ ! -e /tmp/calls ]
}

@test "cnitool: an unknown version is refused by the plugin and by validate" {
	network demo 9.9.9 '{"type":"loopback"}'
	fails cnitool add demo /run/netns/pod
	has 'incompatible CNI versions; config is "9.9.9"'
	has 'hint: "cnitool versions demo" prints the versions that the network'\''s plugins support'
	fails cnitool validate demo
	has 'plugin loopback does not support config version "9.9.9"'
}

@test "cnitool: the last one of duplicate keys is used, as in Go" {
	echo '{"cniVersion":"1.0.0","name":"x","name":"demo","plugins":[{"type":"nosuch","type":"script"}]}' \
		>/etc/cni/net.d/10-demo.conflist
	cnitool add demo /run/netns/pod >/dev/null
	[ -e /tmp/made ]
}

@test "cnitool: a directory that cannot be read is an error" {
	touch /tmp/file
	fails cnitool add demo /run/netns/pod --conf-dir /tmp/file
	has "/tmp/file"
	need setpriv
	mkdir -p /tmp/closed && chmod 700 /tmp/closed
	cp "$HAWSER_BUILD/bin/cnitool" /tmp/cnitool # other users may be unable to read the build
	fails setpriv --reuid 65534 --regid 65534 --clear-groups /tmp/cnitool list --conf-dir /tmp/closed
	has "/tmp/closed: Permission denied"
	has "hint: run cnitool as root"
}

@test "cnitool: list prints every file with its state, as text, as names or as JSON" {
	network demo 1.0.0 '{"type":"loopback"}' "$(scripted)"
	network gone 0.4.0 '{"type":"nosuch"}'
	echo '{' >/etc/cni/net.d/05-broken.conflist
	echo '{"name":"single","type":"script"}' >/etc/cni/net.d/30-single.conf
	echo '{"name":"demo","type":"script","cniVersion":"1.0.0"}' >/etc/cni/net.d/00-demo.json
	run cnitool list
	[ "$status" = 0 ]
	[ "${lines[0]%% *}" = NETWORK ]
	grep -q '^demo  *1.0.0  *loopback,script  */etc/cni/net.d/10-demo.conflist  *valid$' <<<"$output"
	grep -q '^single  *0.1.0  *script  */etc/cni/net.d/30-single.conf  *valid$' <<<"$output"
	grep -q '^gone .* failed to find plugin "nosuch"' <<<"$output"
	grep -q '^- .*/05-broken.conflist  *error parsing configuration list' <<<"$output"
	grep -q '^demo .*/00-demo.json  *hidden by the network of the same name in /etc/cni/net.d/10-demo.conflist' <<<"$output"
	[ "$(cnitool list --names | xargs)" = "demo single" ]
	[ "$(cnitool list --json | jq -c '[.networks[] | [.name, .valid]]')" = \
		'[["",false],["demo",true],["gone",false],["demo",false],["single",true]]' ]
	[ ! -e /tmp/calls ]
	run cnitool list --conf-dir /tmp/nosuch
	[ "$status" = 0 ]
	has "no networks found in /tmp/nosuch"
}

@test "cnitool: validate prints version, plugins and capabilities" {
	network demo 1.0.0 '{"type":"loopback"}' '{"type":"script","capabilities":{"ips":true,"mac":false}}'
	run cnitool validate demo
	[ "$status" = 0 ]
	[ "$output" = 'network "demo" (/etc/cni/net.d/10-demo.conflist) is valid: version 1.0.0, plugins loopback,script, capabilities ips' ]
	[ "$(cnitool validate demo --json | jq -c '[.name,.valid,.capabilities]')" = '["demo",true,["ips"]]' ]
	network demo 0.3.1 "$(scripted)"
	fails cnitool validate demo
	has 'plugin script does not support config version "0.3.1"'
}

@test "cnitool: versions prints the versions of a plugin or of a network" {
	network demo 1.0.0 '{"type":"loopback"}' "$(scripted)"
	[ "$(cnitool versions script)" = "script: 0.4.0 1.0.0 1.1.0" ]
	[ "$(cnitool versions demo)" = "loopback: 0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0
script: 0.4.0 1.0.0 1.1.0" ]
	[ "$(cnitool versions script --json | jq -c .)" = '{"plugins":[{"type":"script","versions":["0.4.0","1.0.0","1.1.0"]}]}' ]
	fails cnitool versions nosuch
	has 'failed to find plugin "nosuch"'
	has 'no net configuration with name "nosuch"'
}

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
