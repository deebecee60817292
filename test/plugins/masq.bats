#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ipMasq of bridge and ptp: which source address a server sees, with real sockets in namespaces; what
# CHECK finds and `hawser-plugin repair` restores; rules of upstream's plugins; macspoofchk.
bats_require_minimum_version 1.5.0
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
	local link netns
	for link in $(ip -j link show type veth | jq -r '.[].ifname'); do ip link del "$link" || true; done
	ip link del cni0 2>/dev/null || true
	for netns in $(ip netns list | cut -d ' ' -f 1); do ip netns del "$netns"; done
	rm -rf /run/hawser /var/lib/cni/networks
	nft flush ruleset
}

# ---- helpers -------------------------------------------------------------------------

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
seen() {
	rm -f /tmp/seen
	ip netns exec "$2" timeout 30 python3 -c '
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family, socket.SOCK_STREAM if sys.argv[2] == "tcp" else socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], 7777))
if sys.argv[2] == "tcp":
    s.listen()
print("ready", flush=True)
if sys.argv[2] == "tcp":
    connection, source = s.accept()
    connection.sendall(b"hello")
else:
    _, source = s.recvfrom(9)
    s.sendto(b"hello", source)
print(source[0])' "$3" "$4" >/tmp/seen &
	wait_until has_line ready /tmp/seen
	ip netns exec "$1" timeout 20 python3 -c '
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family, socket.SOCK_STREAM if sys.argv[2] == "tcp" else socket.SOCK_DGRAM)
s.settimeout(15)
s.connect((sys.argv[1], 7777))
s.send(b"x")
assert s.recv(9) == b"hello"' "$3" "$4" || { kill $!; return 1; }
	wait $!
	tail -n 1 /tmp/seen
}

# packet FROM ADDRESS: send one UDP packet from netns FROM, and print its source address as seen in netns
# outside; nothing if the packet does not arrive
packet() {
	rm -f /tmp/seen
	ip netns exec outside timeout 20 python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x800))
print("ready", flush=True)
while True:
    data = s.recv(99)
    if data[9] == 17 and data[22:24] == b"\x1e\x61":
        print(socket.inet_ntoa(data[12:16]), flush=True)
        break' >/tmp/seen &
	wait_until has_line ready /tmp/seen
	ip netns exec "$1" python3 -c '
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

# ---- traffic ---------------------------------------------------------------------------

# traffic TYPE: assert that an outside server sees the host's address, and pods see each other's addresses
traffic() {
	local proto
	conf "$1"
	add c1 one
	add c2 two
	for proto in tcp udp; do
		[ "$(seen one outside 192.0.2.2 $proto)" = 192.0.2.1 ]
		[ "$(seen one outside fd99::2 $proto)" = fd99::1 ]
		[ "$(seen one two "$(address c2 0)" $proto)" = "$(address c1 0)" ]
		[ "$(seen one two "$(address c2 1)" $proto)" = "$(address c1 1)" ]
	done
	check
	del c1 one
	del c2 two
	[ "$(ours)" = "[]" ]
}

@test "masq: bridge: an outside server sees the host's address, and pods see each other's addresses" {
	traffic bridge
}

@test "masq: ptp: an outside server sees the host's address, and pods see each other's addresses" {
	traffic ptp
}

@test "masq: after DEL the pod's address is no longer masqueraded, and those of other pods still are" {
	conf bridge
	add c1 one
	add c2 two
	[ "$(packet one 192.0.2.2)" = 192.0.2.1 ]
	call DEL c1 "" "$(</tmp/conf)"
	[ "$(elements masq4)" = '["10.7.0.3"]' ]
	[ "$(elements masq6)" = '["fd07::3"]' ]
	conf bridge '{"ipMasq":false}'
	add c1 one
	[ "$(packet one 192.0.2.2)" = "$(address c1 0)" ]
	[ "$(packet two 192.0.2.2)" = 192.0.2.1 ]
}

# route_multicast LINK SOURCE GROUP: route one multicast group from LINK to wire, for ten seconds
route_multicast() {
	python3 -c '
import signal, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
s.setsockopt(socket.IPPROTO_IP, 200, 1)
for vif, name in enumerate((sys.argv[1], "wire")):
    s.setsockopt(socket.IPPROTO_IP, 202, struct.pack("=HBBII4x", vif, 8, 1, 0, socket.if_nametoindex(name)))
s.setsockopt(socket.IPPROTO_IP, 204, socket.inet_aton(sys.argv[2]) + socket.inet_aton(sys.argv[3]) +
             struct.pack("=H32s2xIIIi", 0, bytes([0, 1]) + bytes(30), 0, 0, 0, 0))
print("ready", flush=True)
signal.pause()' "$1" "$2" "$3" >/tmp/router 3>&- &
	router=$!
	wait_until eval "has_line ready /tmp/router || ! kill -0 $router"
	has_line ready /tmp/router || skip "the kernel does not route multicast"
}

@test "masq: multicast packets keep their source address" {
	conf ptp # (the kernel itself does not change multicast from a bridge)
	add c1 one
	route_multicast "$(jq -r '.interfaces[0].name' /tmp/result.c1)" "$(address c1 0)" 239.1.1.1
	[ "$(packet one 239.1.1.1)" = "$(address c1 0)" ]
	[ "$(packet one 192.0.2.2)" = 192.0.2.1 ]
	kill $router
}

# ---- elements ------------------------------------------------------------------------------

@test "masq: there is one element per address and one chain per network, with any backend" {
	for backend in '' nftables iptables; do
		conf bridge "{\"ipMasqBackend\":\"$backend\"}"
		add c1 one
		add c2 two
		[ "$(elements masq4)" = '["10.7.0.2","10.7.0.3"]' ]
		[ "$(networks)" = 2 ]
		[ "$(nft list table inet hawser | grep -c 'ip daddr 10.7.0.0/24 return')" = 1 ]
		del c1 one
		del c2 two
		rm -r /var/lib/cni/networks
	done
	conf bridge '{"ipMasqBackend":"pf"}'
	run call ADD c1 one "$(</tmp/conf)"
	fails_with 'unknown ipmasq backend "pf"'
	[ "$(jq .code <<<"$output")" = 7 ]
	# the comment of an element is a hash: the ruleset contains no names that the runtime has chosen
	conf bridge
	add c1 one
	nft list map inet hawser masq4 | grep -qE '10\.7\.0\.2 comment "[0-9a-f]{16}"'
	[ -z "$(nft list ruleset | grep -E 'c1|eth0|"net"')" ]
}

@test "masq: ADD takes over an address of another pod, whose DEL then keeps the element" {
	static='{"ipam":{"type":"static","addresses":[{"address":"10.7.0.9/24","gateway":"10.7.0.1"}],
		"routes":[{"dst":"0.0.0.0/0"}]}}'
	conf bridge "$static"
	add c1 one
	ip netns del one
	add c2 two
	[ "$(seen two outside 192.0.2.2 tcp)" = 192.0.2.1 ]
	call DEL c1 "" "$(</tmp/conf)"
	[ "$(elements masq4)" = '["10.7.0.9"]' ]
	[ "$(seen two outside 192.0.2.2 udp)" = 192.0.2.1 ]
	del c2 two
	[ "$(ours)" = "[]" ]
}

@test "masq: with overlapping networks, each pod uses the chain of its own network" {
	conf bridge '{"ipam":{"type":"host-local","subnet":"10.7.0.0/24","routes":[{"dst":"0.0.0.0/0"}]}}'
	add c1 one
	ip addr add 10.7.9.1/24 dev wire
	ip -n outside addr add 10.7.9.2/24 dev eth0
	[ "$(packet one 10.7.9.2)" = 10.7.9.1 ]
	cp /tmp/conf /tmp/narrow
	conf ptp '{"ipam":{"type":"host-local","subnet":"10.7.0.0/16","rangeStart":"10.7.77.77","routes":[{"dst":"0.0.0.0/0"}]},"name":"wide"}'
	add c2 two
	[ "$(networks)" = 2 ]
	[ "$(packet two 10.7.9.2)" = "$(address c2 0)" ]
	[ "$(packet two 192.0.2.2)" = 192.0.2.1 ]
	[ "$(packet one 10.7.9.2)" = 10.7.9.1 ]
	check_narrow() { plugin=$plugins/bridge CNI_COMMAND=CHECK CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth0 \
		"$plugins/bridge" <<<"$(jq -c --slurpfile prev /tmp/result.c1 '.prevResult = $prev[0]' /tmp/narrow)"; }
	check_narrow
	del c2 two
	[ "$(packet one 10.7.9.2)" = 10.7.9.1 ]
	check_narrow
}

@test "masq: one pod may have addresses of overlapping networks" {
	conf bridge '{"isGateway":false,"ipam":{"type":"static","addresses":[{"address":"10.7.0.5/24"},{"address":"10.7.1.5/16"},
		{"address":"10.7.0.6/24"},{"address":"fd07::5/64"},{"address":"fd07:0:0:1::5/48"}]}}'
	add c1 one
	[ "$(elements masq4)" = '["10.7.0.5","10.7.0.6","10.7.1.5"]' ]
	[ "$(networks)" = 4 ]
	check
	nft flush ruleset
	hawser-plugin repair
	check
	del c1 one
	[ "$(ours)" = "[]" ]
}

@test "masq: GC deletes the elements of invalid attachments" {
	conf bridge
	add c1 one
	add c2 two
	call GC "" "" "$(jq -c '."cni.dev/valid-attachments" = [{containerID:"c2",ifname:"eth0"}]' /tmp/conf)"
	[ "$(elements masq4)" = '["10.7.0.3"]' ]
}

@test "masq: forty concurrent first ADDs, then forty DELs, leave one copy of the rules and no elements" {
	conf ptp
	for i in {1..40}; do ip netns add "p$i"; done
	for i in {1..40}; do
		add "c$i" "p$i" &
		adds[i]=$!
	done
	for i in {1..40}; do wait "${adds[i]}" || { cat "/tmp/result.c$i"; false; }; done
	[ "$(elements masq4 | jq length)" = 40 ]
	[ "$(elements masq6 | jq length)" = 40 ]
	for i in {1..40}; do
		del "c$i" "p$i" &
		dels[i]=$!
	done
	for i in {1..40}; do wait "${dels[i]}"; done
	[ "$(ours)" = "[]" ]
	[ "$(nft list chain inet hawser guard | grep -c drop)" = 1 ]
}

# ---- CHECK and repair ----------------------------------------------------------------------

@test "masq: CHECK finds flushed rules and chains and a missing element; repair restores them" {
	conf bridge '{"macspoofchk":true}'
	add c1 one
	before=$(nft list ruleset)
	check
	for damage in "flush ruleset" "flush table inet hawser" "delete table bridge hawser" \
		"delete element inet hawser masq4 { 10.7.0.2 }" "delete element inet hawser masq6 { fd07::2 }" \
		"flush chain inet hawser $(nft list map inet hawser masq4 | grep -o 'masq_[0-9a-f]*')" \
		"flush chain inet hawser pods" "flush chain inet hawser guard" "flush chain inet hawser hairpin" \
		"flush set bridge hawser mac_ok" "flush chain bridge hawser prerouting"; do
		nft "$damage"
		run check
		fails_with "*hawser-plugin repair restores *"
		run -0 hawser-plugin repair
		[ "$output" = "rules of 1 attachment restored" ]
		check
		[ "$(nft list ruleset)" = "$before" ] || diff <(nft list ruleset) - <<<"$before"
	done
	[ "$(seen one outside 192.0.2.2 tcp)" = 192.0.2.1 ]
}

@test "masq: repair restores the elements of every finished ADD, and not those of unfinished ADDs" {
	conf bridge
	add c1 one
	conf ptp
	add c2 two
	before=$(ours)
	nft flush ruleset
	run -0 hawser-plugin repair
	[ "$output" = "rules of 2 attachments restored" ]
	[ "$(ours)" = "$before" ]
	run -0 hawser-plugin repair
	[ "$(ours)" = "$before" ]
	record=$(grep -l '"c2"' -r /run/hawser/attachments/ptp)
	jq -c 'del(.finished)' "$record" >/tmp/record
	cp /tmp/record "$record"
	nft flush ruleset
	run -0 hawser-plugin repair
	[ "$output" = "rules of 1 attachment restored" ]
	[ "$(ours)" = '["masq4 10.7.0.2","masq6 fd07::2"]' ]
}

@test "masq: repair keeps the owner of an address that is also in records of dead pods" {
	static='{"ipam":{"type":"static","addresses":[{"address":"10.7.0.9/24"}]},"isGateway":false}'
	for i in {1..6}; do # several pods, because the order of directory entries is random
		conf bridge "$static"
		add "dead$i" one
		ip netns del one
		ip netns add one
	done
	conf ptp "$(jq -c '.ipam.addresses[0].gateway = "10.7.0.1"' <<<"$static")"
	add c2 two
	hawser-plugin rules | grep -qE '^inet +masq4 +10\.7\.0\.9 .*c2 eth0 of network net$'
	for damage in "flush ruleset" "flush table inet hawser" "flush map inet hawser masq4"; do
		nft "$damage"
		hawser-plugin repair
		hawser-plugin rules | grep -qE '^inet +masq4 +10\.7\.0\.9 .*c2 eth0 of network net$'
	done
	conf bridge "$static"
	for i in {1..6}; do call DEL "dead$i" "" "$(</tmp/conf)"; done
	[ "$(elements masq4)" = '["10.7.0.9"]' ]
}

@test "masq: CHECK without a record fails, unless upstream's rules exist" {
	for type in bridge ptp; do
		conf $type
		add c1 one
		mv /run/hawser/attachments /run/hawser/lost
		run check
		fails_with "no attachment record, and no rule of another plugin masquerades 10.7.0.2"
		nft -f - <<-END
			table inet cni_plugins_masquerade {
				chain masq_checks {
					ip saddr == 10.7.0.2 masquerade comment "$(printf net | sha512sum | cut -c -16)-$(printf eth0:c1 | sha512sum | cut -c -16), net: net, if: eth0, id: c1"
				}
			}
		END
		check
		mv /run/hawser/lost /run/hawser/attachments
		del c1 one
		rm -r /var/lib/cni/networks
		nft flush ruleset
	done
	conf bridge '{"macspoofchk":true,"ipMasq":false,"ipam":{}}'
	add c1 one
	mv /run/hawser/attachments /run/hawser/lost
	run check
	fails_with "no attachment record, and no rule of another plugin checks the MAC address"
	nft 'table bridge nat { chain cni-br-iface-c1-eth0 { drop; }; }'
	check
}

@test "masq: DEL works with container IDs longer than a chain name" {
	conf bridge '{"macspoofchk":true}'
	for length in 200 240 250 255 400 1000; do
		id=$(printf 'c%.0s' $(seq $length))
		plugin=$plugins/bridge call DEL "$id" "" "$(</tmp/conf)"
	done
}

@test "masq: DEL without CAP_NET_ADMIN fails, and can be repeated with it" {
	conf bridge
	add c1 one
	CNI_COMMAND=DEL CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth0 run -1 setpriv \
		--bounding-set -net_admin --inh-caps -net_admin "$plugins/bridge" </tmp/conf
	fails_with "*Operation not permitted"
	[ "$(elements masq4)" = '["10.7.0.2"]' ]
	del c1 one
	[ "$(ours)" = "[]" ]
}

@test "masq: CHECK finds an element with another owner" {
	conf bridge
	add c1 one
	nft 'delete element inet hawser masq4 { 10.7.0.2 }; add element inet hawser masq4 { 10.7.0.2 : continue }'
	run check
	fails_with "nftables set masq4: element mismatch: got 10.7.0.2 : jump masqall (owner none), want 10.7.0.2 * (owner *"
}

@test "masq: ADD restores flushed rules and chains" {
	conf bridge
	add c1 one
	for damage in "flush table inet hawser" "flush ruleset"; do
		nft "$damage"
		add c2 two
		[ "$(nft list chain inet hawser pods | grep -c masqall)" = 2 ]
		[ "$(nft list chain inet hawser guard | grep -c drop)" = 1 ]
		[ "$(seen two outside 192.0.2.2 tcp)" = 192.0.2.1 ]
		nft "$damage"
		del c2 two
	done
	nft flush ruleset
	add c2 two
	[ "$(seen two outside 192.0.2.2 tcp)" = 192.0.2.1 ]
	del c1 one
	del c2 two
}

@test "masq: rules of other programs are not changed" {
	nft 'table inet other { chain postrouting { type nat hook postrouting priority 90; ip saddr 10.9.0.0/16 accept; }; }'
	nft list table inet other >/tmp/other
	conf bridge
	add c1 one
	check
	nft list table inet other | diff /tmp/other -
	del c1 one
	hawser-plugin uninstall
	nft list table inet other | diff /tmp/other -
}

@test "rules: lists each element with its pod" {
	conf bridge '{"macspoofchk":true}'
	add c1 one
	host=$(jq -r '.interfaces[1].name' /tmp/result.c1)
	mac=$(jq -r '.interfaces[2].mac' /tmp/result.c1)
	[ "$(ours)" = '["mac_checked '"$host"'","mac_ok '"$host . $mac"'","masq4 10.7.0.2","masq6 fd07::2"]' ]
	[ "$(hawser-plugin rules --json | jq -c '[.[] | select(.owner) | .containerID + " " + .ifname + " " + .network] | unique')" = '["c1 eth0 net"]' ]
	hawser-plugin rules | grep -qE '^inet   masq4 +10\.7\.0\.2 : jump masq_[0-9a-f]{16} +c1 eth0 of network net$'
}

@test "uninstall: refuses to remove tables that pods use, then removes them" {
	conf ptp
	add c1 one
	run -1 hawser-plugin uninstall
	[[ $output == *"table inet hawser is in use: set masq4 has 10.7.0.2"* ]]
	[ "$(seen one outside 192.0.2.2 tcp)" = 192.0.2.1 ]
	del c1 one
	run -0 hawser-plugin uninstall
	[[ $output == *"nftables table inet hawser removed"* ]]
	[ -z "$(nft list ruleset)" ]
	[ ! -e /run/hawser ]
}

@test "masq: without libnftables ADD and STATUS fail, unless the rules are already loaded" {
	library=$(ldconfig -p | awk '$1 == "libnftables.so.1" { print $NF; exit }')
	for type in bridge ptp; do
		conf $type
		call STATUS "" "" "$(</tmp/conf)"
		: >/tmp/empty
		mount --bind /tmp/empty "$library"
		run call STATUS "" "" "$(</tmp/conf)"
		fails_with "load libnftables: *libnftables.so.1: *"
		[ "$(jq .code <<<"$output")" = 50 ]
		run call ADD c1 one "$(</tmp/conf)"
		fails_with "load the rules of nftables table inet hawser: load libnftables: *libnftables.so.1: *"
		[ -z "$(find /run/hawser/attachments -type f)" ]
		umount "$library"
		add c1 one
		mount --bind /tmp/empty "$library"
		call STATUS "" "" "$(</tmp/conf)"
		add c2 two
		del c1 one
		del c2 two
		umount "$library"
		hawser-plugin uninstall
	done
}

# ---- upstream's plugins ----------------------------------------------------------------------------

# upstream_rules: count the iptables rules of upstream's plugin, IPv4 and IPv6
upstream_rules() {
	iptables-save -t nat | grep -c 'CNI-' || true
	ip6tables-save -t nat | grep -c 'CNI-' || true
}

@test "masq: DEL removes upstream's iptables rules of the pod, and keeps those of other pods" {
	need iptables ip6tables
	need_go_plugins bridge host-local
	conf bridge '{"cniVersion":"1.0.0"}'
	plugin=$GO_PLUGINS/bridge add c2 two
	before=$(upstream_rules)
	iptables -t nat -A POSTROUTING -s 10.99.0.0/16 -j ACCEPT
	plugin=$GO_PLUGINS/bridge add c1 one
	[ "$(upstream_rules)" != "$before" ]
	del c1 one
	[ "$(upstream_rules)" = "$before" ]
	iptables -t nat -C POSTROUTING -s 10.99.0.0/16 -j ACCEPT
	plugin=$GO_PLUGINS/bridge del c2 two
	[ "$(upstream_rules)" = $'0\n0' ]
}

@test "masq: DEL removes upstream's nftables rules of the pod, and keeps those of other pods" {
	conf bridge
	nft -f - <<-END
		table inet cni_plugins_masquerade {
			chain masq_checks {
				ip saddr == 10.7.0.2 ip daddr != 10.7.0.0/24 masquerade comment "$(printf net | sha512sum | cut -c -16)-$(printf eth0:c1 | sha512sum | cut -c -16), net: net, if: eth0, id: c1"
				ip saddr == 10.7.0.3 ip daddr != 10.7.0.0/24 masquerade comment "$(printf net | sha512sum | cut -c -16)-$(printf eth0:c2 | sha512sum | cut -c -16), net: net, if: eth0, id: c2"
			}
			chain postrouting { type nat hook postrouting priority srcnat; goto masq_checks; }
		}
	END
	call DEL c1 "" "$(</tmp/conf)"
	[ -z "$(nft list ruleset | grep 'id: c1')" ]
	nft list ruleset | grep -q 'id: c2'
	call DEL c1 "" "$(</tmp/conf)"
	call DEL c2 "" "$(</tmp/conf)"
	[ -z "$(nft list ruleset | grep 'id: c2')" ]
}

# ---- macspoofchk -------------------------------------------------------------------------------

@test "macspoofchk: frames with another source MAC address are dropped" {
	conf bridge '{"macspoofchk":true}'
	add c1 one
	add c2 two
	mac=$(jq -r '.interfaces[2].mac' /tmp/result.c1)
	[ "$(seen one two "$(address c2 0)" tcp)" = "$(address c1 0)" ]
	ip -n one link set eth0 address 02:00:00:00:00:07
	run ! seen one two "$(address c2 0)" udp
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
