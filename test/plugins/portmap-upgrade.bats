#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap: pods that version 0.1.0 attached, after an upgrade
# shellcheck disable=SC2154 # variables come from portmap.bash and from run
bats_require_minimum_version 1.5.0
load portmap
load upgrade

some='{"hostPort":81,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'

@test "portmap: repair takes over ports that 0.1.0 added" {
	pod c1 one
	pod c2 two
	add c1 "$tcp" "$some"
	# new sets are listed last, and the table keeps its comment
	ruleset() { nft list ruleset | sed '/^\tcomment/d' | sort; }
	before=$(ruleset)
	as_0.1.0
	[ "$(ruleset)" != "$before" ]
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, *"
	run -0 hawser-plugin repair
	diff <(ruleset) - <<<"$before"
	check c1 "$tcp" "$some"
	as_0.1.0
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: CHECK accepts ports that 0.1.0 added, before and after the first ADD, and DEL removes them" {
	pod c1 one
	pod c2 two
	add c1 "$tcp" "$some"
	as_0.1.0
	check c1 "$tcp" "$some"
	run check c1 "$tcp" "$some" "$udp"
	fails_with "*lacks udp . 8080 : 10.7.0.2 . 80*"
	add c2 "$udp"
	check c1 "$tcp" "$some"
	check c2 "$udp"
	nft delete element inet hawser anymark4 '{ tcp . 8080 }'
	run check c1 "$tcp" "$some"
	fails_with "nftables set anymark4 lacks *"
	del c1
	del c2
	[ "$(ours)" = "[]" ]
}

@test "portmap: ADD finds that a port overlaps with one that 0.1.0 added, without a repair" {
	pod c1 one
	pod c2 two
	add c1 "$tcp" "$some"
	as_0.1.0
	run add c2 "${some/,\"hostIP\":\"192.0.2.3\"/}"
	fails_with "host port 81/tcp is taken by container c1, interface eth0, *"
	run add c2 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, *"
	add c2 "${some/.3/.1}"
	check c1 "$tcp" "$some"
	del c1
	del c2
	[ "$(ours)" = "[]" ]
}

@test "portmap: an ADD shares a port that 0.1.0 added for another interface of the container" {
	pod c1 one
	second ADD c1
	add c1 "$tcp" "$some"
	as_0.1.0
	second ADD c1 "$tcp" "${some/,\"hostIP\":\"192.0.2.3\"/}"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80 anyport4 tcp . 81 : 10.8.0.2 . 80 port4 tcp . 192.0.2.3 . 81 : 10.7.0.2 . 80" ]
	check c1 "$tcp" "$some"
	second CHECK c1 "$tcp" "${some/,\"hostIP\":\"192.0.2.3\"/}"
	del c1
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80 anyport4 tcp . 81 : 10.8.0.2 . 80" ]
	second DEL c1 "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: DEL transfers a port that interfaces of a container shared in 0.1.0" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	second ADD c1 "$tcp"
	as_0.1.0
	second CHECK c1 "$tcp"
	del c1
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80" ]
	second CHECK c1 "$tcp"
	second DEL c1 "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: DEL removes the ports of an ADD that a second ADD of 0.1.0 had begun to replace" {
	pod c1 one
	add c1 "$tcp" "$some" "$udp"
	as_0.1.0
	record=$(find /run/hawser/attachments/portmap -type f)
	jq -c 'del(.finished) | .made.earlier = .made | .made.portMappings |= .[:1]' "$record" >/tmp/conf.record
	cat /tmp/conf.record >"$record"
	del c1
	[ "$(ours)" = "[]" ]
	[ ! -e "$record" ]
}

@test "masq, firewall: CHECK accepts the rules of 0.1.0, unless they were flushed" {
	masq='{"cniVersion":"1.1.0","name":"net","type":"bridge","isGateway":true,"ipMasq":true,
		"ipam":{"type":"host-local","subnet":"10.7.0.0/24"}}'
	firewall='{"cniVersion":"1.1.0","name":"net","type":"firewall"}'
	call bridge ADD c1 one "$masq" >/tmp/net.c1
	masq=$(jq -c --slurpfile prev /tmp/net.c1 '.prevResult = $prev[0]' <<<"$masq")
	firewall=$(jq -c --slurpfile prev /tmp/net.c1 '.prevResult = $prev[0]' <<<"$firewall")
	call firewall ADD c1 one "$firewall" >/dev/null
	add c1 "$tcp"
	as_0.1.0
	call bridge CHECK c1 one "$masq"
	call firewall CHECK c1 one "$firewall"
	nft flush chain inet hawser version1
	run call bridge CHECK c1 one "$masq"
	fails_with "*hawser-plugin repair restores *"
	run call firewall CHECK c1 one "$firewall"
	fails_with "*hawser-plugin repair restores *"
}
