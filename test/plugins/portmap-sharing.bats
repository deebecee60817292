#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap: attachments of one container that request the same host port
# shellcheck disable=SC2154 # variables come from portmap.bash and from run
bats_require_minimum_version 1.5.0
load portmap

@test "portmap: a port that two attachments share leads to the first, and after the DEL of the first to the second" {
	pod c1 one
	pod c2 two
	second ADD c1
	add c1 "$tcp" "$udp"
	second ADD c1 "$tcp" "$udp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
	check c1 "$tcp" "$udp"
	second CHECK c1 "$tcp" "$udp"
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, *"
	del c1
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80 anyport4 udp . 8080 : 10.8.0.2 . 80" ]
	[ "$(seen host one 127.0.0.1 tcp)" = 10.8.0.1 ]
	[ "$(seen host one 192.0.2.1 udp)" = 192.0.2.1 ]
	second CHECK c1 "$tcp" "$udp"
	run add c2 "${udp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	fails_with "host port 8080/udp is taken by container c1, *"
	add c1 "$tcp"
	check c1 "$tcp"
	second DEL c1 "$tcp" "$udp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: DEL of the second attachment leaves a shared port to the first" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	second ADD c1 "$tcp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80" ]
	[ "$(sharing)" = 1 ]
	second DEL c1 "$tcp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80" ]
	[ "$(sharing)" = 0 ]
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
	check c1 "$tcp"
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: a shared port is transferred to the oldest remaining attachment, if it requested the port" {
	pod c1 one
	second ADD c1
	add c1 "$tcp" "$udp"
	second ADD c1 "$udp"
	third() { # VERB MAPPING...
		ifname=eth2 call portmap "$1" c1 one "$(prev=/tmp/net.c1.3 with c1 "${@:2}" | jq -c '.name = "net3"')" >/dev/null
	}
	sed 's/"eth1"/"eth2"/; s/10\.8\.0\.2/10.8.0.9/' /tmp/net.c1.2 >/tmp/net.c1.3
	third ADD "$tcp" "$udp"
	del c1
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.9 . 80 anyport4 udp . 8080 : 10.8.0.2 . 80" ]
	third CHECK "$tcp" "$udp"
	second CHECK c1 "$udp"
	[ "$(sharing)" = 1 ]
	second DEL c1 "$udp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.9 . 80 anyport4 udp . 8080 : 10.8.0.9 . 80" ]
	[ "$(sharing)" = 0 ]
	third DEL "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: an ADD replaces a port that leads to an attachment of its container without a record" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	rm -rf /run/hawser/attachments/portmap
	second ADD c1 "$tcp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80" ]
	[ "$(sharing)" = 0 ]
	second CHECK c1 "$tcp"
}

@test "portmap: DEL without record and prevResult leaves the ports of other attachments of the container" {
	pod c1 one
	second ADD c1
	add c1 "$tcp" "$udp"
	second ADD c1 "$tcp"
	rm "$(grep -l '"net"' -r /run/hawser/attachments/portmap)"
	call portmap DEL c1 "" "$(jq -c ".runtimeConfig.portMappings = [$tcp, $udp]" /tmp/conf)"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80" ]
	second CHECK c1 "$tcp"
	call portmap DEL c1 "" "$(jq -c ".runtimeConfig.portMappings = [$tcp, $udp]" /tmp/conf)"
	second CHECK c1 "$tcp"
	second DEL c1 "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: a transferred port has the conditions of its new owner" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	conf '{"conditionsV4":["ip saddr 127.0.0.1"],"markMasqBit":7}'
	second ADD c1 "$tcp"
	second CHECK c1 "$tcp"
	[ "$(seen host one 192.0.2.1 tcp)" = 192.0.2.1 ]
	del c1
	second CHECK c1 "$tcp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.8.0.1 ]
	unseen host one 192.0.2.1 tcp
	second DEL c1 "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: repair restores the ports of two attachments of a container" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	second ADD c1 "$tcp"
	nft flush ruleset
	run second CHECK c1 "$tcp"
	fails_with "*hawser-plugin repair restores *"
	run -0 hawser-plugin repair
	check c1 "$tcp"
	second CHECK c1 "$tcp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
	nft flush set inet hawser sharing
	run second CHECK c1 "$tcp"
	fails_with "nftables set sharing lacks *; hawser-plugin repair restores it"
	run -0 hawser-plugin repair
	second CHECK c1 "$tcp"
	del c1
	second CHECK c1 "$tcp"
	second DEL c1 "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: one attachment of a container maps a port on all addresses, another maps it on one address" {
	some='{"hostPort":8080,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'
	pod c1 one
	pod c2 two
	second ADD c1
	add c1 "$tcp"
	second ADD c1 "$some"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80 port4 tcp . 192.0.2.3 . 8080 : 10.8.0.2 . 80" ]
	[ "$(sharing)" = 1 ] # so that a DEL of either leaves the claim to the other
	check c1 "$tcp"
	second CHECK c1 "$some"
	del c1
	[ "$(owned_ports)" = "port4 tcp . 192.0.2.3 . 8080 : 10.8.0.2 . 80" ]
	second CHECK c1 "$some"
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, interface eth1, *"
	add c1 "$tcp"
	check c1 "$tcp"
	second CHECK c1 "$some"
	second DEL c1 "$some"
	check c1 "$tcp"
	run add c2 "$some"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, *"
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: DEL reads no other records unless attachments of one container share a port" {
	pod c1 one
	pod c2 two
	second ADD c1
	add c1 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	add c2 "${tcp/\}/,\"hostIP\":\"192.0.2.3\"\}}"
	mkdir -p /run/hawser/attachments/portmap/some/00000000000000000000000000000000 # not readable as a record
	del c1
	rm -r /run/hawser/attachments/portmap/some
	add c1 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	second ADD c1 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	del c1
	[[ "$(owned_ports)" == "port4 tcp . 192.0.2.1 . 8080 : 10.8.0.2 . 80 "* ]]
}

@test "portmap: an ADD that fails leaves the ports and claims of another attachment of the container" {
	pod c1 one
	pod c2 two
	second ADD c1
	add c1 "$tcp"
	add c2 "$udp"
	run second ADD c1 "$tcp" "$udp"
	fails_with "host port 8080/udp is taken by container c2, *"
	check c1 "$tcp"
	run add c2 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	fails_with "*call DEL first" # of c2's first ADD
	del c2
	run add c2 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	fails_with "host port 8080/tcp is taken by container c1, *"
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: DEL creates only chains of attachments that get a port" {
	pod c1 one
	second ADD c1
	conf '{"conditionsV4":["ip saddr 192.0.2.2"]}'
	add c1 "$tcp"
	conf '{"conditionsV4":["ip saddr 192.0.2.9"]}'
	second ADD c1 "$tcp"
	for chain in $(nft list chains inet | grep -o 'cond_[0-9a-f]*'); do nft flush chain inet hawser "$chain"; done
	second DEL c1 "$tcp" # does not have the port
	! nft list ruleset | grep 'ip saddr 192.0.2' || false
	second ADD c1 "$tcp"
	for chain in $(nft list chains inet | grep -o 'cond_[0-9a-f]*'); do nft flush chain inet hawser "$chain"; done
	del c1
	[ "$(nft list ruleset | grep -c 'ip saddr 192.0.2.9')" = 1 ]
	! nft list ruleset | grep 'ip saddr 192.0.2.2' || false
	second CHECK c1 "$tcp"
}

@test "portmap: a port is neither shared with nor transferred to an attachment whose namespace no longer exists" {
	pod c1 one
	second ADD c1
	add c1 "$tcp" "$udp"
	# The pod was restarted with the same ID: eth1 has a new namespace.
	ip netns add new
	jq -c '.name = "net2"' /tmp/conf >/tmp/conf.2
	restarted() { ifname=eth1 call portmap "$1" c1 new "$(conf=/tmp/conf.2 prev=/tmp/net.c1.2 with c1 "${@:2}")"; }
	restarted ADD "$udp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80 anyport4 udp . 8080 : 10.7.0.2 . 80" ]
	restarted DEL "$udp"
	ip netns del one
	restarted ADD "$udp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80 anyport4 udp . 8080 : 10.8.0.2 . 80" ]
	restarted CHECK "$udp"
	restarted DEL "$udp" # does not transfer the port back
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80" ]
	del c1
	[ "$(ours)" = "[]" ]
}
