# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # the tests use the variables
#
# test/plugins/bridge.bash - two pods, and helpers for tests of the bridge plugin
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
