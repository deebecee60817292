#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# bridge: what CHECK finds
# shellcheck disable=SC2154 # variables come from bridge.bash and from run
bats_require_minimum_version 1.5.0
load bridge

@test "bridge: CHECK without a previous result fails" {
	add '{}'
	run call CHECK c1 one "$(</tmp/conf)"
	fails_with 999 "Required prevResult missing"
}

@test "bridge: CHECK fails in a different namespace than that of ADD" {
	add '{}'
	run call CHECK c1 two "$(with_result)"
	fails_with 999 "Sandbox in prevResult /run/netns/one doesn't match configured netns: /run/netns/two"
}

@test "bridge: CHECK finds a bridge that is missing, replaced, down or has a wrong MAC address" {
	add '{"isGateway":true}'
	drifts "interface br7: MAC address mismatch: got 02:00:00:00:00:07, want *" ip link set br7 address 02:00:00:00:00:07
	ip link set br7 address "$(result '.interfaces[0].mac')"
	drifts "bridge br7 is down" ip link set br7 down
	ip link set br7 up
	ip addr add 10.7.0.1/24 dev br7 2>/dev/null || true
	drifts "bridge br7 is missing" ip link del br7
	ip link add br7 type veth peer name other
	run check
	fails_with 999 '"br7" already exists but is not a bridge'
}

@test "bridge: CHECK finds changed promiscuous mode of the bridge" {
	add '{}'
	drifts "bridge br7: promiscuous mode mismatch: got on, want off" ip link set br7 promisc on
	del
	add '{"promiscMode":true}'
	drifts "bridge br7: promiscuous mode mismatch: got off, want on" ip link set br7 promisc off
}

@test "bridge: CHECK finds a detached port, and changed hairpin mode or isolation" {
	add '{}'
	port=$(result "$host_end")
	drifts "port $port: hairpin mode mismatch: got on, want off" bridge link set dev "$port" hairpin on
	bridge link set dev "$port" hairpin off
	drifts "port $port: isolation mismatch: got on, want off" bridge link set dev "$port" isolated on
	bridge link set dev "$port" isolated off
	drifts "port $port: learning mismatch: got off, want on" bridge link set dev "$port" learning off
	bridge link set dev "$port" learning on
	drifts "port $port: flooding mismatch: got off, want on" bridge link set dev "$port" flood off
	bridge link set dev "$port" flood on
	drifts "host interface $port is not a port of bridge br7" ip link set "$port" nomaster
}

@test "bridge: CHECK finds an end of the veth pair that is missing, down, or has a wrong MAC address or MTU" {
	add '{"mtu":1400}'
	port=$(result "$host_end")
	drifts "host interface $port is down" ip link set "$port" down
	ip link set "$port" up
	drifts "host interface $port: MTU mismatch: got 1300, want 1400" ip link set "$port" mtu 1300
	ip link set "$port" mtu 1400
	drifts "container interface eth0: MTU mismatch: got 1300, want 1400" ip -n one link set eth0 mtu 1300
	ip -n one link set eth0 mtu 1400
	drifts "interface eth0: MAC address mismatch: got 02:00:00:00:00:07, want *" ip -n one link set eth0 address 02:00:00:00:00:07
	ip -n one link set eth0 address "$(result '.interfaces[2].mac')"
	drifts "interface eth0 is down" ip -n one link set eth0 down
	ip -n one link set eth0 up
	drifts "container interface eth0 is missing" ip -n one link set eth0 down name lost
	ip -n one link set lost name eth0 up
	drifts "host interface $port is missing" ip link del "$port"
}

@test "bridge: if no MTU is configured, CHECK finds an MTU that differs from the kernel's default" {
	add '{}'
	port=$(result "$host_end")
	drifts "host interface $port: MTU mismatch: got 1300, want 1500" ip link set "$port" mtu 1300
	ip link set "$port" mtu 1500
	drifts "container interface eth0: MTU mismatch: got 1300, want 1500" ip -n one link set eth0 mtu 1300
}

@test "bridge: CHECK finds changed sysctls of the pod's interface, unless tuning changed them" {
	set_conf() { ip netns exec one sysctl -qw "net.$1"; }
	add '{}' "$both"
	drifts "container interface eth0: arp_notify mismatch: got 0, want 1" set_conf ipv4.conf.eth0.arp_notify=0
	set_conf ipv4.conf.eth0.arp_notify=1
	drifts "container interface eth0: accept_dad mismatch: got 1, want 0" set_conf ipv6.conf.eth0.accept_dad=1
	set_conf ipv6.conf.eth0.accept_dad=0
	with_result | jq -c '.type = "tuning" | .sysctl = {"net.ipv4.conf.eth0.arp_notify": "0"}' >/tmp/tuning
	plugin=$plugins/tuning call ADD c1 one "$(</tmp/tuning)"
	check
	plugin=$plugins/tuning call DEL c1 one "$(</tmp/tuning)"
	del
	add '{"enabledad":true}' "$v6"
	drifts "container interface eth0: accept_dad mismatch: got 0, want 1" set_conf ipv6.conf.eth0.accept_dad=0
	set_conf ipv6.conf.eth0.accept_dad=1
	drifts "container interface eth0: enhanced_dad mismatch: got 0, want 1" set_conf ipv6.conf.eth0.enhanced_dad=0
}

@test "bridge: CHECK accepts changes that the tuning plugin made, both upstream's and ours" {
	need_go_plugins tuning
	for tuning in "$GO_PLUGINS/tuning" "$plugins/tuning"; do
		add '{"mtu":1400}'
		with_result | jq -c '.type = "tuning" | .mac = "02:00:00:00:00:07" | .mtu = 1300' >/tmp/tuning
		plugin=$tuning call ADD c1 one "$(</tmp/tuning)" >/tmp/result
		check
		plugin=$tuning call DEL c1 one "$(</tmp/tuning)"
		del
	done
}

@test "bridge: CHECK finds a different link that has the name of the pod's interface" {
	add '{}'
	mac=$(result '.interfaces[2].mac')
	replace() {
		ip -n one link set eth0 down name lost
		ip -n one link set lost address 02:00:00:00:00:07
		ip -n one link add eth0 address "$mac" type veth peer name peer
	}
	drifts "host interface * is not the veth peer of eth0" replace
}

@test "bridge: CHECK finds missing addresses and routes, in the pod and on the bridge" {
	add '{"isDefaultGateway":true}' "$both"
	drifts "*10.7.0.2/24*" ip -n one addr del 10.7.0.2/24 dev eth0
	ip -n one addr add 10.7.0.2/24 dev eth0
	ip -n one route replace default via 10.7.0.1
	drifts "*0.0.0.0/0*" ip -n one route del default
	ip -n one route add default via 10.7.0.1
	drifts "*::/0*" ip -n one -6 route del default
	ip -n one -6 route add default via fd07::1
	drifts "interface br7 lacks the address 10.7.0.1/24" ip addr del 10.7.0.1/24 dev br7
	ip addr add 10.7.0.1/24 dev br7
	drifts "interface br7 lacks the address fd07::1/64" ip addr del fd07::1/64 dev br7
}

@test "bridge: CHECK finds that forwarding was disabled" {
	add '{"isGateway":true}'
	drifts "forwarding is disabled: net/ipv4/ip_forward is 0" sysctl -qw net.ipv4.ip_forward=0
}

@test "bridge: CHECK calls IPAM" {
	add '{}'
	drifts "*" rm /var/lib/cni/networks/net/10.7.0.2
}
