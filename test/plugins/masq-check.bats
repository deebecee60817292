#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ipMasq of bridge and ptp: what CHECK finds, and what ADD and `hawser-plugin repair` restore; the commands rules and
# uninstall
# shellcheck disable=SC2154 # variables come from masq.bash and from run
bats_require_minimum_version 1.5.0
load masq

@test "masq: CHECK finds flushed rules and chains and a missing element; repair restores them" {
	conf bridge '{"macspoofchk":true}'
	add c1 one
	before=$(nft list ruleset)
	check
	for damage in "flush ruleset" "flush table inet hawser" "delete table bridge hawser" \
		"delete element inet hawser masq4 { 10.7.0.2 }" "delete element inet hawser masq6 { fd07::2 }" \
		"flush chain inet hawser $(nft list map inet hawser masq4 | grep -o 'masq_[0-9a-f]*')" \
		"flush chain inet hawser pods" "flush chain inet hawser guard" "flush chain inet hawser hairpin" \
		"flush set bridge hawser mac_ok" "flush chain bridge hawser prerouting"; do
		nft "$damage"
		run check
		fails_with "*hawser-plugin repair restores *"
		run -0 hawser-plugin repair
		[ "$output" = "rules of 1 attachment restored" ]
		check
		[ "$(nft list ruleset)" = "$before" ] || diff <(nft list ruleset) - <<<"$before"
	done
	[ "$(seen one outside 192.0.2.2 tcp)" = 192.0.2.1 ]
}

@test "masq: repair restores the elements of every finished ADD, and not those of unfinished ADDs" {
	conf bridge
	add c1 one
	conf ptp
	add c2 two
	before=$(ours)
	nft flush ruleset
	run -0 hawser-plugin repair
	[ "$output" = "rules of 2 attachments restored" ]
	[ "$(ours)" = "$before" ]
	run -0 hawser-plugin repair
	[ "$(ours)" = "$before" ]
	record=$(grep -l '"c2"' -r /run/hawser/attachments/ptp)
	jq -c 'del(.finished)' "$record" >/tmp/record
	cp /tmp/record "$record"
	nft flush ruleset
	run -0 hawser-plugin repair
	[ "$output" = "rules of 1 attachment restored" ]
	[ "$(ours)" = '["masq4 10.7.0.2","masq6 fd07::2"]' ]
}

@test "masq: repair keeps the owner of an address that is also in records of dead pods" {
	static='{"ipam":{"type":"static","addresses":[{"address":"10.7.0.9/24"}]},"isGateway":false}'
	for i in {1..6}; do # several pods, because the order of directory entries is random
		conf bridge "$static"
		add "dead$i" one
		ip netns del one
		ip netns add one
	done
	conf ptp "$(jq -c '.ipam.addresses[0].gateway = "10.7.0.1"' <<<"$static")"
	add c2 two
	hawser-plugin rules | grep -qE '^inet +masq4 +10\.7\.0\.9 .*c2 eth0 of network net$'
	for damage in "flush ruleset" "flush table inet hawser" "flush map inet hawser masq4"; do
		nft "$damage"
		hawser-plugin repair
		hawser-plugin rules | grep -qE '^inet +masq4 +10\.7\.0\.9 .*c2 eth0 of network net$'
	done
	conf bridge "$static"
	for i in {1..6}; do call DEL "dead$i" "" "$(</tmp/conf)"; done
	[ "$(elements masq4)" = '["10.7.0.9"]' ]
}

@test "masq: CHECK without a record fails, unless upstream's rules exist" {
	for type in bridge ptp; do
		conf $type
		add c1 one
		mv /run/hawser/attachments /run/hawser/lost
		run check
		fails_with "no attachment record, and no rule of another plugin masquerades 10.7.0.2"
		nft -f - <<-END
			table inet cni_plugins_masquerade {
				chain masq_checks {
					ip saddr == 10.7.0.2 masquerade comment "$(printf net | sha512sum | cut -c -16)-$(printf eth0:c1 | sha512sum | cut -c -16), net: net, if: eth0, id: c1"
				}
			}
		END
		check
		mv /run/hawser/lost /run/hawser/attachments
		del c1 one
		rm -r /var/lib/cni/networks
		nft flush ruleset
	done
	conf bridge '{"macspoofchk":true,"ipMasq":false,"ipam":{}}'
	add c1 one
	mv /run/hawser/attachments /run/hawser/lost
	run check
	fails_with "no attachment record, and no rule of another plugin checks the MAC address"
	nft 'table bridge nat { chain cni-br-iface-c1-eth0 { drop; }; }'
	check
}

@test "masq: CHECK finds an element with another owner" {
	conf bridge
	add c1 one
	nft 'delete element inet hawser masq4 { 10.7.0.2 }; add element inet hawser masq4 { 10.7.0.2 : continue }'
	run check
	fails_with "nftables set masq4: element mismatch: got 10.7.0.2 : jump masqall (owner none), want 10.7.0.2 * (owner *"
}

@test "masq: ADD restores flushed rules and chains" {
	conf bridge
	add c1 one
	for damage in "flush table inet hawser" "flush ruleset"; do
		nft "$damage"
		add c2 two
		[ "$(nft list chain inet hawser pods | grep -c masqall)" = 2 ]
		[ "$(nft list chain inet hawser guard | grep -c drop)" = 1 ]
		[ "$(seen two outside 192.0.2.2 tcp)" = 192.0.2.1 ]
		nft "$damage"
		del c2 two
	done
	nft flush ruleset
	add c2 two
	[ "$(seen two outside 192.0.2.2 tcp)" = 192.0.2.1 ]
	del c1 one
	del c2 two
}

@test "masq: rules of other programs are not changed" {
	nft 'table inet other { chain postrouting { type nat hook postrouting priority 90; ip saddr 10.9.0.0/16 accept; }; }'
	nft list table inet other >/tmp/other
	conf bridge
	add c1 one
	check
	nft list table inet other | diff /tmp/other -
	del c1 one
	hawser-plugin uninstall
	nft list table inet other | diff /tmp/other -
}

@test "rules: lists each element with its pod" {
	conf bridge '{"macspoofchk":true}'
	add c1 one
	host=$(jq -r '.interfaces[1].name' /tmp/result.c1)
	mac=$(jq -r '.interfaces[2].mac' /tmp/result.c1)
	[ "$(ours)" = '["mac_checked '"$host"'","mac_ok '"$host . $mac"'","masq4 10.7.0.2","masq6 fd07::2"]' ]
	[ "$(hawser-plugin rules --json | jq -c '[.[] | select(.owner) | .containerID + " " + .ifname + " " + .network] | unique')" = '["c1 eth0 net"]' ]
	hawser-plugin rules | grep -qE '^inet   masq4 +10\.7\.0\.2 : jump masq_[0-9a-f]{16} +c1 eth0 of network net$'
}

@test "uninstall: refuses to remove tables that pods use, then removes them" {
	conf ptp
	add c1 one
	run -1 hawser-plugin uninstall
	[[ $output == *"table inet hawser is in use: set masq4 has 10.7.0.2"* ]]
	[ "$(seen one outside 192.0.2.2 tcp)" = 192.0.2.1 ]
	del c1 one
	run -0 hawser-plugin uninstall
	[[ $output == *"nftables table inet hawser removed"* ]]
	[ -z "$(nft list ruleset)" ]
	[ ! -e /run/hawser ]
}

@test "masq: without libnftables ADD and STATUS fail, unless the rules are already loaded" {
	library=$(ldconfig -p | awk '$1 == "libnftables.so.1" { print $NF; exit }')
	for type in bridge ptp; do
		conf $type
		call STATUS "" "" "$(</tmp/conf)"
		: >/tmp/empty
		mount --bind /tmp/empty "$library"
		run call STATUS "" "" "$(</tmp/conf)"
		fails_with "load libnftables: *libnftables.so.1: *"
		[ "$(jq .code <<<"$output")" = 50 ]
		run call ADD c1 one "$(</tmp/conf)"
		fails_with "load the rules of nftables table inet hawser: load libnftables: *libnftables.so.1: *"
		[ -z "$(find /run/hawser/attachments -type f)" ]
		umount "$library"
		add c1 one
		mount --bind /tmp/empty "$library"
		call STATUS "" "" "$(</tmp/conf)"
		add c2 two
		del c1 one
		del c2 two
		umount "$library"
		hawser-plugin uninstall
	done
}
