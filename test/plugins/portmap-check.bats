#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap: what CHECK finds, and what `hawser-plugin repair` restores
# shellcheck disable=SC2154 # variables come from portmap.bash and from run
bats_require_minimum_version 1.5.0
load portmap

@test "portmap: CHECK finds that route_localnet is off, and repair restores it" {
	pod c1 one
	add c1 "$tcp"
	echo 0 >/proc/sys/net/ipv4/conf/cni0/route_localnet
	run check c1 "$tcp"
	fails_with "route_localnet is off on interface cni0, *"
	echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
	check c1 "$tcp"
	echo 0 >/proc/sys/net/ipv4/conf/all/route_localnet
	run -0 hawser-plugin repair
	check c1 "$tcp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
}

@test "portmap: CHECK finds missing and changed elements, and repair restores them" {
	pod c1 one
	conf '{"conditionsV4":["iifname \"wire\""],"markMasqBit":5}'
	some='{"hostPort":81,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'
	add c1 "$tcp" "$some"
	check c1 "$tcp" "$some"
	before=$(nft list ruleset)
	for harm in "flush ruleset" "flush table inet hawser" "flush map inet hawser anyport4" "flush map inet hawser port4" \
		"flush map inet hawser anymark6" "flush map inet hawser anycond4" "flush set inet hawser own6" \
		"flush set inet hawser claimed" \
		"flush chain inet hawser snat5" "flush chain inet hawser snatbits" \
		"flush chain inet hawser $(nft list chains inet | grep -o 'cond_[0-9a-f]*')"; do
		nft "$harm"
		run check c1 "$tcp" "$some"
		fails_with "*hawser-plugin repair restores *"
		run -0 hawser-plugin repair
		check c1 "$tcp" "$some"
		diff <(nft list ruleset) - <<<"$before"
	done
	run check c1 "$tcp" "$some" "$udp"
	fails_with "*lacks udp . 8080 : 10.7.0.2 . 80*"
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
}

@test "portmap: repair leaves a port to the newer of two containers, and reports the older one" {
	pod c1 one
	pod c2 two
	add c1 "$tcp" "$udp"
	nft flush ruleset
	add c2 "${tcp/\}/,\"hostIP\":\"192.0.2.3\"\}}" "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}" "$udp"
	before=$(owned_ports)
	for _ in 1 2; do
		run ! hawser-plugin repair
		[[ "$output" == *"repair container c1 interface eth0 of network net: host port 8080/"*" is taken by container c2, interface eth0, network net; "* ]]
		[[ "$output" != *"repair container c2"* ]]
		[ "$(owned_ports)" = "$before" ]
	done
	[ "$(seen outside two 192.0.2.1 tcp)" = 192.0.2.2 ]
	del c2
	run -0 hawser-plugin repair
	check c1 "$tcp" "$udp"
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: repair restores the other ports of a container that has lost one" {
	pod c1 one
	pod c2 two
	some='{"hostPort":81,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'
	add c1 "$tcp" "$some" "$udp"
	nft flush ruleset
	add c2 "$tcp"
	echo 0 >/proc/sys/net/ipv4/conf/cni0/route_localnet
	for _ in 1 2; do
		run ! hawser-plugin repair
		[[ "$output" == *"repair container c1 interface eth0 of network net: host port 8080/tcp is taken by container c2, "* ]]
		[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.3 . 80 anyport4 udp . 8080 : 10.7.0.2 . 80 port4 tcp . 192.0.2.3 . 81 : 10.7.0.2 . 80" ]
	done
	[ "$(seen outside one 192.0.2.3 tcp 81)" = 192.0.2.2 ]
	[ "$(cat /proc/sys/net/ipv4/conf/cni0/route_localnet)" = 1 ]
	check c2 "$tcp"
	del c1
	check c2 "$tcp"
	del c2
	[ "$(ours)" = "[]" ]
}

@test "portmap: after a flush repair gives a port to the newer of two containers, whatever the order of their names" {
	pod c1 one
	pod c2 two
	for older in c1 c2; do
		newer=$([ "$older" = c2 ] && echo c1 || echo c2)
		add "$older" "$tcp" "$udp"
		nft flush ruleset
		add "$newer" "$udp" "${tcp/\}/,\"hostIP\":\"192.0.2.3\"\}}"
		before=$(owned_ports)
		nft flush ruleset
		for _ in 1 2; do
			run ! hawser-plugin repair
			[[ "$output" == *"repair container $older interface eth0 of network net: host port 8080/"*" is taken by container $newer, "* ]]
			[[ "$output" != *"repair container $newer"* ]]
			[ "$(owned_ports)" = "$before" ]
			check "$newer" "$udp" "${tcp/\}/,\"hostIP\":\"192.0.2.3\"\}}"
		done
		del "$newer"
		del "$older"
		[ "$(ours)" = "[]" ]
	done
}

@test "portmap: repair leaves a port to the container of which an ADD has finished last, whatever interface has it" {
	pod c1 one
	second ADD c1
	pod c2 two
	add c1 "$tcp"
	nft flush ruleset
	add c2 "$tcp"
	nft flush ruleset
	second ADD c1 "$tcp"
	for _ in 1 2; do
		run ! hawser-plugin repair
		[[ "$output" == *"repair container c2 interface eth0 of network net: host port 8080/tcp is taken by container c1, interface eth0, "* ]]
		[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80" ]
	done
	second CHECK c1 "$tcp"
}

@test "portmap: repair gives a port to the older of two containers if the namespace of the newer no longer exists" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	nft flush ruleset
	add c2 "$tcp"
	ip netns del two
	run ! hawser-plugin repair
	[[ "$output" == *"repair container c2 "*": host port 8080/tcp is taken by container c1, "* ]]
	check c1 "$tcp"
	nft flush ruleset
	run ! hawser-plugin repair
	check c1 "$tcp"
}

@test "portmap: repair leaves a port to the newer of two containers if the namespace of the older no longer exists" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	nft flush ruleset
	add c2 "$tcp"
	ip netns del one
	run ! hawser-plugin repair
	[[ "$output" == *"host port 8080/tcp is taken by container c2, "* ]]
	check c2 "$tcp"
	nft flush ruleset
	run ! hawser-plugin repair
	check c2 "$tcp"
}

@test "portmap: repair gives a port back to the older of two attachments of a container" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	nft flush ruleset
	second ADD c1 "$tcp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80" ]
	for _ in 1 2; do
		run -0 hawser-plugin repair
		[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80" ]
		check c1 "$tcp"
		second CHECK c1 "$tcp"
	done
	del c1
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80" ]
}
