#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Plugins that need nftables, on a kernel without it
load ../lib

conf='{"cniVersion":"1.1.0","name":"net","type":"bridge","bridge":"br7","ipMasq":true,
	"ipam":{"type":"host-local","subnet":"10.7.0.0/24"}}'

# call VERB: call the bridge plugin for pod c1 in namespace one
call() {
	CNI_COMMAND=$1 CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth0 CNI_PATH=$HAWSER_BUILD/cni \
		"$HAWSER_BUILD/cni/bridge" <<<"$conf"
}

@test "uml: on a kernel without nftables, the commands rules, repair and uninstall find nothing to do" {
	! nft list tables >/dev/null 2>&1 || skip "this kernel has nftables"
	[ "$(hawser-plugin rules --json)" = "[]" ]
	hawser-plugin repair
	[ "$(hawser-plugin uninstall)" = "nothing to remove" ]
}

@test "uml: on a kernel without nftables, ADD with ipMasq fails and leaves nothing behind" {
	! nft list tables >/dev/null 2>&1 || skip "this kernel has nftables"
	ip netns add one
	run call STATUS
	[ "$(jq .code <<<"$output")" = 50 ]
	run call ADD
	echo "$output"
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$output")" == *"this kernel has no nftables"* ]]
	[ -z "$(find /run/hawser/attachments -type f)" ]
	call DEL
	ip netns del one
	[ "$(hawser-plugin uninstall)" = "bridge br7 removed" ]
}
