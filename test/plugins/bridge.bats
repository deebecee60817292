#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# bridge: effect and result of ADD, compared with upstream's plugin (Debian's) for configurations that
# both support; what CHECK finds; DEL in any state. test/differential has the full table of
# configurations.
bats_require_minimum_version 1.5.0
load ../lib
load ../pod

export pod_plugin=bridge
plugins=$HAWSER_BUILD/cni
host_end='.interfaces[1].name'

setup() {
	need ip jq bridge
	ip netns add one
	ip netns add two
	export CNI_PATH=$plugins:$GO_PLUGINS
}

teardown() {
	local link
	delete_pods
	rm -rf /run/hawser
	for link in br7 other; do ip link del "$link" 2>/dev/null || true; done
	rm -rf /var/lib/cni/networks
}

# ---- helpers -------------------------------------------------------------------------

v4='{"type":"host-local","subnet":"10.7.0.0/24"}'
v6='{"type":"host-local","subnet":"fd07::/64"}'
both='{"type":"host-local","ranges":[[{"subnet":"10.7.0.0/24"}],[{"subnet":"fd07::/64"}]]}'
static='{"type":"static","addresses":[{"address":"10.7.0.9/24"}]}'

# conf JSON [IPAM]: print a configuration with these keys; l2 JSON: print a configuration without IPAM
conf() {
	jq -c --argjson ipam "${2-$v4}" '{cniVersion:"1.0.0",name:"net",type:"bridge",bridge:"br7",ipam:$ipam} + .' <<<"$1"
}
l2() { jq -c 'del(.ipam)' <<<"$(conf "$1")"; }

links() { ip -j link | jq -r '.[].ifname' | sort; }
records() { find /run/hawser/attachments -type f 2>/dev/null; }
# only_bridge_left: assert that only the bridge is left
only_bridge_left() {
	[ "$(links)" = $'br7\nlo' ]
	[ -z "$(leases)" ]
	[ -z "$(records)" ]
}

# reaches FROM ADDRESS: succeeds if netns FROM gets an answer from ADDRESS; a refused connection
# counts as an answer
reaches() {
	ip netns exec "$1" python3 -c '
import socket, sys
try:
	socket.create_connection((sys.argv[1], 9), 1)
except ConnectionRefusedError:
	pass' "$2"
}

# ---- ADD ---------------------------------------------------------------------------------

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
	reaches one 10.7.0.1
	reaches one fd07::1
	talks one "$(jq -r '.ips[0].address | split("/")[0]' /tmp/second)"
	talks one "$(jq -r '.ips[1].address | split("/")[0]' /tmp/second)"
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
	reaches one 10.7.0.1
	run ! reaches one 10.7.0.3
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

# ---- refusals ----------------------------------------------------------------------------------

@test "bridge: invalid configurations are refused with upstream's texts, and nothing is changed" {
	refused() { # CODE MESSAGE JSON
		run call ADD c1 one "$(conf "$3")"
		fails_with "$1" "$2"
	}
	refused 7 "cannot set hairpin mode and promiscuous mode at the same time" '{"hairpinMode":true,"promiscMode":true}'
	refused 7 "invalid VLAN ID 4095 (must be between 0 and 4094)" '{"vlan":4095}'
	refused 7 "invalid VLAN ID -1 (must be between 0 and 4094)" '{"vlan":-1}'
	refused 7 "incorrect trunk id parameter" '{"vlanTrunk":[{"id":0}]}'
	refused 7 "incorrect trunk minID parameter" '{"vlanTrunk":[{"minID":0,"maxID":9}]}'
	refused 7 "incorrect trunk maxID parameter" '{"vlanTrunk":[{"minID":1,"maxID":5000}]}'
	refused 7 "minID is greater than maxID in trunk parameter" '{"vlanTrunk":[{"minID":5,"maxID":4}]}'
	refused 7 "minID and maxID should be configured simultaneously, minID is missing" '{"vlanTrunk":[{"maxID":4}]}'
	refused 7 "minID and maxID should be configured simultaneously, maxID is missing" '{"vlanTrunk":[{"minID":4}]}'
	refused 7 'invalid bridge name "": *' '{"bridge":""}'
	refused 7 'invalid bridge name "a/b": *' '{"bridge":"a/b"}'
	refused 7 'invalid bridge name "br%d": *' '{"bridge":"br%d"}'
	refused 7 'invalid bridge name "br7.of.the.pods": *' '{"bridge":"br7.of.the.pods","vlan":7,"isGateway":true}'
	refused 7 'invalid MAC address "x"' '{"runtimeConfig":{"mac":"x"}}'
	refused 7 'failed to load netconf: *isGateway*' '{"isGateway":1}'
	refused 7 'unknown ipmasq backend "pf"' '{"ipMasq":true,"ipMasqBackend":"pf"}'
	CNI_ARGS="X=y" refused 999 'ARGS: unknown args ["X=y"]' '{}'
	[ "$(links)" = lo ]
	[ -z "$(records)" ]
	[ -z "$(leases)" ]
}

@test "bridge: ADD and STATUS report a kernel without VLAN filtering" {
	ip link add other type bridge
	run ip link set other type bridge vlan_filtering 1
	bridge vlan show dev other 2>/dev/null | grep -q PVID && skip "this kernel filters VLANs"
	for json in '{"vlan":100}' '{"vlanTrunk":[{"id":1}]}'; do
		run call ADD c1 one "$(conf "$json")"
		fails_with 999 '*kernel*VLAN*'
		run call STATUS "" "" "$(conf "$json" | jq -c '.cniVersion = "1.1.0"')"
		fails_with 50 '*kernel*VLAN*'
	done
	[ "$(links)" = $'lo\nother' ]
}

@test "bridge: ADD and STATUS refuse an existing link that is not a bridge" {
	ip link add br7 type veth peer name other
	run try_add '{}'
	fails_with 999 '"br7" already exists but is not a bridge'
	[ -z "$(leases)" ]
	run call STATUS "" "" "$(conf '{"cniVersion":"1.1.0"}')"
	fails_with 50 '"br7" already exists but is not a bridge'
}

@test "bridge: a conflicting address of the bridge is an error, unless forceAddress is set" {
	ip link add br7 type bridge
	ip addr add 10.8.0.1/24 dev br7
	run try_add '{"isGateway":true}'
	fails_with 999 '*"br7" already has an IP address different from 10.7.0.1/24'
	[ "$(links)" = $'br7\nlo' ]
	[ -z "$(leases)" ]
	add '{"isGateway":true,"forceAddress":true}'
	[ "$(ip -j -4 addr show br7 | jq -r '.[].addr_info[].local')" = 10.7.0.1 ]
	del
}

@test "bridge: an IPv6 address of the bridge conflicts only if it is in the gateway's network" {
	ip link add br7 type bridge
	ip addr add fd08::1/64 dev br7
	add '{"isGateway":true}' "$v6"
	del
	ip addr del fd07::1/64 dev br7
	ip addr add fd07::9/64 dev br7
	run try_add '{"isGateway":true}' "$v6"
	fails_with 999 '*"br7" already has an IP address different from fd07::1/64'
	add '{"isGateway":true,"forceAddress":true}' "$v6"
	del
}

@test "bridge: ADD is refused if the pod has an interface with the name in CNI_IFNAME, and nothing is changed" {
	ip -n one link add eth0 type veth peer name other
	before=$(links_and_addresses one)
	run try_add '{"isGateway":true}'
	fails_with 999 'container veth name ("eth0") peer provided ("veth*") already exists'
	[ "$(links)" = lo ]
	[ -z "$(leases)" ]
	[ -z "$(records)" ]
	[ "$(links_and_addresses one)" = "$before" ]
}

@test "bridge: an ADD whose IPAM fails or returns no address leaves nothing behind" {
	run try_add '{}' '{"type":"nosuch"}'
	fails_with 999 'failed to find plugin "nosuch"*'
	mkdir /tmp/ipam
	cat >/tmp/ipam/empty <<-'END'
		#!/bin/sh
		echo $CNI_COMMAND >>/tmp/ipam/calls
		[ $CNI_COMMAND = DEL ] || echo '{}'
	END
	chmod +x /tmp/ipam/empty
	CNI_PATH=$CNI_PATH:/tmp/ipam run try_add '{}' '{"type":"empty"}'
	fails_with 999 "IPAM plugin returned missing IP config"
	[ "$(cat /tmp/ipam/calls)" = $'ADD\nDEL' ]
	only_bridge_left
}

@test "bridge: ADD refuses a plugin as its own IPAM plugin; DEL and GC succeed" {
	for type in bridge ptp; do
		run try_add '{"cniVersion":"1.1.0"}' "{\"type\":\"$type\"}"
		fails_with 7 "plugin \"$type\" cannot delegate to itself"
		only_bridge_left
		call DEL c1 one "$(</tmp/conf)"
		call GC "" "" "$(jq -c '."cni.dev/valid-attachments" = []' /tmp/conf)"
		run call STATUS "" "" "$(</tmp/conf)"
		fails_with 7 "*delegate to itself"
	done
}

@test "bridge: a netns that does not exist is refused" {
	run call ADD c1 nosuch "$(conf '{}')"
	fails_with 999 'failed to open netns "/run/netns/nosuch": failed to Statfs*'
	[ "$(links)" = lo ]
}

@test "bridge: if the name of the host end is taken, the next name is used" {
	add '{}'
	name=$(result "$host_end")
	del
	ip link add "$name" type veth peer name other
	add '{}'
	[ "$(result "$host_end")" = "$(printf 'veth%08x' $((0x${name#veth} + 1)))" ]
	check
	del
	ip link show "$name"
	ip link del "$name"
	only_bridge_left
}

# ---- CHECK ------------------------------------------------------------------------------------------

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

# ---- DEL ------------------------------------------------------------------------------------------------

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

# ---- GC, STATUS, concurrency -----------------------------------------------------------------------------

@test "bridge: GC deletes exactly the attachments that are no longer valid" {
	add '{"cniVersion":"1.1.0","isGateway":true}'
	call ADD c2 two "$(</tmp/conf)" >/tmp/second
	gc() { call GC "" "" "$(jq -c ".\"cni.dev/valid-attachments\" = $1" /tmp/conf)"; }
	gc '[{"containerID":"c1","ifname":"eth0"},{"containerID":"c2","ifname":"eth0"}]'
	check
	gc '[{"containerID":"c1","ifname":"eth0"}]'
	check
	run ! ip -n two link show eth0
	[ "$(leases)" = 10.7.0.2 ]
	gc '[]'
	only_bridge_left
}

@test "bridge: GC during ADDs deletes an attachment completely or not at all" {
	conf '{"cniVersion":"1.1.0","isGateway":true}' >/tmp/conf
	for i in {1..30}; do ip netns add "p$i"; done
	for i in {1..30}; do
		call ADD "c$i" "p$i" "$(</tmp/conf)" >"/tmp/r$i" &
		adds[i]=$!
		((i % 10)) || call GC "" "" "$(jq -c '."cni.dev/valid-attachments" = []' /tmp/conf)"
	done
	for i in {1..30}; do wait "${adds[i]}" || { cat "/tmp/r$i"; false; }; done
	for i in {1..30}; do
		ip -n "p$i" -j -4 addr show eth0 2>/dev/null | jq -r '.[].addr_info[].local'
	done | sort >/tmp/addresses
	diff <(leases) /tmp/addresses
	[ "$(ip -j link show master br7 | jq length)" = "$(wc -l </tmp/addresses)" ]
	call GC "" "" "$(jq -c '."cni.dev/valid-attachments" = []' /tmp/conf)"
	only_bridge_left
}

@test "bridge: STATUS calls IPAM, and succeeds on a host without the bridge" {
	call STATUS "" "" "$(conf '{"cniVersion":"1.1.0","isGateway":true}')"
	[ "$(links)" = lo ]
	run call STATUS "" "" "$(conf '{"cniVersion":"1.1.0"}' '{"type":"nosuch"}')"
	fails_with 999 'failed to find plugin "nosuch"*'
	run call STATUS "" "" "$(conf '{"cniVersion":"1.1.0","hairpinMode":true,"promiscMode":true}')"
	fails_with 7 "cannot set hairpin mode*"
}

@test "bridge: ADD and DEL list only the bridge's addresses by netlink dumps, and ADD and DEL of ptp use no dump" {
	need strace
	conf '{"isGateway":true}' "$both" >/tmp/conf
	for i in {1..5}; do ip netns add "p$i" && call ADD "p$i" "p$i" "$(</tmp/conf)"; done
	# shellcheck disable=SC2016 # the script expands it
	printf '#!/bin/sh\nexec strace -f -o /tmp/trace -e trace=sendto,getdents64 "%s/${0##*/}"\n' "$plugins" >/tmp/bridge
	chmod +x /tmp/bridge
	cp /tmp/bridge /tmp/ptp
	: >/tmp/lists
	for type in bridge ptp; do
		for verb in ADD DEL; do
			ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 plugin=/tmp/$type call "$verb" c1 one \
				"$(conf "{\"type\":\"$type\",\"isGateway\":true}" "$both")"
			grep -q 'sendto.*RTM_' /tmp/trace
			grep -E -e 'sendto.*NLM_F_DUMP' -e '([4-9]|[0-9]{2,}) entries' /tmp/trace >>/tmp/lists || true
		done
	done
	cat /tmp/lists
	[ "$(grep -c 'RTM_GETADDR.*ifa_index=if_nametoindex("br7")' /tmp/lists)" = 2 ] # one for each family
	# No other list was read. Directories with at most three entries are not counted, such as the index, which has
	# ".", ".." and the directory of this boot.
	[ "$(wc -l </tmp/lists)" = 2 ]
}

@test "bridge: forty concurrent first ADDs, then forty concurrent DELs, leave only the bridge" {
	conf '{"isDefaultGateway":true}' "$both" >/tmp/conf
	for i in {1..40}; do ip netns add "p$i"; done
	for i in {1..40}; do
		call ADD "c$i" "p$i" "$(</tmp/conf)" >"/tmp/r$i" &
		adds[i]=$!
	done
	for i in {1..40}; do wait "${adds[i]}" || { cat "/tmp/r$i"; false; }; done
	[ "$(jq -r '.ips[0].address' /tmp/r? /tmp/r?? | sort -u | wc -l)" = 40 ]
	[ "$(ip -j link show master br7 | jq length)" = 40 ]
	reaches p1 "$(jq -r '.ips[0].address | split("/")[0]' /tmp/r40)"
	for i in {1..40}; do
		call DEL "c$i" "p$i" "$(</tmp/conf)" &
		dels[i]=$!
	done
	for i in {1..40}; do wait "${dels[i]}"; done
	only_bridge_left
}

@test "bridge: uninstall removes the bridge, but refuses while it has ports" {
	add '{"isGateway":true}'
	run hawser-plugin uninstall
	[ "$status" = 1 ]
	[ "$output" = "hawser-plugin: bridge br7 still has ports" ]
	check
	del
	run hawser-plugin uninstall
	[ "$output" = "bridge br7 removed" ]
	[ "$(links)" = lo ]
	run hawser-plugin uninstall
	[[ "$output" == "nothing to remove"* ]]
}

@test "bridge: uninstall keeps a bridge that was created after ours was deleted" {
	add '{}'
	del
	ip link del br7
	ip link add br7 type bridge
	run hawser-plugin uninstall
	[[ "$output" == "nothing to remove"* ]]
	ip link show br7
}
