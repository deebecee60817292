#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# macspoofchk of bridge
# shellcheck disable=SC2154 # variables come from masq.bash and from run
bats_require_minimum_version 1.5.0
load masq

@test "macspoofchk: frames with another source MAC address are dropped" {
	conf bridge '{"macspoofchk":true}'
	add c1 one
	add c2 two
	mac=$(jq -r '.interfaces[2].mac' /tmp/result.c1)
	[ "$(seen one two "$(address c2 0)" tcp)" = "$(address c1 0)" ]
	ip -n one link set eth0 address 02:00:00:00:00:07
	blocked one two "$(address c2 0)" udp 7777
	ip -n one link set eth0 address "$mac"
	ip -n one route replace default via 10.7.0.1
	[ "$(seen one two "$(address c2 0)" tcp)" = "$(address c1 0)" ]
	check
	del c1 one
	[ "$(hawser-plugin rules | grep -c mac_ok)" = 1 ]
	del c2 two
	[ "$(ours)" = "[]" ]
}

@test "macspoofchk: a DEL that cannot delete the link keeps the elements" {
	need strace
	conf bridge '{"macspoofchk":true}'
	failed=0
	for call in sendto sendmsg; do
		for n in {1..9}; do
			add c1 one
			host=$(jq -r '.interfaces[1].name' /tmp/result.c1)
			CNI_COMMAND=DEL CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth0 run strace -fo /tmp/calls \
				-e trace=$call -e inject=$call:error=ENOMEM:when="$n" "$plugin" <<<"$(with_result c1)"
			if [ -e "/sys/class/net/$host" ]; then
				failed=$((failed + 1))
				[ "$(ours | jq length)" = 4 ]
			fi
			del c1 one
		done
	done
	[ "$failed" != 0 ]
}

@test "macspoofchk: works without IPAM" {
	conf bridge '{"macspoofchk":true,"ipMasq":false,"ipam":{}}'
	add c1 one
	[ "$(ours | jq length)" = 2 ]
	check
	del c1 one
	[ "$(ours)" = "[]" ]
	[ -z "$(nft list tables inet)" ]
}

@test "macspoofchk: DEL removes upstream's rules" {
	need_go_plugins bridge
	conf bridge '{"cniVersion":"1.0.0","macspoofchk":true,"ipMasq":false,"ipam":{}}'
	plugin=$GO_PLUGINS/bridge add c2 two
	nft list ruleset >/tmp/before
	plugin=$GO_PLUGINS/bridge add c1 one
	nft list ruleset | grep -q cni-br-iface-c1-eth0
	del c1 one
	nft list ruleset | diff /tmp/before -
}
