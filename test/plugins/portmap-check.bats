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
		"flush set inet hawser hostip4" \
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

# as_0.1.0: change the elements of c1's ports to what 0.1.0 wrote: their owner is the attachment, and the sets
# hostip4 and hostip6 are empty
as_0.1.0() {
	local attachment container
	attachment=$(hawser-plugin rules --json | jq -r 'first(.[] | select(.ifname and .containerID == "c1")).owner')
	container=$(hawser-plugin rules --json | jq -r 'first(.[] | select(.ifname == null and .containerID == "c1")).owner')
	nft list ruleset | sed "s/$container/$attachment/; /set hostip/,/}/{/elements/d}" >/tmp/conf.old
	nft flush ruleset
	nft -f /tmp/conf.old
}

@test "portmap: repair takes over ports that 0.1.0 added" {
	some='{"hostPort":81,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'
	pod c1 one
	pod c2 two
	add c1 "$tcp" "$some"
	before=$(nft list ruleset)
	as_0.1.0
	[ "$(nft list ruleset)" != "$before" ]
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, *"
	run -0 hawser-plugin repair
	[ "$(nft list ruleset)" = "$before" ]
	check c1 "$tcp" "$some"
	as_0.1.0
	del c1
	[ "$(ours)" = "[]" ]
}
