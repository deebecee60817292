#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# firewall: the two rules in FORWARD, which iptables must treat as its own
# shellcheck disable=SC2154 # variables come from firewall.bash and from run
bats_require_minimum_version 1.5.0
load firewall

# steps: read rules from standard input, and print only their expressions, without counters
steps() { grep '^  \[' | sed 's/pkts.*bytes [0-9]*/-/'; }

@test "firewall: FORWARD has two rules for any number of pods, identical to rules added by iptables" {
	drop_all
	for n in 1 2 3; do
		ip netns add "p$n"
		pod "c$n" "p$n"
	done
	[ "$(forward)" = "$two_rules" ]
	[ "$(forward6)" = "$two_rules" ]
	for family in ip ip6; do
		nft --debug=netlink list chain $family filter FORWARD | steps >"/tmp/ours.$family"
		${family}tables -F FORWARD
		${family}tables -A FORWARD -j CNI-ADMIN
		${family}tables -A FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT
		nft --debug=netlink list chain $family filter FORWARD | steps | diff - "/tmp/ours.$family"
	done
	del c1 p1
	add c1 p1
	[ "$(forward)" = "$two_rules" ]
}

# rules_of: remove comments and packet counters from the output of iptables-save
rules_of() { sed -e '/^#/d' -e 's/ \[[0-9]*:[0-9]*\]$//'; }

@test "firewall: iptables -S, -L, -C, -D, save and restore work with our rules" {
	drop_all
	pod c1 one
	for tables in iptables ip6tables; do
		$tables -S >/tmp/s 2>/tmp/warnings
		$tables -nvL >/tmp/l 2>>/tmp/warnings
		$tables-save >/tmp/save 2>>/tmp/warnings
		[ ! -s /tmp/warnings ]
		$tables -C FORWARD -j CNI-ADMIN
		$tables -C FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT
		$tables-restore </tmp/save
		# (without packet counters, which change by themselves)
		diff <(rules_of </tmp/save) <($tables-save | rules_of)
	done
	reaches one outside 192.0.2.2
	check c1 one
	[ "$(forward)" = "$two_rules" ]
	iptables -D FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT
	iptables -D FORWARD -j CNI-ADMIN
	[ -z "$(forward)" ]
}

@test "firewall: CHECK finds missing rules in FORWARD, and ADD and repair restore them" {
	# missing PROGRAM: CHECK fails and changes nothing
	missing() {
		nft -s list ruleset >/tmp/before
		run check c1 one
		fails_with "chain FORWARD of $1 lacks our rules, or does not exist; hawser-plugin repair restores them"
		nft -s list ruleset | diff /tmp/before -
	}
	drop_all
	pod c1 one
	iptables -F
	unreachable one outside 192.0.2.2
	missing iptables
	hawser-plugin repair
	[ "$(forward)" = "$two_rules" ]
	reaches one outside 192.0.2.2
	check c1 one
	ip6tables -F
	missing ip6tables
	pod c2 two
	[ "$(forward6)" = "$two_rules" ]
	iptables -A FORWARD -s 10.99.0.0/16 -j DROP
	for rule in "-j CNI-ADMIN" "-m mark --mark 0x1000/0x1000 -j ACCEPT"; do
		# shellcheck disable=SC2086 # words
		iptables -D FORWARD $rule
		missing iptables
		hawser-plugin repair
		[ "$(forward)" = "$two_rules"$'\n-A FORWARD -s 10.99.0.0/16 -j DROP' ]
	done
}

@test "firewall: the administrator's chain comes first, keeps its rules, and its name can be configured" {
	drop_all
	iptables -N CNI-ADMIN
	pod c1 one
	pod c2 two
	iptables -A CNI-ADMIN -s "$(address c1 0)" -j DROP
	unreachable one outside 192.0.2.2
	reaches two outside 192.0.2.2
	check c1 one
	del c1 one
	add c1 one '{"iptablesAdminChainName":"MINE"}'
	[ "$(forward)" = "-A FORWARD -j MINE"$'\n'"$two_rules" ]
	[ "$(iptables -S CNI-ADMIN | sed 1d)" = "-A CNI-ADMIN -s $(address c1 0)/32 -j DROP" ]
	del c1 one
	for name in "" -x "a b" ACCEPT 12345678901234567890123456789; do
		run add c1 one '{"iptablesAdminChainName":"'"$name"'"}'
		fails_with "iptablesAdminChainName \"$name\" is not a valid chain name"
		[ "$(jq .code <<<"$output")" = 7 ]
	done
}

@test "firewall: ADD adds a jump to the administrator's chain if the existing jump is after the accepting rule" {
	drop_all
	iptables -N CNI-ADMIN
	iptables -A FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT
	iptables -A FORWARD -j CNI-ADMIN
	pod c1 one
	[ "$(forward | head -2)" = "$two_rules" ]
	before=$(forward)
	check c1 one
	[ "$(forward)" = "$before" ]
}

@test "firewall: ADD adds its rules even if similar rules exist" {
	drop_all
	iptables -N CNI-ADMIN
	for rule in "-p tcp -m mark --mark 0x1000/0x1000 -j ACCEPT" "-m mark --mark 0x1000/0x3000 -j ACCEPT" \
		"-m mark ! --mark 0x1000/0x1000 -j ACCEPT" "-s 10.0.0.1 -m mark --mark 0x1000/0x1000 -j ACCEPT" \
		"-m mark --mark 0x1000/0x1000 -j DROP" "-i eth9 -j CNI-ADMIN" "-m mark --mark 0x1000/0x1000" \
		"-m mark --mark 0x1000 -j ACCEPT" "-s 10.0.0.0/8 -j CNI-ADMIN" "-g CNI-ADMIN"; do
		# shellcheck disable=SC2086 # words
		iptables -A FORWARD $rule
	done
	pod c1 one
	[ "$(forward | head -2)" = "$two_rules" ]
	[ "$(forward | wc -l)" = 12 ]
}

@test "firewall: ADD does not create FORWARD, and adds no rules for a family without addresses" {
	pod c1 one
	[ "$(nft list tables)" = "table inet hawser" ]
	reaches one outside 192.0.2.2
	drop_all
	jq '.ips |= [.[0]]' /tmp/result.c1 >/tmp/result.c2
	add c2 two
	[ "$(forward)" = "$two_rules" ]
	[ -z "$(forward6)" ]
}

@test "firewall: another mark bit works at the same time as the default one" {
	drop_all
	pod c1 one '{"forwardMarkBit":7}'
	pod c2 two
	reaches one outside 192.0.2.2
	reaches two outside fd99::2
	[ "$(forward | grep -c ACCEPT)" = 2 ]
	iptables -C FORWARD -m mark --mark 0x80/0x80 -j ACCEPT
	check c1 one
	nft flush chain inet hawser allow7
	run check c1 one
	fails_with "*allow7*hawser-plugin repair restores*"
	hawser-plugin repair
	check c1 one
	reaches one outside 192.0.2.2
	del c1 one
	run add c1 one '{"forwardMarkBit":32}'
	fails_with "*forwardMarkBit*"
}

@test "firewall: twenty concurrent first ADDs add each rule once" {
	drop_all
	for i in {1..20}; do
		jq -nc '{cniVersion:"1.0.0",interfaces:[{name:"eth0",sandbox:"/x"}],
			ips:[{address:"10.8.0.'"$i"'/24"},{address:"fd08::'"$i"'/64"}]}' >"/tmp/result.c$i"
		add "c$i" one >/dev/null &
		adds[i]=$!
	done
	for i in {1..20}; do wait "${adds[i]}"; done
	[ "$(forward)" = "$two_rules" ]
	[ "$(forward6)" = "$two_rules" ]
	[ "$(ours | jq length)" = 40 ]
	for i in {1..20}; do del "c$i" one; done
	[ "$(ours)" = "[]" ]
}

@test "uninstall: the rules stay while pods need them, and only our rules are removed" {
	drop_all
	iptables -A FORWARD -i lo -j DROP
	jq -nc '{cniVersion:"1.0.0",ips:[{address:"10.8.0.2/24"},{address:"fd08::2/64"}]}' >/tmp/result.c1
	add c1 one
	del c1 one
	add c1 one '{"iptablesAdminChainName":"MINE","forwardMarkBit":3}'
	iptables -A MINE -i lo -j DROP
	run -1 hawser-plugin uninstall
	[[ $output == *"rules in FORWARD are still needed by a pod: 10.8.0.2 "* ]] ||
		[[ $output == *"rules in FORWARD are still needed by a pod: fd08::2 "* ]]
	[ "$(forward | wc -l)" = 5 ]
	check c1 one
	del c1 one
	# copies, as iptables-restore --noflush adds them
	iptables-save -t filter | grep -v -e '^:' -e 'lo -j' >/tmp/copies
	for _ in 1 2; do iptables-restore --noflush </tmp/copies; done
	[ "$(forward | wc -l)" = 13 ]
	run -0 hawser-plugin uninstall
	for rules in "ip CNI-ADMIN 12" "ip6 CNI-ADMIN 12" "ip MINE 3" "ip6 MINE 3"; do
		[[ $output == *"iptables-rules $rules removed"* ]]
	done
	[ "$(iptables -S)" = $'-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT
-N MINE\n-A FORWARD -i lo -j DROP\n-A MINE -i lo -j DROP' ]
	[ "$(ip6tables -S)" = $'-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT' ]
	[ "$(nft list tables)" = $'table ip filter\ntable ip6 filter' ]
	[ ! -e /run/hawser ]
}
