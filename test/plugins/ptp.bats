#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ptp: effect and result of ADD, compared with upstream's plugin (Debian's) for configurations that both
# support; what CHECK finds; DEL in any state. test/differential has the full table of configurations.
bats_require_minimum_version 1.5.0
load ../lib
load ../pod

export pod_plugin=ptp
plugins=$HAWSER_BUILD/cni

setup() {
	need ip jq
	ip netns add one
	ip netns add two
	export CNI_PATH=$plugins:$GO_PLUGINS
}

teardown() {
	delete_pods
	rm -rf /run/hawser /var/lib/cni/networks
}

# ---- helpers -------------------------------------------------------------------------

v4='{"type":"host-local","subnet":"10.7.0.0/24"}'
both='{"type":"host-local","ranges":[[{"subnet":"10.7.0.0/24"}],[{"subnet":"fd07::/64"}]],
	"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}'
# shellcheck disable=SC2034 # used by works_in_every_version
static='{"type":"static","addresses":[{"address":"10.7.0.9/24","gateway":"10.7.0.1"}]}'

# conf JSON [IPAM]: print a configuration with these keys
conf() {
	jq -c --argjson ipam "${2-$v4}" '{cniVersion:"1.0.0",name:"net",type:"ptp",ipam:$ipam} + .' <<<"$1"
}

# nothing_left: assert that no attachment has left anything behind
nothing_left() {
	[ "$(ip -j link | jq -r '.[].ifname')" = lo ]
	[ -z "$(ip route; ip -6 route)" ]
	[ -z "$(leases)" ]
	[ -z "$(find /run/hawser/attachments -type f)" ]
}

# ---- ADD and DEL -------------------------------------------------------------------------

@test "ptp: ADD connects pod and host, and returns the same result as upstream" {
	add '{}' "$both"
	host=$(result '.interfaces[0].name')
	[ "$(jq -c '.interfaces[].mac = "M"' /tmp/result)" = '{"cniVersion":"1.0.0","interfaces":[{"mac":"M","name":"'"$host"'"},{"mac":"M","name":"eth0","sandbox":"/run/netns/one"}],"ips":[{"address":"10.7.0.2/24","gateway":"10.7.0.1","interface":1},{"address":"fd07::2/64","gateway":"fd07::1","interface":1}],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}' ]
	[[ "$host" =~ ^veth[0-9a-f]{8}$ ]]
	[ "$(ip -j link show "$host" | jq -r '.[].address')" = "$(result '.interfaces[0].mac')" ]
	[ "$(ip -n one -j link show eth0 | jq -r '.[].address')" = "$(result '.interfaces[1].mac')" ]
	[ "$(ip -n one route)" = "default via 10.7.0.1 dev eth0 
10.7.0.0/24 via 10.7.0.1 dev eth0 src 10.7.0.2 
10.7.0.1 dev eth0 scope link src 10.7.0.2 " ]
	ip route show 10.7.0.2 | grep -q "dev $host proto 104 scope host"
	ip -6 route show fd07::2 | grep -q "dev $host proto 104"
	ip addr show "$host" | grep -q 'inet 10.7.0.1/32'
	ip addr show "$host" | grep -q 'inet6 fd07::1/128'
	[ "$(cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding)" = $'1\n1' ]
	[ -z "$(ip -n one -6 addr show tentative to fd07::/64)" ]
	check
	del
	nothing_left
}

@test "ptp: pods reach each other through the host right after ADD, over IPv4 and IPv6" {
	add '{}' "$both"
	call ADD c2 two "$(</tmp/conf)" >/tmp/second
	connect one two "$(jq -r '.ips[0].address | split("/")[0]' /tmp/second)" tcp 7777
	connect one two "$(jq -r '.ips[1].address | split("/")[0]' /tmp/second)" tcp 7777
	del
	call DEL c2 two "$(</tmp/conf)"
	nothing_left
}

@test "ptp: ADD has the same effect and returns the same result as upstream" {
	need_go_plugins ptp host-local
	state() { # print the state without random values
		ip -n one -j addr show eth0 | jq -S '[.[] | del(.address, .ifindex, .link_index, .txqlen) |
			.addr_info |= [.[] | select(.scope == "global") | del(.nodad)]]'
		for family in -4 -6; do
			ip -n one -j $family route | jq -S '[.[] | select(.dst != "fe80::/64")]'
			ip -j $family route | jq -S '[.[] | select(.dst != "fe80::/64") | del(.dev, .protocol)]'
		done
	}
	normalize() { # remove random values, and the empty dns that Debian's version prints
		jq -S '.interfaces[].mac = "M" | .interfaces[0].name = "H" | if .dns == {} then del(.dns) else . end'
	}
	for json in '{}' '{"mtu":1400,"dns":{"nameservers":["10.0.0.53"]}}'; do
		conf "$json" "$both" >/tmp/conf
		upstream ADD c1 one "$(</tmp/conf)" | normalize >/tmp/upstream
		state >/tmp/upstream-state
		upstream DEL c1 one "$(</tmp/conf)"
		rm -r /var/lib/cni/networks
		add "$json" "$both"
		normalize </tmp/result | diff /tmp/upstream -
		state | diff /tmp/upstream-state -
		del
		rm -r /var/lib/cni/networks
	done
}

@test "ptp: ADD and DEL work in every spec version" {
	works_in_every_version nothing_left
}

@test "ptp: a pod can have several addresses of one network or of two" {
	add '{}' '{"type":"static","addresses":[{"address":"10.7.0.8/24","gateway":"10.7.0.1"},
		{"address":"10.7.0.9/24","gateway":"10.7.0.1"},{"address":"fd07::8/64","gateway":"fd07::1"},
		{"address":"fd07::9/64","gateway":"fd07::1"}]}'
	check
	del
	nothing_left
	add '{}' '{"type":"host-local","ranges":[[{"subnet":"10.7.0.0/24"}],[{"subnet":"10.8.0.0/24"}]]}'
	check
	del
	nothing_left
}

@test "ptp: invalid configurations are refused, and nothing is changed" {
	run try_add '{"ipMasq":true,"ipMasqBackend":"pf"}'
	fails_with 7 'unknown ipmasq backend "pf"'
	run call ADD c1 one '{"cniVersion":"1.0.0","name":"net","type":"ptp"}'
	fails_with 7 "no plugin name provided"
	run try_add '{"mtu":"x"}'
	fails_with 7 'failed to load netconf: mtu: *'
	run try_add '{}' '{"type":"static","addresses":[{"address":"10.7.0.9/24"}]}'
	fails_with 999 'IPAM plugin returned no gateway for 10.7.0.9/24'
	ip -n one link add eth0 type veth peer name other
	run try_add '{}'
	fails_with 999 'container veth name ("eth0") peer provided ("veth*") already exists'
	ip -n one link show eth0
	nothing_left
}

@test "ptp: an existing route to the pod's address is replaced" {
	ip link add other type veth peer name peer
	ip link set other up
	ip route add 10.7.0.2 dev other scope host
	add '{}'
	ip route show 10.7.0.2 | grep -q "dev $(result '.interfaces[0].name')"
	[ "$(ip route show 10.7.0.2 | wc -l)" = 1 ]
	check
	del
	ip link del other
	nothing_left
}

@test "ptp: DEL succeeds twice, with a deleted namespace, without one, and without record or result" {
	add '{}'
	del
	del
	nothing_left
	add '{}'
	ip netns del one
	del
	nothing_left
	ip netns add one
	add '{}'
	del ""
	nothing_left
	add '{}'
	rm -r /run/hawser/attachments
	call DEL c1 one "$(</tmp/conf)"
	mkdir -p /run/hawser/attachments
	nothing_left
}

@test "ptp: our DEL works on upstream's attachments, and upstream's DEL on ours" {
	need_go_plugins ptp host-local
	conf '{}' "$both" >/tmp/conf
	upstream ADD c1 one "$(</tmp/conf)" >/tmp/result
	check
	del
	mkdir -p /run/hawser/attachments
	nothing_left
	add '{}' "$both"
	upstream CHECK c1 one "$(with_result)"
	upstream DEL c1 one "$(with_result)"
	[ -z "$(leases)" ]
	del
	nothing_left
}

# ---- CHECK, GC, STATUS ---------------------------------------------------------------------

@test "ptp: CHECK finds an end of the veth pair that is missing, down, or has a wrong MAC address or MTU" {
	add '{"mtu":1400}'
	host=$(result '.interfaces[0].name')
	drifts "host interface $host: MTU mismatch: got 1300, want 1400" ip link set "$host" mtu 1300
	ip link set "$host" mtu 1400
	drifts "container interface eth0: MTU mismatch: got 1300, want 1400" ip -n one link set eth0 mtu 1300
	ip -n one link set eth0 mtu 1400
	drifts "interface eth0: MAC address mismatch: got 02:00:00:00:00:07, want *" ip -n one link set eth0 address 02:00:00:00:00:07
	ip -n one link set eth0 address "$(result '.interfaces[1].mac')"
	drifts "host interface $host is down" ip link set "$host" down
	ip link set "$host" up
	ip route replace 10.7.0.2 dev "$host" scope host
	drifts "*eth0*down*" ip -n one link set eth0 down
	del
	add '{}'
	host=$(result '.interfaces[0].name')
	drifts "host interface $host is missing" ip link del "$host"
}

@test "ptp: CHECK finds missing addresses and routes, in the pod and on the host" {
	add '{}' "$both"
	host=$(result '.interfaces[0].name')
	drifts "interface $host lacks the route 10.7.0.2/32*" ip route del 10.7.0.2
	ip route add 10.7.0.2 dev "$host" scope host
	drifts "interface $host lacks the route fd07::2/128*" ip -6 route del fd07::2
	ip -6 route add fd07::2 dev "$host"
	drifts "interface $host lacks the address 10.7.0.1/32" ip addr del 10.7.0.1/32 dev "$host"
	ip addr add 10.7.0.1/32 dev "$host"
	ip route replace 10.7.0.2 dev "$host" scope host
	drifts "interface $host lacks the address fd07::1/128" ip addr del fd07::1/128 dev "$host"
	ip addr add fd07::1/128 dev "$host" nodad
	drifts "*10.7.0.0/24*" ip -n one route del 10.7.0.0/24
	ip -n one route add 10.7.0.0/24 via 10.7.0.1 src 10.7.0.2
	drifts "*0.0.0.0/0*" ip -n one route del default
	ip -n one route add default via 10.7.0.1
	drifts "*10.7.0.1/32*" ip -n one route del 10.7.0.1
	ip -n one route add 10.7.0.1 dev eth0 scope link src 10.7.0.2
	drifts "forwarding is disabled: net/ipv6/conf/all/forwarding is 0" sysctl -qw net.ipv6.conf.all.forwarding=0
	sysctl -qw net.ipv6.conf.all.forwarding=1
	drifts "*fd07::2/64*" ip -n one addr del fd07::2/64 dev eth0
}

@test "ptp: CHECK calls IPAM, and requires a previous result" {
	add '{}'
	run call CHECK c1 one "$(</tmp/conf)"
	fails_with 999 "Required prevResult missing"
	drifts "*" rm /var/lib/cni/networks/net/10.7.0.2
}

@test "ptp: GC deletes exactly the attachments that are no longer valid" {
	add '{"cniVersion":"1.1.0"}'
	call ADD c2 two "$(</tmp/conf)" >/tmp/second
	gc() { call GC "" "" "$(jq -c ".\"cni.dev/valid-attachments\" = $1" /tmp/conf)"; }
	gc '[{"containerID":"c1","ifname":"eth0"}]'
	check
	run ! ip -n two link show eth0
	[ "$(leases)" = 10.7.0.2 ]
	gc '[]'
	nothing_left
}

@test "ptp: STATUS calls IPAM" {
	call STATUS "" "" "$(conf '{"cniVersion":"1.1.0"}')"
	run call STATUS "" "" "$(conf '{"cniVersion":"1.1.0"}' '{"type":"nosuch"}')"
	fails_with 999 'failed to find plugin "nosuch"*'
	run call STATUS "" "" '{"cniVersion":"1.1.0","name":"net","type":"ptp"}'
	fails_with 7 "no plugin name provided"
}

@test "ptp: forty concurrent first ADDs, then forty concurrent DELs, leave nothing behind" {
	conf '{}' "$both" >/tmp/conf
	add_forty_at_once
	delete_forty_at_once
	nothing_left
}
