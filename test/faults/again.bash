# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # plugin, case and others are set by the scenario and by run
#
# test/faults/again.bash - the verb "again", for plugins that create the pod's link
#
# What:  a repeated ADD, with another address, for a pod that lost its interface. Source this file
#        after plugin.bash.
# Rules: if the repeated ADD fails, the pod has either the nftables elements of the first ADD or all
#        those of the second, never both and never neither.

eval "of_plugin_$(declare -f build)"
eval "of_plugin_$(declare -f operation)"
eval "of_plugin_$(declare -f verify)"
eval "of_plugin_$(declare -f repair)"

# with_address N COMMAND...: run COMMAND with the static address 10.99.0.N in the configuration
with_address() {
	conf=$(jq -c --arg n "$1" '.isGateway = false | .macspoofchk = true | .ipam = {type: "static",
		addresses: [{address: "10.99.0.\($n)/24", gateway: "10.99.0.1"}]}' <<<"$conf") "${@:2}"
}

# The first ADD and DEL create the network's nftables chain, which is never deleted.
build() {
	of_plugin_build
	[[ $verb != again* ]] || { with_address 5 add pod1 && with_address 5 del pod1; }
	wait_for_exit "$plugin"
	save_steady_state "$work/steady"
}

operation() {
	case $verb in
	again*) with_address 5 add pod1 && ip -n pod1 link delete "$ifname" && with_address 6 add pod1 inject ;;
	*) of_plugin_operation ;;
	esac
}

has_one_address() { [ "$(nft list map inet hawser masq4 | grep -c '10\.99\.0\.[56]')" = 1 ]; }

verify() {
	case $verb:$1 in
	again*:0) with_address 6 call pod1 CHECK && has_one_address ;;
	again*:1) [ ! -s "$work/result" ] || has_one_address ;;
	*) of_plugin_verify "$1" ;;
	esac
}

repair() {
	case $verb in
	again*) with_address 6 of_plugin_repair ;;
	*) of_plugin_repair ;;
	esac
}
