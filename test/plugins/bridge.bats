#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# bridge: effect and result of ADD, compared with upstream's plugin (Debian's) for configurations that both
# support. test/differential has the full table of configurations.
# shellcheck disable=SC2154 # variables come from bridge.bash and from run
bats_require_minimum_version 1.5.0
load bridge

@test "bridge: ADD gives the pod an address and a bridge port, and returns the same result as upstream" {
	add '{"isDefaultGateway":true}'
	[ "$(jq -c '.interfaces[].mac = "M"' /tmp/result)" = '{"cniVersion":"1.0.0","interfaces":[{"mac":"M","name":"br7"},{"mac":"M","name":"'"$(result "$host_end")"'"},{"mac":"M","name":"eth0","sandbox":"/run/netns/one"}],"ips":[{"address":"10.7.0.2/24","gateway":"10.7.0.1","interface":2}],"routes":[{"dst":"0.0.0.0/0","gw":"10.7.0.1"}]}' ]
	for i in 0 1; do
		[ "$(ip -j link show "$(result ".interfaces[$i].name")" | jq -r '.[].address')" = "$(result ".interfaces[$i].mac")" ]
	done
	[ "$(ip -n one -j link show eth0 | jq -r '.[].address')" = "$(result '.interfaces[2].mac')" ]
	[[ "$(result "$host_end")" =~ ^veth[0-9a-f]{8}$ ]]
	ip -n one route show default | grep -q 'via 10.7.0.1 dev eth0'
	[ "$(cat /proc/sys/net/ipv4/ip_forward)" = 1 ]
	check
	del
	only_bridge_left
}

@test "bridge: both ends of the veth pair have one queue" {
	add '{}'
	[ "$(ip -d -j link show "$(result "$host_end")" | jq '.[0].num_tx_queues, .[0].num_rx_queues' | xargs)" = "1 1" ]
	[ "$(ip -n one -d -j link show eth0 | jq '.[0].num_tx_queues, .[0].num_rx_queues' | xargs)" = "1 1" ]
}

@test "bridge: pods reach each other and the bridge right after ADD, over IPv4 and IPv6" {
	add '{"isDefaultGateway":true}' "$both"
	call ADD c2 two "$(</tmp/conf)" >/tmp/second
	# the first packet to each address must arrive: there is no retry
	connect one host 10.7.0.1 tcp 7777
	connect one host fd07::1 tcp 7777
	connect one two "$(jq -r '.ips[0].address | split("/")[0]' /tmp/second)" tcp 7777
	connect one two "$(jq -r '.ips[1].address | split("/")[0]' /tmp/second)" tcp 7777
	check
	del
	call DEL c2 two "$(</tmp/conf)"
	only_bridge_left
}

@test "bridge: an IPv6 address is usable right after ADD, without waiting" {
	add '{"isDefaultGateway":true}' "$v6"
	[ "$(result '.ips[0].address')" = fd07::2/64 ]
	[ -z "$(ip -n one -6 addr show tentative)" ]
	[ -z "$(ip addr show dev br7 tentative to fd07::/64)" ]
	[ "$(ip netns exec one cat /proc/sys/net/ipv6/conf/eth0/accept_dad)" = 0 ]
	[ "$(cat /proc/sys/net/ipv6/conf/all/forwarding)" = 1 ]
	check
	del
	only_bridge_left
}

# neighbour ADDRESS: the MAC address that pod two has cached for it
neighbour() { ip -n two -j neigh show to "$1" dev eth0 | jq -r '.[].lladdr'; }
has_neighbour() { [ "$(neighbour "$1")" = "$2" ]; }

@test "bridge: ADD announces the pod's addresses to neighbours that have cached another MAC address" {
	local address
	conf '{"isDefaultGateway":true}' "$both" >/tmp/conf
	call ADD c2 two "$(</tmp/conf)" >/dev/null
	for address in 10.7.0.3 fd07::3; do
		ip -n two neigh replace "$address" dev eth0 lladdr 02:00:00:00:00:ee nud stale
	done
	add '{"isDefaultGateway":true}' "$both"
	for address in 10.7.0.3 fd07::3; do
		wait_until has_neighbour "$address" "$(result '.interfaces[2].mac')"
	done
	[ "$(ip netns exec one cat /proc/sys/net/ipv4/conf/eth0/arp_notify)" = 1 ]
	del
	call DEL c2 two "$(</tmp/conf)"
	only_bridge_left
}

@test "bridge: enabledad enables duplicate address detection and waits for it" {
	add '{"isDefaultGateway":true,"enabledad":true}' "$v6"
	[ "$(ip netns exec one cat /proc/sys/net/ipv6/conf/eth0/accept_dad)" = 1 ]
	[ -z "$(ip -n one -6 addr show tentative to fd07::/64)" ]
	[ -z "$(ip -n one -6 addr show dev eth0 nodad)" ]
	check
}

# dad_of_pod STRACE-ARGUMENT...: trace an ADD to /tmp/trace, and print accept_dad of the pod's interface
dad_of_pod() {
	printf '#!/bin/sh\nASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 exec strace -f -o /tmp/trace %s "%s"\n' \
		"$*" "$plugins/bridge" >/tmp/traced
	chmod +x /tmp/traced
	plugin=/tmp/traced add '{}' "$v4"
	ip netns exec one cat /proc/sys/net/ipv6/conf/eth0/accept_dad
	del
}

@test "bridge: sysctls are accessed through a private procfs mount, so that path lookups in /proc stay fast" {
	need strace
	[ "$(dad_of_pod -e trace=openat)" = 0 ]
	grep '"sys/net/ipv6/conf/eth0/accept_dad"' /tmp/trace
	run ! grep '"/proc/sys/net/ipv6/conf/eth0' /tmp/trace
	# if the plugin cannot mount procfs, it uses the existing mount
	[ "$(dad_of_pod -e trace=openat,fsopen -e inject=fsopen:error=EPERM)" = 0 ]
	grep '"/proc/sys/net/ipv6/conf/eth0/accept_dad"' /tmp/trace
}

@test "bridge: ADD and DEL work in every spec version" {
	works_in_every_version only_bridge_left '"isGateway":true'
}

@test "bridge: isGateway without a gateway from IPAM uses the first address of the network" {
	add '{"isGateway":true}' "$static"
	[ "$(result '.ips[0].gateway')" = 10.7.0.1 ]
	[ "$(result .routes)" = null ]
	ip addr show br7 | grep -q 'inet 10.7.0.1/24'
	check
	del
}

@test "bridge: with isDefaultGateway, IPAM's default route gets the gateway, and no second default route is added" {
	add '{"isDefaultGateway":true}' '{"type":"host-local","subnet":"10.7.0.0/24","routes":[{"dst":"0.0.0.0/0"}]}'
	[ "$(result '.routes | tostring')" = '[{"dst":"0.0.0.0/0","gw":"10.7.0.1"}]' ]
	[ "$(ip -n one route show default | wc -l)" = 1 ]
	check
}

@test "bridge: without isGateway the bridge has no address and forwarding stays disabled" {
	echo 0 >/proc/sys/net/ipv4/ip_forward
	add '{}'
	[ -z "$(ip -4 addr show br7)" ]
	[ "$(cat /proc/sys/net/ipv4/ip_forward)" = 0 ]
	check
}

@test "bridge: without ipam the pod's interface is up and has no address" {
	l2 '{}' >/tmp/conf
	call ADD c1 one "$(</tmp/conf)" >/tmp/result
	[ "$(result .ips)" = null ]
	ip -n one link show eth0 | grep -q LOWER_UP
	check
	del
	only_bridge_left
}

@test "bridge: disableContainerInterface leaves the interface down; with ipam it is refused" {
	l2 '{"disableContainerInterface":true}' >/tmp/conf
	call ADD c1 one "$(</tmp/conf)" >/tmp/result
	run ! grep -q UP <(ip -n one link show eth0)
	check
	del
	run try_add '{"disableContainerInterface":true}'
	fails_with 7 "cannot use IPAM when DisableContainerInterface flag is set"
}

@test "bridge: mtu is set on the bridge and on both ends of the veth pair" {
	add '{"mtu":1400}'
	ip link show br7 | grep -q 'mtu 1400'
	ip link show "$(result "$host_end")" | grep -q 'mtu 1400'
	ip -n one link show eth0 | grep -q 'mtu 1400'
	check
}

@test "bridge: a MAC address in runtimeConfig overrides one in args, which overrides one in CNI_ARGS" {
	mac() { ip -n one -j link show eth0 | jq -r '.[].address'; }
	export CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAME=x;MAC=02:00:00:00:00:01"
	add '{}'
	[ "$(mac)" = 02:00:00:00:00:01 ]
	[ "$(result '.interfaces[2].mac')" = 02:00:00:00:00:01 ]
	check
	del
	add '{"args":{"cni":{"mac":"02:00:00:00:00:02"}}}'
	[ "$(mac)" = 02:00:00:00:00:02 ]
	del
	add '{"args":{"cni":{"mac":"02:00:00:00:00:02"}},"runtimeConfig":{"mac":"02:00:00:00:00:03"}}'
	[ "$(mac)" = 02:00:00:00:00:03 ]
	del
}

@test "bridge: the configuration's dns replaces all of IPAM's dns" {
	printf 'nameserver 10.0.0.53\nsearch a.test\n' >/tmp/resolv.conf
	ipam='{"type":"host-local","subnet":"10.7.0.0/24","resolvConf":"/tmp/resolv.conf"}'
	add '{}' "$ipam"
	[ "$(result '.dns | tostring')" = '{"nameservers":["10.0.0.53"],"search":["a.test"]}' ]
	del
	add '{"dns":{"domain":"b.test"}}' "$ipam"
	[ "$(result '.dns | tostring')" = '{"domain":"b.test"}' ]
	del
	add '{"dns":{"nameservers":[]}}' "$ipam"
	[ "$(result .dns)" = null ]
}

@test "bridge: hairpinMode and portIsolation are set on the port, promiscMode on the bridge" {
	add '{"hairpinMode":true,"portIsolation":true}'
	bridge -d link show dev "$(result "$host_end")" | grep -q 'hairpin on'
	bridge -d link show dev "$(result "$host_end")" | grep -q 'isolated on'
	check
	del
	add '{"promiscMode":true}'
	ip link show br7 | grep -q PROMISC
	bridge -d link show dev "$(result "$host_end")" | grep -q 'hairpin off'
	check
}

@test "bridge: isolated pods reach the bridge, but not each other" {
	add '{"isGateway":true,"portIsolation":true}'
	call ADD c2 two "$(</tmp/conf)" >/tmp/second
	connect one host 10.7.0.1 tcp 7777
	blocked one two 10.7.0.3 tcp 7777
}

@test "bridge: a bridge that we created keeps its MAC address when ports are added or removed" {
	add '{}'
	mac=$(result '.interfaces[0].mac')
	ip link add other type veth peer name peer
	ip link set other address 02:00:00:00:00:00 master br7
	[ "$(ip -j link show br7 | jq -r '.[].address')" = "$mac" ]
	del
	[ "$(ip -j link show br7 | jq -r '.[].address')" = "$mac" ]
	check_mac=$(ip -j link show br7 | jq -r '.[].address')
	ip link del other
	[ "$check_mac" = "$mac" ]
}

@test "bridge: an existing bridge is used, its MAC address no longer changes, and uninstall keeps it" {
	ip link add br7 type bridge
	add '{"isGateway":true,"mtu":1400}'
	ip link show br7 | grep -q UP
	mac=$(result '.interfaces[0].mac')
	[ "$(ip -j link show br7 | jq -r '.[].address')" = "$mac" ]
	ip link add other type veth peer name peer
	ip link set other address 02:00:00:00:00:00 master br7
	[ "$(ip -j link show br7 | jq -r '.[].address')" = "$mac" ]
	ip link del other
	# uninstall does not remove a bridge that existed before the first ADD
	del
	hawser-plugin uninstall
	ip link show br7
}

@test "bridge: ADD has the same effect and returns the same result as upstream" {
	need_go_plugins bridge host-local
	state() { # print the state of both sides of an attachment, without random values
		{
			ip -j addr show br7
			ip -n one -j addr show eth0
			ip -n one -j route
			ip -n one -j -6 route
		} | jq -S '[.[] | del(.address, .ifindex, .link_index, .txqlen, .addr_info[]?.nodad, .addr_info[]?.tentative) |
			.addr_info? |= [.[]? | select(.scope == "global")]]'
	}
	normalize() { # remove random values, and the empty dns that Debian's version prints
		jq -S '.interfaces[].mac = "M" | .interfaces[1].name = "H" | if .dns == {} then del(.dns) else . end'
	}
	for json in '{}' '{"isGateway":true}' '{"isDefaultGateway":true,"mtu":1400,"hairpinMode":true}'; do
		conf "$json" "$both" >/tmp/conf
		upstream ADD c1 one "$(</tmp/conf)" | normalize >/tmp/upstream
		state >/tmp/upstream-state
		upstream DEL c1 one "$(</tmp/conf)"
		ip link del br7
		rm -r /var/lib/cni/networks
		add "$json" "$both"
		normalize </tmp/result | diff /tmp/upstream -
		state | diff /tmp/upstream-state -
		del
		ip link del br7
		rm -r /var/lib/cni/networks
	done
}
