#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# firewall on a host whose iptables has no chain FORWARD yet: which configurations create it, that iptables treats
# it as its own, that the administrator's rules apply, and that uninstall removes it
bats_require_minimum_version 1.5.0
load ../lib

plugins=$HAWSER_BUILD/cni

setup() {
	need ip jq nft iptables ip6tables
	ip netns add one
	export CNI_PATH=$plugins
	unset DBUS_SYSTEM_BUS_ADDRESS
}

teardown() {
	ip netns del one
	rm -rf /run/hawser
	nft flush ruleset
}

# ---- helpers -------------------------------------------------------------------------

# call VERB JSON [ADDRESS...]: call the plugin with these keys and a prevResult with these addresses
call() {
	local addresses
	addresses=$(printf '%s\n' "${@:3}" | jq -R 'select(. != "") | {address: .}' | jq -sc .)
	jq -nc --argjson keys "$2" --argjson ips "$addresses" '{cniVersion:"1.0.0",name:"net",type:"firewall"} + $keys +
		{prevResult:{cniVersion:"1.0.0",ips:$ips}}' | CNI_COMMAND=$1 CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one \
		CNI_IFNAME=eth0 "$plugins/firewall"
}

# expected CHAIN: print the rules of table filter with our two rules, as iptables -S does
expected() {
	printf '%s\n' '-P INPUT ACCEPT' '-P FORWARD ACCEPT' '-P OUTPUT ACCEPT' "-N $1" "${@:2}" "-A FORWARD -j $1" \
		'-A FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT'
}

# ---- tests ----------------------------------------------------------------------------

@test "firewall: backend iptables and iptablesAdminChainName create FORWARD as iptables does" {
	for keys in '{"backend":"iptables"}' '{"iptablesAdminChainName":"CNI-ADMIN"}'; do
		iptables -A FORWARD -j ACCEPT
		iptables -D FORWARD -j ACCEPT
		by_iptables=$(nft list chain ip filter FORWARD)
		nft flush ruleset
		call ADD "$keys" 10.7.0.2/24
		[ "$(nft list chain ip filter FORWARD | grep -v 'jump\|accept$')" = "$by_iptables" ]
		diff <(iptables -S) <(expected CNI-ADMIN)
		[ -z "$(nft list tables ip6)" ]
		call CHECK "$keys" 10.7.0.2/24
		iptables-save >/tmp/saved
		iptables-restore </tmp/saved
		diff <(iptables -S) <(expected CNI-ADMIN)
		call DEL "$keys" 10.7.0.2/24
		nft flush ruleset
	done
}

@test "firewall: both families get a chain FORWARD" {
	call ADD '{"iptablesAdminChainName":"MINE"}' 10.7.0.2/24 fd07::2/64
	diff <(iptables -S) <(expected MINE)
	diff <(ip6tables -S) <(expected MINE)
}

@test "firewall: a chain of the administrator is reached, even if iptables has no chain FORWARD" {
	for keys in '{}' '{"iptablesAdminChainName":"CNI-ADMIN"}'; do
		iptables -N CNI-ADMIN
		iptables -A CNI-ADMIN -s 10.7.0.2/32 -j DROP
		run ! nft list chain ip filter FORWARD
		call ADD "$keys" 10.7.0.2/24
		expected CNI-ADMIN | sed '/mark/a -A CNI-ADMIN -s 10.7.0.2/32 -j DROP' | sort >/tmp/expected
		diff <(iptables -S | sort) /tmp/expected
		call CHECK "$keys" 10.7.0.2/24
		call DEL "$keys" 10.7.0.2/24
		nft flush ruleset
	done
}

@test "firewall: CHECK finds that FORWARD is missing, and repair creates it again" {
	call ADD '{"backend":"iptables"}' 10.7.0.2/24
	nft delete table ip filter
	run call CHECK '{"backend":"iptables"}' 10.7.0.2/24
	fails_with "chain FORWARD of iptables lacks our rules, or does not exist; hawser-plugin repair restores them"
	[ -z "$(nft list tables ip)" ]
	hawser-plugin repair
	diff <(iptables -S) <(expected CNI-ADMIN)
	call CHECK '{"backend":"iptables"}' 10.7.0.2/24
}

@test "uninstall: removes a chain FORWARD that ADD created, unless something uses it" {
	call ADD '{"backend":"iptables"}' 10.7.0.2/24 fd07::2/64
	run -1 hawser-plugin uninstall
	[[ $output == *"rules in FORWARD are still needed by a pod: "* ]]
	call DEL '{"backend":"iptables"}' 10.7.0.2/24 fd07::2/64
	ip6tables -P FORWARD DROP
	hawser-plugin uninstall | sort >/tmp/output
	diff /tmp/output - <<-END
		iptables-chain ip FORWARD removed
		iptables-rules ip CNI-ADMIN 12 removed
		iptables-rules ip6 CNI-ADMIN 12 removed
		nftables table inet hawser removed
	END
	[ -z "$(nft list tables ip)" ]
	[ "$(ip6tables -S)" = $'-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT' ]
	[ ! -e /run/hawser ]
}

@test "uninstall: keeps the table filter if iptables has other chains in it" {
	iptables -A INPUT -j ACCEPT
	call ADD '{"backend":"iptables"}' 10.7.0.2/24
	iptables -A FORWARD -s 10.9.0.0/16 -j DROP
	call DEL '{"backend":"iptables"}' 10.7.0.2/24
	hawser-plugin uninstall
	[ "$(iptables -S FORWARD)" = $'-P FORWARD ACCEPT\n-A FORWARD -s 10.9.0.0/16 -j DROP' ]
	iptables -F FORWARD
	call ADD '{"backend":"iptables"}' 10.7.0.2/24
	call DEL '{"backend":"iptables"}' 10.7.0.2/24
	hawser-plugin uninstall
	[ "$(iptables -S INPUT)" = $'-P INPUT ACCEPT\n-A INPUT -j ACCEPT' ]
}
