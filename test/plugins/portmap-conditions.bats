#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap: conditionsV4 and conditionsV6, and the chains for conditions and mark bits
# shellcheck disable=SC2154 # variables come from portmap.bash and from run
bats_require_minimum_version 1.5.0
load portmap

@test "portmap: conditions in nft and iptables syntax work" {
	pod c1 one
	while IFS='|' read -r conditions outside host; do
		conf "{\"conditionsV4\":$conditions}"
		add c1 "$tcp"
		check c1 "$tcp"
		if [ "$outside" = yes ]; then seen outside one 192.0.2.1 tcp; else unseen outside one 192.0.2.1 tcp; fi
		if [ "$host" = yes ]; then seen host one 192.0.2.1 tcp; else unseen host one 192.0.2.1 tcp; fi
		[ "$(seen outside one fd99::1 tcp)" = fd99::2 ]
		del c1
	done <<-'END'
		["ip","saddr","192.0.2.2"]|yes|no
		["ip saddr != 192.0.2.2"]|no|yes
		["ip saddr { 192.0.2.2, 192.0.2.9 } counter"]|yes|no
		["iifname \"wire\" log prefix \"x\""]|yes|no
		["iifname != \"set\" iifname \"wire\""]|yes|no
		["-s","192.0.2.2"]|yes|no
		["-s","192.0.2.2/31"]|yes|no
		["!","-s","192.0.2.0/31"]|yes|no
		["-s","!","192.0.2.2"]|no|yes
		["-d","192.0.2.1","!","-i","lo"]|yes|yes
		["--destination","192.0.2.3"]|no|no
		["-i","wi+"]|yes|no
		["!","-i","wi+"]|no|yes
		["-o","lo"]|no|yes
		["-s 192.0.2.2","-i wire"]|yes|no
		[""," -s","192.0.2.2 "]|yes|no
		[""," "]|yes|yes
	END
	[ "$(ours)" = "[]" ]
}

@test "portmap: pods with the same conditions share a chain, and pods with different ones do not" {
	pod c1 one
	pod c2 two
	conf '{"conditionsV4":["-s","192.0.2.2"],"conditionsV6":["ip6 saddr fd99::2"]}'
	add c1 "$tcp"
	conf '{"conditionsV4":["ip saddr 192.0.2.2/32"],"conditionsV6":["ip6 saddr fd99::2"]}'
	add c2 "$udp"
	[ "$(nft list chains inet | grep -c cond_)" = 2 ]
	del c2
	conf '{"conditionsV4":["-s","192.0.2.9"]}'
	del c2
	add c2 "$udp"
	[ "$(nft list chains inet | grep -c cond_)" = 3 ]
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
	unseen outside two 192.0.2.1 udp
	[ "$(seen outside two fd99::1 udp)" = fd99::2 ]
}

@test "portmap: unsupported iptables conditions and nft statements are rejected" {
	pod c1 one
	while IFS='|' read -r conditions message; do
		conf "{\"conditionsV4\":$conditions}"
		run add c1 "$tcp"
		fails_with "$message"
		code 7
		run call portmap STATUS "" "" "$(</tmp/conf)"
		[[ $message != failed* ]] || [ "$status" = 1 ]
	done <<-'END'
		["-m","mark","--mark","1"]|failed to parse config: conditionsV4: unsupported iptables condition: only -s, -d, -i and -o, each with a value, are supported; write "-m mark --mark 1" in nft syntax
		["-s"]|failed to parse config: conditionsV4: unsupported iptables condition: only *
		["!"]|failed to parse config: conditionsV4: unsupported iptables condition: only *
		["-s","somewhere"]|failed to parse config: conditionsV4: invalid IPv4 address or network "somewhere" in a condition
		["-s","fd00::1"]|failed to parse config: conditionsV4: invalid IPv4 address or network "fd00::1" in a condition
		["-i","eth0\"; flush ruleset"]|failed to parse config: conditionsV4: invalid interface name *
		["ip saddr 10.0.0.1; flush ruleset"]|failed to parse config: conditionsV4: character ";" is not allowed in a condition: *
		["ip saddr 10.0.0.1\nflush ruleset"]|failed to parse config: conditionsV4: character "?" is not allowed in a condition: *
		["meta mark set 0x1"]|failed to parse config: conditionsV4: statement "set" is not allowed in a condition: *
		["ip saddr vmap { 192.0.2.9 : drop }"]|failed to parse config: conditionsV4: statement "vmap" is not allowed in a condition: *
		["ip","saddr","10.0.0.1","drop"]|conditionsV4 "ip saddr 10.0.0.1 drop": nft: *
		["} flush ruleset {"]|failed to parse config: conditionsV4: unbalanced quotes or braces in a condition: *
		["nonsense"]|conditionsV4 "nonsense": nft: *
	END
	[ "$(ours)" = "[]" ]
	[ -z "$(nft list chains inet | grep cond_)" ]
}

@test "portmap: after our rules were flushed, ADD creates the chains that it jumps to" {
	pod c1 one
	pod c2 two
	other='{"hostPort":81,"containerPort":80,"protocol":"tcp"}'
	conf '{"conditionsV4":["iifname \"wire\""],"markMasqBit":5}'
	add c1 "$tcp"
	nft flush table inet hawser
	add c2 "$other"
	check c2 "$other"
	check c1 "$tcp" # uses the same chains
	[ "$(seen outside two 192.0.2.1 tcp 81)" = 192.0.2.2 ]
	conf '{"markMasqBit":7}'
	del c2
	add c2 "$other"
	del c2
	nft flush chain inet hawser snatbits
	add c2 "$other"
	check c2 "$other"
	conf '{"conditionsV4":["iifname \"wire\""],"markMasqBit":5}'
	run check c1 "$tcp"
	fails_with "nftables chain inet hawser snatbits has no rule for mark bit 5; hawser-plugin repair restores it"
	run -0 hawser-plugin repair
	check c1 "$tcp"
	[ "$(nft list chain inet hawser snatbits | grep -c jump)" = 2 ]
}

@test "portmap: existing chains for conditions and marks are used without libnftables" {
	library=$(ldconfig -p | awk '$1 == "libnftables.so.1" { print $NF; exit }')
	pod c1 one
	pod c2 two
	second ADD c1
	conf '{"conditionsV4":["ip saddr 192.0.2.2"],"conditionsV6":["ip6 saddr fd99::2"],"markMasqBit":5}'
	add c1 "$tcp"
	second ADD c1 "$tcp" # creates the chain of its network
	second DEL c1 "$tcp"
	mount --bind /dev/null "$library"
	{ add c2 "$udp" && second ADD c1 "$tcp" && hawser-plugin repair; } || { umount "$library" && false; }
	umount "$library"
	check c2 "$udp"
	second CHECK c1 "$tcp"
}
