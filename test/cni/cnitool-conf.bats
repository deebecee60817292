#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# cnitool: invalid configurations; the commands list, validate and versions
# shellcheck disable=SC2154 # variables are those of run
bats_require_minimum_version 1.5.0
load cnitool

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
