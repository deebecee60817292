#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap: what ADD adds, for which addresses of the host; STATUS; removal of rules of upstream's plugin. Connectivity
# in all directions is in test_traffic.py.
# shellcheck disable=SC2154 # variables come from portmap.bash and from run
bats_require_minimum_version 1.5.0
load portmap

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
	[ "$(ours)" = '["anyport4 tcp . 8080 : 10.7.0.2 . 80","anyport6 tcp . 8080 : fd07::2 . 80","anymark4 tcp . 8080 : jump snat13","anymark6 tcp . 8080 : jump snat13","claimed tcp . 8080"]' ]
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
	[ "$(ours | jq length)" = 10000 ]
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
		[ "$(ours | jq length)" = 5 ]
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
		[ "$(ours | jq length)" = 5 ]
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
