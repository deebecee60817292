# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # the tests use the variables
#
# test/plugins/portmap.bash - two pods and a neighbour of the host, and helpers for tests of the portmap plugin
load ../lib
load outside

plugins=$HAWSER_BUILD/cni

# The host has the addresses 192.0.2.1, 192.0.2.3 and fd99::1. Its neighbour "outside" has a route to the
# pods through the host.
setup() {
	need ip jq nft python3
	set_bridge_nf 0
	ip link set lo up
	connect_outside
	ip addr add 192.0.2.3/24 dev wire
	ip -n outside link set lo up
	ip -n outside route add 10.7.0.0/24 via 192.0.2.1
	export CNI_PATH=$plugins
	conf
}

teardown() {
	local link
	delete_pods
	for link in cni0 cni1; do ip link del $link 2>/dev/null || true; done
	rm -rf /run/hawser /var/lib/cni/networks /tmp/net.* /tmp/conf*
	nft flush ruleset
}

# set_bridge_nf 0|1: set whether rules see packets that a bridge forwards between its ports. By default rules
# see these packets if br_netfilter is loaded.
set_bridge_nf() {
	local file
	for file in /proc/sys/net/bridge/bridge-nf-call-ip{,6}tables; do
		[ ! -e "$file" ] || echo "$1" >"$file"
	done
}

tcp='{"hostPort":8080,"containerPort":80,"protocol":"tcp"}'
udp='{"hostPort":8080,"containerPort":80,"protocol":"udp"}'

# conf [JSON]: write a portmap configuration with these keys
conf() { jq -c '{cniVersion:"1.1.0",name:"net",type:"portmap"} + .' <<<"${1-{\}}" >/tmp/conf; }

call() { # PLUGIN VERB CONTAINER NETNS CONF
	CNI_COMMAND=$2 CNI_CONTAINERID=$3 CNI_NETNS=${4:+/run/netns/$4} CNI_IFNAME=${ifname-eth0} "$plugins/$1" <<<"$5"
}

# pod CONTAINER NETNS: attach a pod to a bridge; the first pod gets 10.7.0.2, the second one 10.7.0.3
pod() {
	call bridge ADD "$1" "$2" '{"cniVersion":"1.1.0","name":"net","type":"bridge","isGateway":true,
		"ipam":{"type":"host-local","ranges":[[{"subnet":"10.7.0.0/24"}],[{"subnet":"fd07::/64"}]],
		"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}}' >"/tmp/net.$1"
}

# second VERB CONTAINER [MAPPING...]: call bridge for the container's eth1 on a second network; with mappings,
# call portmap for it
second() {
	local network='{"cniVersion":"1.1.0","name":"net2","type":"bridge","bridge":"cni1","isGateway":true,
		"ipam":{"type":"host-local","subnet":"10.8.0.0/24"}}'
	[ $# -gt 2 ] || { ifname=eth1 call bridge "$1" "$2" "$(netns "$2")" "$network" >"/tmp/net.$2.2"; return; }
	jq -c '.name = "net2"' /tmp/conf >/tmp/conf.2
	ifname=eth1 call portmap "$1" "$2" "$(netns "$2")" "$(conf=/tmp/conf.2 prev=/tmp/net.$2.2 with "${@:2}")"
}

# with CONTAINER MAPPING...: print the configuration with the container's result and these mappings
with() {
	local container=$1
	shift
	jq -c --slurpfile prev "${prev-/tmp/net.$container}" --argjson maps "[$(IFS=,; echo "$*")]" \
		'.prevResult = $prev[0] | .runtimeConfig.portMappings = $maps' "${conf-/tmp/conf}"
}
netns() { if [ "$1" = c2 ]; then echo two; else echo one; fi; }
add() { call portmap ADD "$1" "$(netns "$1")" "$(with "$@")"; } # CONTAINER MAPPING...
del() { call portmap DEL "$1" "$(netns "$1")" "$(with "$@")"; }
check() { call portmap CHECK "$1" "$(netns "$1")" "$(with "$@")"; }

# shellcheck disable=SC2154 # output is that of run
code() { [ "$(jq .code <<<"$output")" = "$1" ]; }

# seen FROM TO ADDRESS PROTOCOL [PORT [POD-PORT]]: print the source address that a server in TO sees when FROM
# connects to ADDRESS
# unseen ...: assert that the server in TO receives nothing
seen() { connect "$1" "$2" "$3" "$4" "${5-8080}" "${6-80}"; }
unseen() { blocked "$1" "$2" "$3" "$4" "${5-8080}" "${6-80}"; }

# ours: print all elements that have an owner, except those of near4 and near6
ours() { hawser-plugin rules --json | jq -c '[.[] | select(.owner and (.set | startswith("near") | not)) | .set + " " + .element]'; }
# near: print the pods in near4 and near6
near() { hawser-plugin rules --json | jq -c '[.[] | select(.set | startswith("near")) | .element | split(" ")[0]]'; }
# owned_ports: print the IPv4 mappings of all pods
owned_ports() { ours | jq -r '.[] | select(test("^(any)?port4"))' | sort | paste -sd ' '; }
# sharing: print how many containers have attachments that share ports
sharing() { ours | jq 'map(select(startswith("sharing"))) | length'; }
