#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The portmap plugin: forwarding with all options, ownership of host ports, CHECK, repair, and removal of
# rules of upstream's plugin. Connectivity in all directions is in test_traffic.py.
bats_require_minimum_version 1.5.0
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
	local link netns
	for link in $(ip -j link show type veth | jq -r '.[].ifname'); do ip link del "$link" || true; done
	for link in cni0 cni1; do ip link del $link 2>/dev/null || true; done
	for netns in $(ip netns list | cut -d ' ' -f 1); do ip netns del "$netns"; done
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

# ---- helpers -------------------------------------------------------------------------

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

code() { [ "$(jq .code <<<"$output")" = "$1" ]; }

cat >"$BATS_FILE_TMPDIR/serve" <<'END'
import socket, sys
kind = {"tcp": (socket.SOCK_STREAM, 0), "udp": (socket.SOCK_DGRAM, 0), "sctp": (socket.SOCK_STREAM, 132)}[sys.argv[2]]
s = socket.socket(socket.AF_INET6, *kind)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("::", int(sys.argv[1])))
s.settimeout(float(sys.argv[3]) + 0.3)
if sys.argv[2] != "udp":
    s.listen()
print("ready", flush=True)
if sys.argv[2] != "udp":
    connection, source = s.accept()
    connection.sendall(b"hello")
else:
    _, source = s.recvfrom(9)
    s.sendto(b"hello", source)
print(source[0].replace("::ffff:", ""))
END
cat >"$BATS_FILE_TMPDIR/ask" <<'END'
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
kind = {"tcp": (socket.SOCK_STREAM, 0), "udp": (socket.SOCK_DGRAM, 0), "sctp": (socket.SOCK_STREAM, 132)}[sys.argv[3]]
s = socket.socket(family, *kind)
s.settimeout(float(sys.argv[4]))
s.connect((sys.argv[1], int(sys.argv[2])))
s.send(b"x")
assert s.recv(9) == b"hello"
END

in_netns() { if [ "$1" = host ]; then "${@:2}"; else ip netns exec "$@"; fi; }

# seen FROM TO ADDRESS PROTOCOL [PORT [POD-PORT]]: print the source address that a server in TO sees when FROM
# connects to ADDRESS
# unseen ...: assert that the server in TO receives nothing
seconds=8
seen() {
	local status=0
	rm -f /tmp/seen
	in_netns "$2" timeout 20 python3 -IS "$BATS_FILE_TMPDIR/serve" "${6-80}" "$4" "$seconds" >/tmp/seen 2>&1 &
	until [ -s /tmp/seen ]; do sleep 0.01; done
	in_netns "$1" timeout 20 python3 -IS "$BATS_FILE_TMPDIR/ask" "$3" "${5-8080}" "$4" "$seconds" 2>/dev/null || status=1
	wait $! || true # the next server uses the same port
	sed 1d /tmp/seen
	return $status
}
unseen() { ! seconds=0.7 seen "$@"; }

# ours: print all elements that have an owner, except those of near4 and near6
ours() { hawser-plugin rules --json | jq -c '[.[] | select(.owner and (.set | startswith("near") | not)) | .set + " " + .element]'; }
# near: print the pods in near4 and near6
near() { hawser-plugin rules --json | jq -c '[.[] | select(.set | startswith("near")) | .element | split(" ")[0]]'; }

# ---- ADD ---------------------------------------------------------------------------------

@test "portmap: ADD returns prevResult, and the host port reaches the pod" {
	pod c1 one
	add c1 "$tcp" "$udp" >/tmp/result
	diff <(jq -S . /tmp/result) <(jq -S . /tmp/net.c1)
	for proto in tcp udp; do
		[ "$(seen outside one 192.0.2.1 $proto)" = 192.0.2.2 ]
		[ "$(seen outside one 192.0.2.3 $proto)" = 192.0.2.2 ]
		[ "$(seen outside one fd99::1 $proto)" = fd99::2 ]
	done
	del c1 "$tcp" "$udp"
	unseen outside one 192.0.2.1 tcp
	[ "$(ours)" = "[]" ]
}

@test "portmap: SCTP host ports work" {
	python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)' || skip "this kernel has no SCTP"
	pod c1 one
	add c1 '{"hostPort":9,"containerPort":80,"protocol":"sctp"}'
	[ "$(seen outside one 192.0.2.1 sctp 9)" = 192.0.2.2 ]
}

@test "portmap: without mappings ADD changes nothing and keeps no record" {
	pod c1 one
	add c1 >/tmp/result
	diff <(jq -S . /tmp/result) <(jq -S . /tmp/net.c1)
	check c1
	[ -z "$(nft list tables)" ]
	del c1
	[ ! -e /run/hawser/attachments/portmap ] || [ -z "$(find /run/hawser/attachments/portmap -type f ! -name lock)" ]
}

@test "portmap: ADD of a pod adds elements, but no rules" {
	pod c1 one
	add c1 "$tcp"
	nft list ruleset | grep -cE '^\s+(chain|meta|ct|ip|dnat|fib)' >/tmp/lines
	[ "$(ours)" = '["anyport4 tcp . 8080 : 10.7.0.2 . 80","anyport6 tcp . 8080 : fd07::2 . 80","anymark4 tcp . 8080 : jump snat13","anymark6 tcp . 8080 : jump snat13"]' ]
	[ "$(near)" = '["10.7.0.2","fd07::2"]' ]
	pod c2 two
	add c2 '{"hostPort":81,"containerPort":81,"protocol":"sctp"}' '{"hostPort":82,"containerPort":81,"protocol":"UDP"}'
	[ "$(nft list ruleset | grep -cE '^\s+(chain|meta|ct|ip|dnat|fib)')" = "$(cat /tmp/lines)" ]
	hawser-plugin rules | grep -qE '^inet +anyport4 +udp \. 82 : 10\.7\.0\.3 \. 81 +c2$'
	! nft list ruleset | grep -wE 'c1|c2|"net"' || false
	del c1 "$tcp"
	[ "$(near)" = '["10.7.0.3","fd07::3"]' ]
}

@test "portmap: a pod can have a thousand ports" {
	pod c1 one
	jq -c '.prevResult = $prev[0] | .runtimeConfig.portMappings = [range(1000) |
		{hostPort: (. + 20000), containerPort: (. + 1), protocol: ("tcp", "udp")}]' \
		--slurpfile prev /tmp/net.c1 /tmp/conf >/tmp/conf.many
	call portmap ADD c1 one "$(</tmp/conf.many)" >/dev/null
	[ "$(ours | jq length)" = 8000 ]
	call portmap CHECK c1 one "$(</tmp/conf.many)"
	[ "$(seen outside one 192.0.2.1 udp 20999 1000)" = 192.0.2.2 ]
	call portmap DEL c1 one "$(</tmp/conf.many)"
	[ "$(ours)" = "[]" ]
}

@test "portmap: invalid configurations are rejected" {
	pod c1 one
	while IFS='|' read -r keys mapping message; do
		conf "$keys"
		run add c1 "$mapping"
		fails_with "failed to parse config: $message"
		code 7
	done <<-'END'
		{}|{"hostPort":0,"containerPort":80,"protocol":"tcp"}|Invalid host port number: 0
		{}|{"hostPort":80,"containerPort":-1,"protocol":"tcp"}|Invalid container port number: -1
		{}|{"hostPort":65536,"containerPort":80,"protocol":"tcp"}|Invalid host port number: 65536
		{}|{"hostPort":80,"containerPort":70000,"protocol":"tcp"}|Invalid container port number: 70000
		{}|{"hostPort":80,"containerPort":80,"protocol":"icmp"}|unsupported protocol "icmp" in port mapping: want tcp, udp or sctp
		{}|{"hostPort":80,"containerPort":80}|unsupported protocol "" in port mapping: want tcp, udp or sctp
		{}|{"hostPort":80,"containerPort":80,"protocol":"tcp","hostIP":"nowhere"}|invalid hostIP "nowhere" in port mapping
		{}|{"hostPort":80,"containerPort":80,"protocol":"tcp"},{"hostPort":80,"containerPort":81,"protocol":"TCP"}|host port 80/TCP is mapped to two container ports: 80 and 81
		{}|{"hostPort":80,"containerPort":80,"protocol":"tcp","hostIP":"::"},{"hostPort":80,"containerPort":81,"protocol":"tcp"}|host port 80/tcp is mapped to two container ports: 81 and 80
		{"markMasqBit":32}|{"hostPort":80,"containerPort":80,"protocol":"tcp"}|MasqMarkBit must be between 0 and 31
		{"markMasqBit":-1}|{"hostPort":80,"containerPort":80,"protocol":"tcp"}|MasqMarkBit must be between 0 and 31
		{"markMasqBit":3,"externalSetMarkChain":"X"}|{"hostPort":80,"containerPort":80,"protocol":"tcp"}|Cannot specify externalSetMarkChain and markMasqBit
		{"backend":"magic"}|{"hostPort":80,"containerPort":80,"protocol":"tcp"}|unrecognized backend "magic"
		{"backend":"iptables","conditionsV4":["ip","saddr","10.0.0.1"],"conditionsV6":["meta mark 1"]}|{"hostPort":80,"containerPort":80,"protocol":"tcp"}|iptables backend was requested but configuration contains nftables-specific options [conditionsV4 conditionsV6]
		{"backend":"nftables","externalSetMarkChain":"X","conditionsV4":["-s","10.0.0.1"]}|{"hostPort":80,"containerPort":80,"protocol":"tcp"}|nftables backend was requested but configuration contains iptables-specific options [externalSetMarkChain conditionsV4]
	END
	[ -z "$(nft list tables)" ]
}

@test "portmap: ADD and CHECK need a prevResult" {
	run call portmap ADD c1 one "$(jq -c ".runtimeConfig.portMappings = [$tcp]" /tmp/conf)"
	fails_with "must be called as chained plugin"
	run call portmap CHECK c1 one "$(jq -c ".runtimeConfig.portMappings = [$tcp]" /tmp/conf)"
	fails_with "Required prevResult missing"
}

@test "portmap: a mapping that is listed twice is added once, with either backend" {
	pod c1 one
	for backend in iptables nftables; do
		conf "{\"backend\":\"$backend\"}"
		add c1 "$tcp" "$tcp"
		check c1 "$tcp" "$tcp"
		[ "$(ours | jq length)" = 4 ]
		[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
		del c1 "$tcp"
	done
}

@test "portmap: a mapping for one family that repeats a mapping for both families is added once, in either order" {
	pod c1 one
	every=("$tcp" "${tcp/\}/,\"hostIP\":\"0.0.0.0\"\}}" "${tcp/\}/,\"hostIP\":\"::\"\}}")
	for order in "0 1 2" "1 2 0" "2 0 1"; do
		mappings=()
		for i in $order; do mappings+=("${every[i]}"); done
		add c1 "${mappings[@]}"
		check c1 "${mappings[@]}"
		[ "$(ours | jq length)" = 4 ]
		del c1 "${mappings[@]}"
		[ "$(ours)" = "[]" ]
	done
}

@test "portmap: ports are forwarded to the first address of each family on the pod's own interface" {
	jq -cn '{cniVersion:"1.1.0",interfaces:[{name:"cni0"},{name:"eth0",sandbox:"/run/netns/one"},{name:"net1",sandbox:"/run/netns/one"}],
		ips:[{interface:0,address:"10.9.0.1/24"},{interface:2,address:"10.9.0.2/24"},{interface:1,address:"10.9.0.3/24"},{address:"10.9.0.4/24"},{address:"fd09::4/64"}]}' >/tmp/net.c1
	add c1 "$tcp"
	[ "$(ours | jq -c 'map(select(startswith("anyport")))')" = '["anyport4 tcp . 8080 : 10.9.0.3 . 80","anyport6 tcp . 8080 : fd09::4 . 80"]' ]
}

# ---- host addresses ---------------------------------------------------------------------------

@test "portmap: hostIP selects one address, and 0.0.0.0 or :: selects every address of the family" {
	pod c1 one
	add c1 '{"hostPort":8080,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}' \
		'{"hostPort":8081,"containerPort":80,"protocol":"tcp","hostIP":"0.0.0.0"}' \
		'{"hostPort":8082,"containerPort":80,"protocol":"tcp","hostIP":"::"}' \
		'{"hostPort":8083,"containerPort":80,"protocol":"tcp","hostIP":"fd99::1"}' >/tmp/result
	[ "$(seen outside one 192.0.2.3 tcp)" = 192.0.2.2 ]
	unseen outside one 192.0.2.1 tcp
	unseen outside one fd99::1 tcp
	[ "$(seen outside one 192.0.2.1 tcp 8081)" = 192.0.2.2 ]
	unseen outside one fd99::1 tcp 8081
	[ "$(seen outside one fd99::1 tcp 8082)" = fd99::2 ]
	unseen outside one 192.0.2.1 tcp 8082
	[ "$(seen outside one fd99::1 tcp 8083)" = fd99::2 ]
}

@test "portmap: packets to the same port of other hosts are not forwarded to the pod" {
	pod c1 one
	add c1 "$tcp" "$udp"
	pod c2 two
	for proto in tcp udp; do
		[ "$(seen two outside 192.0.2.2 $proto 8080 8080)" = 10.7.0.3 ]
		[ "$(seen host outside 192.0.2.2 $proto 8080 8080)" = 192.0.2.1 ]
		[ "$(seen outside two 10.7.0.3 $proto 8080 8080)" = 192.0.2.2 ]
	done
}

@test "portmap: a host port on 127.0.0.1 is reachable from the host, but not from pods" {
	pod c1 one
	add c1 "$tcp"
	[ "$(cat /proc/sys/net/ipv4/conf/cni0/route_localnet)" = 1 ]
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
	[ "$(seen host one 127.9.9.9 tcp)" = 10.7.0.1 ]
	ip -n one link set lo up
	ip -n one addr del 127.0.0.1/8 dev lo
	ip -n one route del local 127.0.0.0/8 table local 2>/dev/null || true
	ip netns exec one sysctl -qw net.ipv4.conf.all.route_localnet=1
	ip -n one route add 127.0.0.1 via 10.7.0.1
	unseen one host 127.0.0.1 tcp 7070 7070
}

# ---- masquerading --------------------------------------------------------------------------------

@test "portmap: snat false changes neither source addresses nor route_localnet" {
	conf '{"snat":false}'
	pod c1 one
	add c1 "$tcp"
	[ "$(cat /proc/sys/net/ipv4/conf/cni0/route_localnet)" = 0 ]
	[ "$(ours)" = '["anyport4 tcp . 8080 : 10.7.0.2 . 80","anyport6 tcp . 8080 : fd07::2 . 80"]' ]
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
	unseen host one 127.0.0.1 tcp
}

@test "portmap: with masqAll, all connections to a host port have the host's source address" {
	conf '{"masqAll":true}'
	pod c1 one
	add c1 "$tcp" "$udp"
	for proto in tcp udp; do
		[ "$(seen outside one 192.0.2.1 $proto)" = 10.7.0.1 ]
		[ "$(seen outside one fd99::1 $proto)" = fd07::1 ]
		[ "$(seen outside one 10.7.0.2 $proto 80)" = 192.0.2.2 ]
	done
	check c1 "$tcp" "$udp"
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: connections of a pod to its own or a neighbour's host port have the host's source address" {
	pod c1 one
	pod c2 two
	add c1 "$tcp" "$udp"
	for proto in tcp udp; do
		for from in one two; do
			[ "$(seen $from one 192.0.2.1 $proto)" = 10.7.0.1 ]
			[ "$(seen $from one 10.7.0.1 $proto)" = 10.7.0.1 ]
			[ "$(seen $from one fd99::1 $proto)" = fd07::1 ]
		done
		[ "$(seen two one 10.7.0.2 $proto 80)" = 10.7.0.3 ]
	done
}

@test "portmap: a pod keeps its source address if its network is larger than the target's network and contains it" {
	pod c1 one
	add c1 "$tcp"
	call ptp ADD c2 two '{"cniVersion":"1.1.0","name":"net","type":"ptp","ipam":{"type":"static",
		"addresses":[{"address":"10.7.77.77/16","gateway":"10.7.77.1"}],"routes":[{"dst":"0.0.0.0/0"}]}}' >/tmp/net.c2
	add c2 "${tcp/8080/8081}"
	[ "$(seen two one 192.0.2.1 tcp)" = 10.7.77.77 ]
	[ "$(seen one one 192.0.2.1 tcp)" = 10.7.0.1 ]
	[ "$(seen two two 192.0.2.1 tcp 8081)" = 10.7.77.1 ]
	check c1 "$tcp"
	chain=$(nft list map inet hawser near4 | grep -o 'near_[0-9a-f]*' | head -n 1)
	nft flush chain inet hawser "$chain"
	! { check c1 "$tcp" && check c2 "${tcp/8080/8081}"; } || false
	hawser-plugin repair
	check c1 "$tcp"
	check c2 "${tcp/8080/8081}"
}

@test "portmap: with br_netfilter, hairpinMode lets a pod reach its own host port" {
	[ -e /proc/sys/net/bridge ] || skip "br_netfilter is not loaded"
	set_bridge_nf 1
	pod c1 one
	pod c2 two
	ip link set "$(jq -r '.interfaces[1].name' /tmp/net.c1)" type bridge_slave hairpin on
	add c1 "$tcp"
	for from in one two; do [ "$(seen $from one 192.0.2.1 tcp)" = 10.7.0.1 ]; done
}

@test "portmap: another mark bit works, with and without masqAll, and its chains are created once" {
	pod c1 one
	pod c2 two
	for bit in 0 5 31; do
		conf "{\"markMasqBit\":$bit}"
		add c1 "$tcp"
		check c1 "$tcp"
		[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
		[ "$(seen one one 192.0.2.1 tcp)" = 10.7.0.1 ]
		[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
		conf "{\"markMasqBit\":$bit,\"masqAll\":true}"
		add c2 "${tcp/8080/8081}"
		[ "$(seen outside two 192.0.2.1 tcp 8081)" = 10.7.0.1 ]
		del c1
		del c2
	done
	[ "$(nft list chain inet hawser snatbits | grep -c jump)" = 3 ]
}

@test "portmap: externalSetMarkChain is accepted and ignored: portmap masquerades with its own rules" {
	conf '{"externalSetMarkChain":"KUBE-MARK-MASQ"}'
	pod c1 one
	add c1 "$tcp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
}

# ---- conditions -------------------------------------------------------------------------------------

@test "portmap: conditions in nft and iptables syntax work" {
	pod c1 one
	while IFS='|' read -r conditions outside host; do
		conf "{\"conditionsV4\":$conditions}"
		add c1 "$tcp"
		check c1 "$tcp"
		if [ "$outside" = yes ]; then seen outside one 192.0.2.1 tcp; else unseen outside one 192.0.2.1 tcp; fi
		if [ "$host" = yes ]; then seen host one 192.0.2.1 tcp; else unseen host one 192.0.2.1 tcp; fi
		[ "$(seen outside one fd99::1 tcp)" = fd99::2 ]
		del c1
	done <<-'END'
		["ip","saddr","192.0.2.2"]|yes|no
		["ip saddr != 192.0.2.2"]|no|yes
		["ip saddr { 192.0.2.2, 192.0.2.9 } counter"]|yes|no
		["iifname \"wire\" log prefix \"x\""]|yes|no
		["iifname != \"set\" iifname \"wire\""]|yes|no
		["-s","192.0.2.2"]|yes|no
		["-s","192.0.2.2/31"]|yes|no
		["!","-s","192.0.2.0/31"]|yes|no
		["-s","!","192.0.2.2"]|no|yes
		["-d","192.0.2.1","!","-i","lo"]|yes|yes
		["--destination","192.0.2.3"]|no|no
		["-i","wi+"]|yes|no
		["!","-i","wi+"]|no|yes
		["-o","lo"]|no|yes
		["-s 192.0.2.2","-i wire"]|yes|no
		[""," -s","192.0.2.2 "]|yes|no
		[""," "]|yes|yes
	END
	[ "$(ours)" = "[]" ]
}

@test "portmap: pods with the same conditions share a chain, and pods with different ones do not" {
	pod c1 one
	pod c2 two
	conf '{"conditionsV4":["-s","192.0.2.2"],"conditionsV6":["ip6 saddr fd99::2"]}'
	add c1 "$tcp"
	conf '{"conditionsV4":["ip saddr 192.0.2.2/32"],"conditionsV6":["ip6 saddr fd99::2"]}'
	add c2 "$udp"
	[ "$(nft list chains inet | grep -c cond_)" = 2 ]
	del c2
	conf '{"conditionsV4":["-s","192.0.2.9"]}'
	del c2
	add c2 "$udp"
	[ "$(nft list chains inet | grep -c cond_)" = 3 ]
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
	unseen outside two 192.0.2.1 udp
	[ "$(seen outside two fd99::1 udp)" = fd99::2 ]
}

@test "portmap: unsupported iptables conditions and nft statements are rejected" {
	pod c1 one
	while IFS='|' read -r conditions message; do
		conf "{\"conditionsV4\":$conditions}"
		run add c1 "$tcp"
		fails_with "$message"
		code 7
		run call portmap STATUS "" "" "$(</tmp/conf)"
		[[ $message != failed* ]] || [ "$status" = 1 ]
	done <<-'END'
		["-m","mark","--mark","1"]|failed to parse config: conditionsV4: unsupported iptables condition: only -s, -d, -i and -o, each with a value, are supported; write "-m mark --mark 1" in nft syntax
		["-s"]|failed to parse config: conditionsV4: unsupported iptables condition: only *
		["!"]|failed to parse config: conditionsV4: unsupported iptables condition: only *
		["-s","somewhere"]|failed to parse config: conditionsV4: invalid IPv4 address or network "somewhere" in a condition
		["-s","fd00::1"]|failed to parse config: conditionsV4: invalid IPv4 address or network "fd00::1" in a condition
		["-i","eth0\"; flush ruleset"]|failed to parse config: conditionsV4: invalid interface name *
		["ip saddr 10.0.0.1; flush ruleset"]|failed to parse config: conditionsV4: character ";" is not allowed in a condition: *
		["ip saddr 10.0.0.1\nflush ruleset"]|failed to parse config: conditionsV4: character "?" is not allowed in a condition: *
		["meta mark set 0x1"]|failed to parse config: conditionsV4: statement "set" is not allowed in a condition: *
		["ip saddr vmap { 192.0.2.9 : drop }"]|failed to parse config: conditionsV4: statement "vmap" is not allowed in a condition: *
		["ip","saddr","10.0.0.1","drop"]|conditionsV4 "ip saddr 10.0.0.1 drop": nft: *
		["} flush ruleset {"]|failed to parse config: conditionsV4: unbalanced quotes or braces in a condition: *
		["nonsense"]|conditionsV4 "nonsense": nft: *
	END
	[ "$(ours)" = "[]" ]
	[ -z "$(nft list chains inet | grep cond_)" ]
}

# ---- ownership ----------------------------------------------------------------------------------------

@test "portmap: a host port of another pod is refused, and the error says how to free it" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	run add c2 "$udp" "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, network net; if that container no longer exists, DEL with CNI_CONTAINERID=c1 CNI_IFNAME=eth0, or GC, on network net frees the port"
	[ "$(ours | jq -c 'map(select(startswith("anyport4")))')" = '["anyport4 tcp . 8080 : 10.7.0.2 . 80"]' ]
	ip netns del one
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, network net (its network namespace no longer exists); *"
	call portmap GC "" "" "$(jq -c '."cni.dev/valid-attachments" = [{containerID:"c2",ifname:"eth0"}]' /tmp/conf)"
	add c2 "$tcp"
	[ "$(seen outside two 192.0.2.1 tcp)" = 192.0.2.2 ]
	del c1 "$tcp"
	check c2 "$tcp"
}

@test "portmap: a port on every address conflicts with the same port on one address, in either order" {
	some='{"hostPort":8080,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	run add c2 "$some"
	fails_with "host port 8080/tcp is taken by container c1, *"
	del c1
	add c2 "$some"
	run add c1 "$tcp"
	fails_with "host port 8080/tcp is taken by container c2, *"
	run add c1 "$some"
	fails_with "host port 8080/tcp is taken by container c2, *"
	add c1 "${some/.3/.1}"
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
	[ "$(seen outside two 192.0.2.3 tcp)" = 192.0.2.2 ]
	del c2
	ip netns add three
	cp /tmp/net.c2 /tmp/net.c3
	run add c3 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, *"
	del c1
	add c3 "$tcp"
	del c3
	[ "$(ours)" = "[]" ]
}

@test "portmap: a host port may be mapped once per family and protocol, and by one pod both on all addresses and on one" {
	pod c1 one
	pod c2 two
	add c1 "${tcp/\}/,\"hostIP\":\"0.0.0.0\"\}}" "${tcp/\}/,\"hostIP\":\"127.0.0.1\"\}}" "$udp"
	add c2 "${tcp/\}/,\"hostIP\":\"::\"\}}"
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
	[ "$(seen outside two fd99::1 tcp)" = fd99::2 ]
	[ "$(seen outside one fd99::1 udp)" = fd99::2 ]
	check c1 "${tcp/\}/,\"hostIP\":\"0.0.0.0\"\}}" "${tcp/\}/,\"hostIP\":\"127.0.0.1\"\}}" "$udp"
}

@test "portmap: DEL removes a host port that is mapped both on all addresses and on one, and leaves nothing behind" {
	some='{"hostPort":8080,"containerPort":81,"protocol":"tcp","hostIP":"192.0.2.1"}'
	pod c1 one
	pod c2 two
	for first in "$tcp" "$some"; do
		mappings=("$first" "$tcp" "$some") # a mapping that is listed twice is added once
		add c1 "${mappings[@]}"
		check c1 "${mappings[@]}"
		[ "$(seen outside one 192.0.2.1 tcp 8080 81)" = 192.0.2.2 ]
		[ "$(seen outside one 192.0.2.3 tcp 8080 80)" = 192.0.2.2 ]
		del c1
		[ "$(ours)" = "[]" ]
		nft flush ruleset
	done
	add c1 "$tcp" "$some"
	del c1
	add c2 "$some"
	run add c1 "$tcp"
	fails_with "host port 8080/tcp is taken by container c2, *"
}

# owned_ports: print the IPv4 mappings of all pods
owned_ports() { ours | jq -r '.[] | select(test("^(any)?port4"))' | sort | paste -sd ' '; }
# sharing: print how many containers have attachments that share ports
sharing() { ours | jq 'map(select(startswith("sharing"))) | length'; }

@test "portmap: a port that two attachments share leads to the first, and after the DEL of the first to the second" {
	pod c1 one
	pod c2 two
	second ADD c1
	add c1 "$tcp" "$udp"
	second ADD c1 "$tcp" "$udp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
	check c1 "$tcp" "$udp"
	second CHECK c1 "$tcp" "$udp"
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, *"
	del c1
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80 anyport4 udp . 8080 : 10.8.0.2 . 80" ]
	[ "$(seen host one 127.0.0.1 tcp)" = 10.8.0.1 ]
	[ "$(seen host one 192.0.2.1 udp)" = 192.0.2.1 ]
	second CHECK c1 "$tcp" "$udp"
	run add c2 "${udp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	fails_with "host port 8080/udp is taken by container c1, *"
	add c1 "$tcp"
	check c1 "$tcp"
	second DEL c1 "$tcp" "$udp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: DEL of the second attachment leaves a shared port to the first" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	second ADD c1 "$tcp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80" ]
	[ "$(sharing)" = 1 ]
	second DEL c1 "$tcp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80" ]
	[ "$(sharing)" = 0 ]
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
	check c1 "$tcp"
	del c1
	[ "$(ours)" = "[]" ]
}

@test "portmap: a shared port is transferred to the oldest remaining attachment, if it requested the port" {
	pod c1 one
	second ADD c1
	add c1 "$tcp" "$udp"
	second ADD c1 "$udp"
	third() { # VERB MAPPING...
		ifname=eth2 call portmap "$1" c1 one "$(prev=/tmp/net.c1.3 with c1 "${@:2}" | jq -c '.name = "net3"')" >/dev/null
	}
	sed 's/"eth1"/"eth2"/; s/10\.8\.0\.2/10.8.0.9/' /tmp/net.c1.2 >/tmp/net.c1.3
	third ADD "$tcp" "$udp"
	del c1
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.9 . 80 anyport4 udp . 8080 : 10.8.0.2 . 80" ]
	third CHECK "$tcp" "$udp"
	second CHECK c1 "$udp"
	[ "$(sharing)" = 1 ]
	second DEL c1 "$udp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.9 . 80 anyport4 udp . 8080 : 10.8.0.9 . 80" ]
	[ "$(sharing)" = 0 ]
	third DEL "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: an ADD replaces a port that leads to an attachment of its container without a record" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	rm -rf /run/hawser/attachments/portmap
	second ADD c1 "$tcp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80" ]
	[ "$(sharing)" = 0 ]
	second CHECK c1 "$tcp"
}

@test "portmap: DEL without record and prevResult leaves the ports of other attachments of the container" {
	pod c1 one
	second ADD c1
	add c1 "$tcp" "$udp"
	second ADD c1 "$tcp"
	rm "$(grep -l '"net"' -r /run/hawser/attachments/portmap)"
	call portmap DEL c1 "" "$(jq -c ".runtimeConfig.portMappings = [$tcp, $udp]" /tmp/conf)"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.2 . 80" ]
	second CHECK c1 "$tcp"
	call portmap DEL c1 "" "$(jq -c ".runtimeConfig.portMappings = [$tcp, $udp]" /tmp/conf)"
	second CHECK c1 "$tcp"
	second DEL c1 "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: a transferred port has the conditions of its new owner" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	conf '{"conditionsV4":["ip saddr 127.0.0.1"],"markMasqBit":7}'
	second ADD c1 "$tcp"
	second CHECK c1 "$tcp"
	[ "$(seen host one 192.0.2.1 tcp)" = 192.0.2.1 ]
	del c1
	second CHECK c1 "$tcp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.8.0.1 ]
	unseen host one 192.0.2.1 tcp
	second DEL c1 "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: repair restores the ports of two attachments of a container" {
	pod c1 one
	second ADD c1
	add c1 "$tcp"
	second ADD c1 "$tcp"
	nft flush ruleset
	run second CHECK c1 "$tcp"
	fails_with "*hawser-plugin repair restores *"
	run -0 hawser-plugin repair
	check c1 "$tcp"
	second CHECK c1 "$tcp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
	nft flush set inet hawser sharing
	run second CHECK c1 "$tcp"
	fails_with "nftables set sharing lacks *; hawser-plugin repair restores it"
	run -0 hawser-plugin repair
	second CHECK c1 "$tcp"
	del c1
	second CHECK c1 "$tcp"
	second DEL c1 "$tcp"
	[ "$(ours)" = "[]" ]
}

@test "portmap: one attachment of a container maps a port on all addresses, another maps it on one address" {
	some='{"hostPort":8080,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'
	pod c1 one
	pod c2 two
	second ADD c1
	add c1 "$tcp"
	second ADD c1 "$some"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80 port4 tcp . 192.0.2.3 . 8080 : 10.8.0.2 . 80" ]
	[ "$(sharing)" = 0 ]
	check c1 "$tcp"
	second CHECK c1 "$some"
	del c1
	[ "$(owned_ports)" = "port4 tcp . 192.0.2.3 . 8080 : 10.8.0.2 . 80" ]
	second CHECK c1 "$some"
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, interface eth1, *"
	add c1 "$tcp"
	check c1 "$tcp"
	second CHECK c1 "$some"
	second DEL c1 "$some"
	check c1 "$tcp"
	run add c2 "$some"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, *"
	del c1
	[ "$(ours)" = "[]" ]
}

# as_0.1.0: change the elements of c1's ports to what 0.1.0 wrote: their owner is the attachment, and the sets
# hostip4 and hostip6 are empty
as_0.1.0() {
	local attachment container
	attachment=$(hawser-plugin rules --json | jq -r 'first(.[] | select(.ifname and .containerID == "c1")).owner')
	container=$(hawser-plugin rules --json | jq -r 'first(.[] | select(.ifname == null and .containerID == "c1")).owner')
	nft list ruleset | sed "s/$container/$attachment/; /set hostip/,/}/{/elements/d}" >/tmp/conf.old
	nft flush ruleset
	nft -f /tmp/conf.old
}

@test "portmap: repair takes over ports that 0.1.0 added" {
	some='{"hostPort":81,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'
	pod c1 one
	pod c2 two
	add c1 "$tcp" "$some"
	before=$(nft list ruleset)
	as_0.1.0
	[ "$(nft list ruleset)" != "$before" ]
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, *"
	run -0 hawser-plugin repair
	[ "$(nft list ruleset)" = "$before" ]
	check c1 "$tcp" "$some"
	as_0.1.0
	del c1
	[ "$(ours)" = "[]" ]
}

# call_c1 VERB NETWORK: call portmap for c1 with $tcp on a network. The configuration is in a file, so that
# nothing but portmap delays concurrent calls.
call_c1() {
	CNI_COMMAND=$1 CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth${2#net} "$plugins/portmap" \
		<"/tmp/conf.$2" >/dev/null
}

@test "portmap: concurrent ADD and DEL of attachments of one container lose no port" {
	pod c1 one
	second ADD c1
	with c1 "$tcp" | jq -c '.name = "net0"' >/tmp/conf.net0
	for network in net1 net2; do
		prev=/tmp/net.c1.2 with c1 "$tcp" | jq -c ".name = \"$network\" | .prevResult.interfaces[].name |=
			sub(\"^eth1\"; \"eth${network#net}\") | .prevResult.ips[0].address = \"10.8.0.1${network#net}/24\"" >/tmp/conf.$network
	done
	for _ in {1..40}; do
		call_c1 ADD net0
		call_c1 ADD net1 & first=$!
		call_c1 DEL net0 & wait $! && wait $first
		[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.11 . 80" ]
		call_c1 ADD net0
		call_c1 ADD net2
		call_c1 DEL net1 & first=$!
		call_c1 DEL net0 & wait $! && wait $first
		[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.12 . 80" ]
		call_c1 DEL net2
		[ "$(ours)" = "[]" ]
	done
	run -0 find /run/hawser/locks -name 'portmap-container-*'
	[ "${#lines[@]}" = 1 ]
}

@test "portmap: a blocked ADD delays other attachments of the container, but not other containers" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	second ADD c1
	exec 7<"$(echo /run/hawser/locks/portmap-container-*)"
	flock 7
	second ADD c1 "$tcp" 7<&- & waiting=$!
	add c2 "$udp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80 anyport4 udp . 8080 : 10.7.0.3 . 80" ]
	exec 7<&-
	wait $waiting
	second CHECK c1 "$tcp"
}

@test "portmap: the error for a conflict with an attachment without a record lists the elements to delete" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	rm -rf /run/hawser/attachments/portmap
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by an attachment whose record is missing; if its container no longer exists, this frees the port: nft 'delete element inet hawser anyport4 { tcp . 8080 }; delete element inet hawser anyport6 { tcp . 8080 }; delete element inet hawser anymark4 { tcp . 8080 }; delete element inet hawser anymark6 { tcp . 8080 }'"
	jq -r .msg <<<"$output" | sed -n 's/.*: \(nft .*\)/\1/p' | bash
	[ "$(ours)" = "[]" ]
	add c2 "$tcp"
}

@test "portmap: the commands in the error also free a port that is mapped with a hostIP and conditions, and leave other ports alone" {
	pod c1 one
	pod c2 two
	conf '{"conditionsV4":["ip saddr 192.0.2.2"]}'
	add c1 "${tcp/\}/,\"hostIP\":\"192.0.2.3\"\}}" "${tcp/\}/,\"hostIP\":\"fd99::1\"\}}" "${udp/\}/,\"hostIP\":\"192.0.2.3\"\}}"
	rm -rf /run/hawser/attachments/portmap
	run add c2 "$tcp"
	jq -r .msg <<<"$output" | sed -n 's/.*: \(nft .*\)/\1/p' | bash
	[ "$(ours | jq -r 'map(sub(" .*"; "")) | join(" ")')" = "port4 cond4 mark4" ]
	[[ "$(owned_ports)" == "port4 udp . 192.0.2.3 . 8080 : "* ]]
	add c2 "$tcp"
	[ "$(seen outside two 192.0.2.3 tcp)" = 192.0.2.2 ]
}

@test "portmap: after forty concurrent ADDs, either one pod has the port on all addresses, or thirty pods have it on one each" {
	pod c1 one
	for i in {1..40}; do
		cp /tmp/net.c1 "/tmp/net.p$i"
		if [ $((i % 4)) = 0 ]; then maps=$tcp; else maps=${tcp/\}/,\"hostIP\":\"192.0.2.$i\"\}}; fi
		{ add "p$i" "$maps" >/dev/null && touch "/tmp/won.p$i"; } &
		adds[i]=$!
	done
	for i in {1..40}; do wait "${adds[i]}" || true; done
	any=$(nft list map inet hawser anyport4 | grep -c 'tcp . 8080' || true)
	some=$(ours | jq 'map(select(startswith("port4"))) | length')
	[ "$any $some" = "1 0" ] || [ "$any $some" = "0 30" ]
	[ "$(find /tmp -name 'won.p*' | wc -l)" = $((any + some)) ]
	for i in {1..40}; do
		del "p$i" "$tcp" &
		dels[i]=$!
	done
	for i in {1..40}; do wait "${dels[i]}"; done
	[ "$(ours)" = "[]" ]
	rm -f /tmp/won.*
}

# ---- DEL, GC, CHECK, repair -----------------------------------------------------------------------------

@test "portmap: DEL succeeds without mappings, without a result, without a namespace, and twice" {
	pod c1 one
	add c1 "$tcp" "${udp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	call portmap DEL c1 "" "$(</tmp/conf)"
	[ "$(ours)" = "[]" ]
	call portmap DEL c1 "" "$(</tmp/conf)"
	add c1 "$tcp"
	rm -rf /run/hawser
	call portmap DEL c1 "" "$(jq -c ".runtimeConfig.portMappings = [$tcp]" /tmp/conf)"
	[ "$(ours)" = "[]" ]
}

@test "portmap: DEL with neither a record nor prevResult leaves no element with the pod's address" {
	conf '{"masqAll":true}'
	jq -cn '{cniVersion:"1.1.0",interfaces:[{name:"eth0",sandbox:"/run/netns/one"}],
		ips:[{interface:0,address:"10.9.0.3/32"},{interface:0,address:"fd09::3/128"}]}' >/tmp/net.c1
	sed 's/\.0\.3/.0.4/; s/::3/::4/' /tmp/net.c1 >/tmp/net.c2
	add c2 "$udp"
	ours >/tmp/net.others
	add c1 "$tcp"
	[ "$(ours | jq -r 'map(sub(" .*"; "")) | unique | join(" ")')" = "anymark4 anymark6 anyport4 anyport6 self4 self6 snatall4 snatall6" ]
	rm -rf /run/hawser/attachments/portmap
	call portmap DEL c1 "" "$(jq -c ".runtimeConfig.portMappings = [$tcp]" /tmp/conf)"
	diff <(ours) /tmp/net.others
}

@test "portmap: DEL reads no other records unless attachments of one container share a port" {
	pod c1 one
	pod c2 two
	second ADD c1
	add c1 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	add c2 "${tcp/\}/,\"hostIP\":\"192.0.2.3\"\}}"
	mkdir -p /run/hawser/attachments/portmap/some/00000000000000000000000000000000 # not readable as a record
	del c1
	rm -r /run/hawser/attachments/portmap/some
	add c1 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	second ADD c1 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	del c1
	[[ "$(owned_ports)" == "port4 tcp . 192.0.2.1 . 8080 : 10.8.0.2 . 80 "* ]]
}

@test "portmap: GC deletes attachments that are no longer valid" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	add c2 "$udp"
	call portmap GC "" "" "$(jq -c '."cni.dev/valid-attachments" = [{containerID:"c2",ifname:"eth0"}]' /tmp/conf)"
	[ "$(ours | jq -c 'map(select(startswith("anyport4")))')" = '["anyport4 udp . 8080 : 10.7.0.3 . 80"]' ]
}

@test "portmap: ADD and DEL flush the conntrack entries of UDP ports" {
	pod c1 one
	pod c2 two
	sees() { ip netns exec outside timeout 20 python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.bind(("192.0.2.2", 5555))
s.sendto(b"x", ("192.0.2.1", 8080))
try:
    print(s.recv(9).decode())
except TimeoutError:
    print("no answer")'; }
	for netns in one two; do
		ip netns exec $netns timeout 30 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 80))
open("/tmp/ready." + sys.argv[1], "w")
while True:
    s.sendto(sys.argv[1].encode(), s.recvfrom(9)[1])' $netns &
		until [ -e /tmp/ready.$netns ]; do sleep 0.01; done
	done
	[ "$(sees)" = "no answer" ] # now conntrack has an entry for the host
	add c1 "$udp"
	[ "$(sees)" = one ]
	del c1
	[ "$(sees)" = "no answer" ]
	add c2 "$udp"
	[ "$(sees)" = two ]
	kill "$(jobs -p | head -n 1)" "$(jobs -p | tail -n 1)"
	rm -f /tmp/ready.*
}

has_udp_entry() { grep -q '^ipv4 .* udp .* dport=8080 ' /proc/net/nf_conntrack; }

@test "portmap: a failed ADD keeps the conntrack entries of another pod's UDP port" {
	[ -e /proc/net/nf_conntrack ] || skip "this kernel has no /proc/net/nf_conntrack"
	pod c1 one
	pod c2 two
	add c1 "$udp"
	python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 8080))'
	has_udp_entry
	run add c2 "$udp"
	fails_with "host port 8080/udp is taken by *"
	has_udp_entry
	run add c2 "${udp/\}/,\"hostIP\":\"192.0.2.1\"\}}" # one address of a port that another pod has on every address
	fails_with "host port 8080/udp is taken by *"
	has_udp_entry
	del c1
	run ! has_udp_entry
	add c1 "${udp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 8080))'
	run add c2 "$udp" # a port on every address, which another pod has on one of them
	fails_with "host port 8080/udp is taken by *"
	has_udp_entry
	del c1
	run ! has_udp_entry
}

@test "portmap: CHECK finds that route_localnet is off, and repair restores it" {
	pod c1 one
	add c1 "$tcp"
	echo 0 >/proc/sys/net/ipv4/conf/cni0/route_localnet
	run check c1 "$tcp"
	fails_with "route_localnet is off on interface cni0, *"
	echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
	check c1 "$tcp"
	echo 0 >/proc/sys/net/ipv4/conf/all/route_localnet
	run -0 hawser-plugin repair
	check c1 "$tcp"
	[ "$(seen host one 127.0.0.1 tcp)" = 10.7.0.1 ]
}

@test "portmap: CHECK finds missing and changed elements, and repair restores them" {
	pod c1 one
	conf '{"conditionsV4":["iifname \"wire\""],"markMasqBit":5}'
	some='{"hostPort":81,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'
	add c1 "$tcp" "$some"
	check c1 "$tcp" "$some"
	before=$(nft list ruleset)
	for harm in "flush ruleset" "flush table inet hawser" "flush map inet hawser anyport4" "flush map inet hawser port4" \
		"flush map inet hawser anymark6" "flush map inet hawser anycond4" "flush set inet hawser own6" \
		"flush set inet hawser hostip4" \
		"flush chain inet hawser snat5" "flush chain inet hawser snatbits" \
		"flush chain inet hawser $(nft list chains inet | grep -o 'cond_[0-9a-f]*')"; do
		nft "$harm"
		run check c1 "$tcp" "$some"
		fails_with "*hawser-plugin repair restores *"
		run -0 hawser-plugin repair
		check c1 "$tcp" "$some"
		diff <(nft list ruleset) - <<<"$before"
	done
	run check c1 "$tcp" "$some" "$udp"
	fails_with "*lacks udp . 8080 : 10.7.0.2 . 80*"
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
}

@test "portmap: after our rules were flushed, ADD creates the chains that it jumps to" {
	pod c1 one
	pod c2 two
	other='{"hostPort":81,"containerPort":80,"protocol":"tcp"}'
	conf '{"conditionsV4":["iifname \"wire\""],"markMasqBit":5}'
	add c1 "$tcp"
	nft flush table inet hawser
	add c2 "$other"
	check c2 "$other"
	check c1 "$tcp" # uses the same chains
	[ "$(seen outside two 192.0.2.1 tcp 81)" = 192.0.2.2 ]
	conf '{"markMasqBit":7}'
	del c2
	add c2 "$other"
	del c2
	nft flush chain inet hawser snatbits
	add c2 "$other"
	check c2 "$other"
	conf '{"conditionsV4":["iifname \"wire\""],"markMasqBit":5}'
	run check c1 "$tcp"
	fails_with "nftables chain inet hawser snatbits has no rule for mark bit 5; hawser-plugin repair restores it"
	run -0 hawser-plugin repair
	check c1 "$tcp"
	[ "$(nft list chain inet hawser snatbits | grep -c jump)" = 2 ]
}

@test "portmap: existing chains for conditions and marks are used without libnftables" {
	library=$(ldconfig -p | awk '$1 == "libnftables.so.1" { print $NF; exit }')
	pod c1 one
	pod c2 two
	second ADD c1
	conf '{"conditionsV4":["ip saddr 192.0.2.2"],"conditionsV6":["ip6 saddr fd99::2"],"markMasqBit":5}'
	add c1 "$tcp"
	second ADD c1 "$tcp" # creates the chain of its network
	second DEL c1 "$tcp"
	mount --bind /dev/null "$library"
	{ add c2 "$udp" && second ADD c1 "$tcp" && hawser-plugin repair; } || { umount "$library" && false; }
	umount "$library"
	check c2 "$udp"
	second CHECK c1 "$tcp"
}

@test "portmap: STATUS checks the configuration and the kernel" {
	call portmap STATUS "" "" "$(</tmp/conf)"
	conf '{"markMasqBit":99}'
	run call portmap STATUS "" "" "$(</tmp/conf)"
	fails_with "MasqMarkBit must be between 0 and 31"
	[ -z "$(nft list tables)" ]
}

@test "portmap: STATUS and ADD report a missing libnftables, not invalid conditions" {
	library=$(ldconfig -p | awk '$1 == "libnftables.so.1" { print $NF; exit }')
	pod c1 one
	mount --bind /dev/null "$library"
	run call portmap STATUS "" "" "$(</tmp/conf)"
	umount "$library"
	fails_with "host ports are not available: load libnftables: *"
	code 50
	add c1 "$udp" # loads the rules
	del c1
	conf '{"conditionsV4":["ip saddr 192.0.2.2"]}'
	mount --bind /dev/null "$library"
	run add c1 "$tcp"
	umount "$library"
	fails_with "conditionsV4 \"ip saddr 192.0.2.2\": load libnftables: *"
	code 999
}

# ---- upstream's plugin ------------------------------------------------------------------------------------

@test "portmap: DEL removes the iptables rules that upstream's plugin added for this pod, and nothing else" {
	need iptables ip6tables
	need_go_plugins portmap
	pod c1 one
	pod c2 two
	sed -i 's/"1.1.0"/"1.0.0"/' /tmp/conf /tmp/net.*
	plugins=$GO_PLUGINS add c2 "$udp" >/dev/null
	saved() { iptables-save -t nat | grep -v '^[#:]'; ip6tables-save -t nat | grep -v '^[#:]'; }
	before=$(saved)
	plugins=$GO_PLUGINS add c1 "$tcp" >/dev/null
	[ "$(saved)" != "$before" ]
	del c1 "$tcp"
	[ "$(saved)" = "$before" ]
	plugins=$GO_PLUGINS del c2 "$udp"
}

@test "portmap: DEL removes the nftables rules that upstream's plugin added for this pod, and nothing else" {
	nft -f - <<-'END'
		table ip cni_hostport {
			chain hostports {
				tcp dport 8080 dnat to 10.7.0.2:80 comment "c1"
				tcp dport 8081 dnat to 10.7.0.3:80 comment "c10"
				tcp dport 8082 dnat to 10.7.0.4:80 comment "xc1"
			}
			chain masquerading {
				type nat hook postrouting priority 100;
				ip saddr 10.7.0.2 ip daddr 10.7.0.2 masquerade comment "c1"
			}
		}
		table ip6 cni_hostport {
			chain hostports { tcp dport 8080 dnat to [fd07::2]:80 comment "c1"; }
		}
	END
	call portmap DEL c1 "" "$(jq -c ".runtimeConfig.portMappings = [$tcp]" /tmp/conf)"
	nft list ruleset
	[ "$(nft list ruleset | grep -c 'comment "c1"')" = 0 ]
	[ "$(nft list ruleset | grep -c comment)" = 2 ]
}
