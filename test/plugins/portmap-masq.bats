#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap: which source address the pod sees
# shellcheck disable=SC2154 # variables come from portmap.bash and from run
bats_require_minimum_version 1.5.0
load portmap

@test "portmap: snat false changes neither source addresses nor route_localnet" {
	conf '{"snat":false}'
	pod c1 one
	add c1 "$tcp"
	[ "$(cat /proc/sys/net/ipv4/conf/cni0/route_localnet)" = 0 ]
	[ "$(ours)" = '["anyport4 tcp . 8080 : 10.7.0.2 . 80","anyport6 tcp . 8080 : fd07::2 . 80","claimed tcp . 8080"]' ]
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
	unseen host one 127.0.0.1 tcp
}

@test "portmap: with masqAll, all connections to a host port have the host's source address" {
	conf '{"masqAll":true}'
	pod c1 one
	add c1 "$tcp" "$udp"
	for proto in tcp udp; do
		[ "$(seen outside one 192.0.2.1 $proto)" = 10.7.0.1 ]
		[ "$(seen outside one fd99::1 $proto)" = fd07::1 ]
		[ "$(seen outside one 10.7.0.2 $proto 80)" = 192.0.2.2 ]
	done
	check c1 "$tcp" "$udp"
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: connections of a pod to its own or a neighbour's host port have the host's source address" {
	pod c1 one
	pod c2 two
	add c1 "$tcp" "$udp"
	for proto in tcp udp; do
		for from in one two; do
			[ "$(seen $from one 192.0.2.1 $proto)" = 10.7.0.1 ]
			[ "$(seen $from one 10.7.0.1 $proto)" = 10.7.0.1 ]
			[ "$(seen $from one fd99::1 $proto)" = fd07::1 ]
		done
		[ "$(seen two one 10.7.0.2 $proto 80)" = 10.7.0.3 ]
	done
}

@test "portmap: a pod keeps its source address if its network is larger than the target's network and contains it" {
	pod c1 one
	add c1 "$tcp"
	call ptp ADD c2 two '{"cniVersion":"1.1.0","name":"net","type":"ptp","ipam":{"type":"static",
		"addresses":[{"address":"10.7.77.77/16","gateway":"10.7.77.1"}],"routes":[{"dst":"0.0.0.0/0"}]}}' >/tmp/net.c2
	add c2 "${tcp/8080/8081}"
	[ "$(seen two one 192.0.2.1 tcp)" = 10.7.77.77 ]
	[ "$(seen one one 192.0.2.1 tcp)" = 10.7.0.1 ]
	[ "$(seen two two 192.0.2.1 tcp 8081)" = 10.7.77.1 ]
	check c1 "$tcp"
	chain=$(nft list map inet hawser near4 | grep -o 'near_[0-9a-f]*' | head -n 1)
	nft flush chain inet hawser "$chain"
	! { check c1 "$tcp" && check c2 "${tcp/8080/8081}"; } || false
	hawser-plugin repair
	check c1 "$tcp"
	check c2 "${tcp/8080/8081}"
}

@test "portmap: with br_netfilter, hairpinMode lets a pod reach its own host port" {
	[ -e /proc/sys/net/bridge ] || skip "br_netfilter is not loaded"
	set_bridge_nf 1
	pod c1 one
	pod c2 two
	ip link set "$(jq -r '.interfaces[1].name' /tmp/net.c1)" type bridge_slave hairpin on
	add c1 "$tcp"
	for from in one two; do [ "$(seen $from one 192.0.2.1 tcp)" = 10.7.0.1 ]; done
}

@test "portmap: another mark bit works, with and without masqAll, and its chains are created once" {
	pod c1 one
	pod c2 two
	for bit in 0 5 31; do
		conf "{\"markMasqBit\":$bit}"
		add c1 "$tcp"
		check c1 "$tcp"
		[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
		[ "$(seen one one 192.0.2.1 tcp)" = 10.7.0.1 ]
		[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
		conf "{\"markMasqBit\":$bit,\"masqAll\":true}"
		add c2 "${tcp/8080/8081}"
		[ "$(seen outside two 192.0.2.1 tcp 8081)" = 10.7.0.1 ]
		del c1
		del c2
	done
	[ "$(nft list chain inet hawser snatbits | grep -c jump)" = 3 ]
}

@test "portmap: externalSetMarkChain is accepted and ignored: portmap masquerades with its own rules" {
	conf '{"externalSetMarkChain":"KUBE-MARK-MASQ"}'
	pod c1 one
	add c1 "$tcp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
}
