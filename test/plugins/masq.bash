# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # the tests use the variables
#
# test/plugins/masq.bash - two pods and a neighbour of the host, and helpers for tests of ipMasq and macspoofchk
load ../lib
load outside

plugins=$HAWSER_BUILD/cni

# The host, 192.0.2.1 and fd99::1, has a neighbour, "outside", without routes to pods.
setup() {
	need ip jq nft python3
	connect_outside
	export CNI_PATH=$plugins:$GO_PLUGINS
}

teardown() {
	delete_pods
	ip link del cni0 2>/dev/null || true
	rm -rf /run/hawser /var/lib/cni/networks
	nft flush ruleset
}

both='{"type":"host-local","ranges":[[{"subnet":"10.7.0.0/24"}],[{"subnet":"fd07::/64"}]],
	"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}'

# conf TYPE [JSON]: write a configuration of this plugin, with ipMasq and these keys
conf() {
	jq -c --arg type "$1" --argjson ipam "$both" '{cniVersion:"1.1.0",name:"net",type:$type,isGateway:true,
		ipMasq:true,ipam:$ipam} + .' <<<"${2-{\}}" >/tmp/conf
	plugin=$plugins/$1
}

# call VERB CONTAINER NETNS CONF: call the plugin that CONF names
call() {
	CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=${3:+/run/netns/$3} CNI_IFNAME=eth0 "$plugin" <<<"$4"
}
add() { call ADD "$1" "$2" "$(</tmp/conf)" >"/tmp/result.$1"; } # CONTAINER NETNS
with_result() { jq -c --slurpfile prev "/tmp/result.$1" '.prevResult = $prev[0]' /tmp/conf; }
check() { call CHECK c1 one "$(with_result c1)"; }
del() { call DEL "$1" "$2" "$(with_result "$1")"; }
address() { jq -r ".ips[$2].address | split(\"/\")[0]" "/tmp/result.$1"; } # CONTAINER 0|1: v4 or v6

# seen FROM TO ADDRESS PROTOCOL: connect from netns FROM to ADDRESS in netns TO, and print the source address
# that the server sees
seen() { connect "$@" 7777; }

# packet FROM ADDRESS: send one UDP packet from netns FROM, and print its source address as seen in netns
# outside; nothing if the packet does not arrive
packet() {
	rm -f /tmp/seen
	ip netns exec outside timeout 60 python3 -IS -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x800))
print("ready", flush=True)
while True:
    data = s.recv(99)
    if data[9] == 17 and data[22:24] == b"\x1e\x61":
        print(socket.inet_ntoa(data[12:16]), flush=True)
        break' >/tmp/seen &
	wait_until has_line ready /tmp/seen
	ip netns exec "$1" python3 -IS -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 9)
s.sendto(b"x", (sys.argv[1], 7777))' "$2"
	wait $! || true
	sed 1d /tmp/seen
}

# elements MAP: list the keys of MAP; ours: list all elements that have an owner
elements() { hawser-plugin rules --json | jq -c --arg map "$1" '[.[] | select(.set == $map) | .element | split(" : ")[0]] | sort'; }
ours() { hawser-plugin rules --json | jq -c '[.[] | select(.owner) | .set + " " + (.element | split(" : ")[0])] | sort'; }
# networks: count the masquerading chains; each network has one
networks() { nft list table inet hawser | grep -c 'chain masq_'; }
