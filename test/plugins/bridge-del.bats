#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# bridge: DEL in any state
# shellcheck disable=SC2154 # variables come from bridge.bash and from run
bats_require_minimum_version 1.5.0
load bridge

@test "bridge: DEL twice succeeds" {
	add '{"isGateway":true}'
	del
	del
	only_bridge_left
}

@test "bridge: DEL with a deleted namespace, or without one, removes everything" {
	add '{}'
	ip netns del one
	del
	only_bridge_left
	ip netns add one
	add '{}'
	del ""
	only_bridge_left
	run ! ip -n one link show eth0
}

@test "bridge: DEL with a deleted bridge succeeds" {
	add '{"isGateway":true}'
	ip link del br7
	del
	[ "$(links)" = lo ]
	[ -z "$(leases)" ]
}

@test "bridge: DEL without a previous result succeeds" {
	add '{}'
	call DEL c1 one "$(</tmp/conf)"
	only_bridge_left
}

@test "bridge: DEL without a record deletes the pod's interface" {
	add '{}'
	rm -r /run/hawser/attachments
	call DEL c1 one "$(</tmp/conf)"
	only_bridge_left
}

@test "bridge: DEL deletes a veth pair whose host end was renamed" {
	add '{}'
	ip link set "$(result "$host_end")" down name renamed
	del
	only_bridge_left
}

@test "bridge: DEL does not touch an interface of the pod that is not a veth" {
	ip -n one link add eth0 type bridge
	call DEL c1 one "$(conf '{}')"
	ip -n one link show eth0
}

@test "bridge: DEL after a refused ADD keeps the interface of another attachment" {
	add '{}'
	before=$(links_and_addresses one)
	run call ADD c1 one "$(conf '{"name":"second"}')"
	[ "$status" = 1 ]
	[ "$(links_and_addresses one)" = "$before" ]
	call DEL c1 one "$(conf '{"name":"second"}')"
	[ "$(links_and_addresses one)" = "$before" ]
	check
}

@test "bridge: a second ADD without a record is refused, and the attachment stays unchanged" {
	add '{}'
	rm -rf /run/hawser
	run call ADD c1 one "$(</tmp/conf)"
	fails_with 999 'container veth name ("eth0")*already exists'
	check
}

@test "bridge: DEL after a killed ADD keeps an existing link with the name of the host end" {
	add '{}'
	host=$(result "$host_end")
	del
	ip link add "$host" type veth peer name other
	mkdir -p /tmp/killer
	printf '#!/bin/sh\nkill -9 $PPID\n' >/tmp/killer/killer
	chmod +x /tmp/killer/killer
	killed=$(conf '{}' '{"type":"killer"}')
	CNI_PATH=/tmp/killer:$CNI_PATH run call ADD c1 one "$killed"
	[ "$status" = 137 ]
	[ -n "$(records)" ]
	printf '#!/bin/sh\n' >/tmp/killer/killer
	CNI_PATH=/tmp/killer:$CNI_PATH call DEL c1 one "$killed"
	[ -z "$(records)" ]
	ip link show "$host"
}

@test "bridge: a failed ADD keeps an existing link with the name of the host end" {
	add '{}'
	host=$(result "$host_end")
	del
	ip link add "$host" type veth peer name other
	run call ADD c1 one "$(conf '{}' '{"type":"host-local","subnet":"10.7.0.0/24","resolvConf":"/nowhere"}')"
	fails_with 999 '*'
	ip link show "$host"
}

@test "bridge: DEL succeeds if the namespace was unmounted and its file still exists" {
	add '{}'
	umount -l /run/netns/one
	del
	call DEL c1 one "$(</tmp/conf)"
	only_bridge_left
	rm /run/netns/one
}

@test "bridge: if DEL cannot delete the link, the pod's addresses stay leased" {
	add '{}'
	rm -rf /run/hawser
	ln -s loop /tmp/loop
	run call DEL c1 /tmp/loop "$(with_result)"
	fails_with 999 '*loop*'
	[ "$(leases)" = 10.7.0.2 ]
	del
	only_bridge_left
}

@test "bridge: DEL does not change another pod that now uses the same netns path" {
	add '{}'
	call ADD c2 two "$(</tmp/conf)" >/dev/null
	ip link del "$(result "$host_end")"
	umount -l /run/netns/one
	mount --bind /run/netns/two /run/netns/one
	before=$(links_and_addresses two)
	del
	[ "$(links_and_addresses two)" = "$before" ]
	[ "$(leases | wc -l)" = 1 ]
	umount /run/netns/one
	rm /run/netns/one
}

@test "bridge: our DEL works on upstream's attachments, and upstream's DEL on ours" {
	need_go_plugins bridge host-local
	ip link add br7 type bridge
	conf '{"isGateway":true}' "$both" >/tmp/conf
	upstream ADD c1 one "$(</tmp/conf)" >/tmp/result
	check
	del
	only_bridge_left
	add '{"isGateway":true}' "$both"
	upstream CHECK c1 one "$(with_result)"
	upstream DEL c1 one "$(with_result)"
	[ "$(links)" = $'br7\nlo' ]
	[ -z "$(leases)" ]
	del
	only_bridge_left
}
