# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # the tests use the variables
#
# test/plugins/firewall.bash - two pods and a neighbour of the host, and helpers for tests of the firewall plugin
load ../lib
load outside

plugins=$HAWSER_BUILD/cni

# The host, 192.0.2.1 and fd99::1, forwards between its pods and a neighbour, "outside".
setup() {
	need ip jq nft iptables ip6tables python3
	# duplicate address detection takes longer than the timeout of reaches()
	sysctl -qw net.ipv6.conf.default.accept_dad=0
	connect_outside
	ip -n outside route add default via 192.0.2.1
	ip -n outside route add default via fd99::1
	export CNI_PATH=$plugins:$GO_PLUGINS
	unset DBUS_SYSTEM_BUS_ADDRESS
}

teardown() {
	local link tables
	delete_pods
	for link in $(ip -j link show type bridge | jq -r '.[].ifname'); do ip link del "$link"; done
	rm -rf /run/hawser /var/lib/cni/networks /tmp/result.*
	[ ! -e /tmp/bus.pids ] || { xargs kill </tmp/bus.pids; rm /tmp/bus.pids; }
	for tables in ip ip6; do
		grep -qs filter /proc/net/${tables}_tables_names || continue
		${tables}tables-legacy -P FORWARD ACCEPT
		${tables}tables-legacy -F
		${tables}tables-legacy -X
	done
	nft flush ruleset
}

# call VERB CONTAINER NETNS CONF: call $plugin, by default our firewall plugin
call() {
	CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=${3:+/run/netns/$3} CNI_IFNAME=eth0 \
		"${plugin:-$plugins/firewall}" <<<"$4"
}

# attach CONTAINER NETNS [NETWORK BRIDGE NUMBER]: attach a pod to a bridge, without the firewall
attach() {
	plugin=$plugins/bridge call ADD "$1" "$2" '{"cniVersion":"1.0.0","name":"'"${3-net}"'","type":"bridge",
		"bridge":"'"${4-br0}"'","isGateway":true,"ipam":{"type":"host-local",
		"ranges":[[{"subnet":"10.'"${5-7}"'.0.0/24"}],[{"subnet":"fd0'"${5-7}"'::/64"}]],
		"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}}' >"/tmp/result.$1"
}

# conf [JSON] [CONTAINER]: print a configuration with these keys and the result of CONTAINER as prevResult
conf() {
	jq -nc --argjson keys "${1:-{\}}" --slurpfile prev "/tmp/result.${2-c1}" '{cniVersion:"1.0.0",name:"net",
		type:"firewall"} + $keys + {prevResult:$prev[0]}'
}
add() { call ADD "$1" "$2" "$(conf "${3-}" "$1")"; } # CONTAINER NETNS [JSON]
check() { call CHECK "$1" "$2" "$(conf "${3-}" "$1")"; }
del() { call DEL "$1" "$2" "$(conf "${3-}" "$1")"; }
pod() { attach "$1" "$2"; add "$1" "$2" "${3-}" >/dev/null; } # CONTAINER NETNS [JSON]
status() { call STATUS "" "" '{"cniVersion":"1.1.0","name":"net","type":"firewall"'"${1:+,$1}"'}'; }
address() { jq -r ".ips[$2].address | split(\"/\")[0]" "/tmp/result.$1"; } # CONTAINER 0|1: v4 or v6

drop_all() {
	iptables -P FORWARD DROP
	ip6tables -P FORWARD DROP
}

# traced CALLS COMMAND...: run COMMAND and trace these system calls of the plugin to /tmp/trace
traced() {
	local calls=$1
	shift
	# shellcheck disable=SC2016 # the script expands it
	printf '#!/bin/sh\nexec strace -f -o /tmp/trace -e trace=%s "%s/${0##*/}"\n' "$calls" "$plugins" >/tmp/firewall
	chmod +x /tmp/firewall
	# (the leak sanitizer does not work under strace)
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 plugin=/tmp/firewall "$@"
}

# reaches FROM TO ADDRESS: succeeds if a packet from netns FROM to ADDRESS in netns TO is answered
# unreachable ...: assert that a packet from FROM does not arrive in TO
reaches() { connect "$1" "$2" "$3" udp 7777; }
unreachable() { blocked "$1" "$2" "$3" udp 7777; }

ours() { hawser-plugin rules --json | jq -c '[.[] | select(.owner) | .set + " " + .element]'; }
forward() { iptables -S FORWARD | sed 1d; }
forward6() { ip6tables -S FORWARD | sed 1d; }
two_rules=$'-A FORWARD -j CNI-ADMIN\n-A FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT'
