#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# bridge: the link-local address and the MAC address of a bridge that ADD has just created
bats_require_minimum_version 1.5.0
load ../lib
load ../pod

export pod_plugin=bridge
plugins=$HAWSER_BUILD/cni

setup() {
	need ip jq
	ip netns add one
	export CNI_PATH=$plugins:$GO_PLUGINS
}

teardown() {
	delete_pods
	rm -rf /run/hawser
	ip link del br7 2>/dev/null || true
}

# conf JSON: print a configuration without IPAM, with these keys
conf() { jq -c '{cniVersion:"1.1.0",name:"net",type:"bridge",bridge:"br7"} + .' <<<"$1"; }

# linklocal: print the link-local address of the bridge; expected_linklocal: that of its MAC address
linklocal() { ip -j -6 addr show br7 scope link | jq -r '.[0].addr_info[0].local'; }
expected_linklocal() {
	python3 -c '
import ipaddress, sys
mac = bytes.fromhex(sys.argv[1].replace(":", ""))
print(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]))' \
		"$(</sys/class/net/br7/address)"
}

has_state() { [ "$(ip -j link show br7 | jq -r '.[0].operstate')" = "$1" ]; }

@test "bridge: a new bridge has its link-local address right after ADD, even if its port is down" {
	for keys in '{"disableContainerInterface":true}' '{}'; do
		add "$keys"
		[ "$(linklocal)" = "$(expected_linklocal)" ]
		check
		# the state of the bridge is that of its ports, as in upstream
		[ "$keys" = '{}' ] && state=UP || state=DOWN
		wait_until has_state "$state"
		del
		ip link del br7
		rm -r /run/hawser
	done
}

@test "bridge: the MAC address of a new bridge is set explicitly" {
	add '{"disableContainerInterface":true}'
	# 3: NET_ADDR_SET
	[ "$(</sys/class/net/br7/addr_assign_type)" = 3 ]
	before=$(linklocal)
	[ "$(result '.interfaces[0].mac')" = "$(</sys/class/net/br7/address)" ]
	ip link set "$(result '.interfaces[1].name')" address 02:00:00:00:00:01
	del
	[ "$(linklocal)" = "$before" ]
}
