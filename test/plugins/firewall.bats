#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The firewall plugin: connections between namespaces on a host whose iptables forwards nothing; the two rules
# in FORWARD, which iptables must treat as its own; ingressPolicy; firewalld, simulated by firewalld.py on a
# private bus; CHECK and repair; removal of rules of upstream's plugin.
bats_require_minimum_version 1.5.0
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
	local link netns tables
	for link in $(ip -j link | jq -r '.[] | select(.ifname | test("^(veth|wire|br)")).ifname'); do
		ip link del "$link" 2>/dev/null || true
	done
	for netns in $(ip netns list | cut -d ' ' -f 1); do ip netns del "$netns"; done
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

# ---- helpers -------------------------------------------------------------------------

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

# rules_of: remove comments and packet counters from the output of iptables-save
rules_of() { sed -e '/^#/d' -e 's/ \[[0-9]*:[0-9]*\]$//'; }

ready() { wait_until has_line ready /tmp/ready; }

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
reaches() {
	rm -f /tmp/ready
	ip netns exec "$2" timeout 20 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7777))
print("ready", flush=True)
_, source = s.recvfrom(9)
s.sendto(b"hello", source)' "$3" >/tmp/ready 3>&- &
	ready
	ip netns exec "$1" python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.4)
for tries in range(5):
    try:
        s.sendto(b"x", (sys.argv[1], 7777))
        sys.exit(s.recv(9) != b"hello")
    except OSError:
        pass
sys.exit(1)' "$3" || {
		kill $! 2>/dev/null || true
		wait $! || true
		return 1
	}
	wait $!
}

ours() { hawser-plugin rules --json | jq -c '[.[] | select(.owner) | .set + " " + .element]'; }
forward() { iptables -S FORWARD | sed 1d; }
forward6() { ip6tables -S FORWARD | sed 1d; }
two_rules=$'-A FORWARD -j CNI-ADMIN\n-A FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT'

# ---- traffic ---------------------------------------------------------------------------

@test "firewall: on a host that forwards nothing, pods can open connections, but not accept them" {
	drop_all
	attach c1 one
	run ! reaches one outside 192.0.2.2
	add c1 one
	attach c2 two
	reaches one outside 192.0.2.2
	reaches one outside fd99::2
	run ! reaches outside one "$(address c1 0)"
	run ! reaches two outside 192.0.2.2
	check c1 one
	del c1 one
	run ! reaches one outside 192.0.2.2
	[ "$(ours)" = "[]" ]
}

@test "firewall: connections that another program forwards by DNAT reach the pod" {
	drop_all
	pod c1 one
	nft 'table ip nat2 { chain pre { type nat hook prerouting priority -90;
		ip daddr 192.0.2.1 udp dport 7777 dnat to '"$(address c1 0)"'; }; }'
	rm -f /tmp/ready
	ip netns exec one timeout 20 python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7777))
print("ready", flush=True)
s.sendto(b"hello", s.recvfrom(9)[1])' >/tmp/ready 3>&- &
	ready
	ip netns exec outside python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.4)
for tries in range(20):
    s.sendto(b"x", ("192.0.2.1", 7777))
    try:
        assert s.recv(9) == b"hello"
        break
    except TimeoutError:
        assert tries < 19'
	wait $!
}

@test "firewall: ADD returns prevResult, in every version" {
	for version in 0.4.0 1.0.0 1.1.0; do
		jq '.cniVersion = "'$version'"' >/tmp/result.c1 <<-'END'
			{"interfaces":[{"name":"eth0","sandbox":"/x"}],
			"ips":[{"version":"4","interface":0,"address":"10.1.2.3/24","gateway":"10.1.2.1"}],
			"routes":[{"dst":"0.0.0.0/0"}],"dns":{"domain":"x"}}
		END
		run -0 add c1 one '{"cniVersion":"'$version'"}'
		[ "$(jq -cS 'del(.ips[].version)' <<<"$output")" = "$(jq -cS 'del(.ips[].version)' /tmp/result.c1)" ]
		del c1 one '{"cniVersion":"'$version'"}'
	done
	run call VERSION "" "" '{"cniVersion":"1.0.0"}'
	[ "$(jq -c .supportedVersions <<<"$output")" = '["0.4.0","1.0.0","1.1.0"]' ]
}

# ---- FORWARD -----------------------------------------------------------------------------

# steps: read rules from standard input, and print only their expressions, without counters
steps() { grep '^  \[' | sed 's/pkts.*bytes [0-9]*/-/'; }

@test "firewall: FORWARD has two rules for any number of pods, identical to rules added by iptables" {
	drop_all
	for n in 1 2 3; do
		ip netns add "p$n"
		pod "c$n" "p$n"
	done
	[ "$(forward)" = "$two_rules" ]
	[ "$(forward6)" = "$two_rules" ]
	for family in ip ip6; do
		nft --debug=netlink list chain $family filter FORWARD | steps >"/tmp/ours.$family"
		${family}tables -F FORWARD
		${family}tables -A FORWARD -j CNI-ADMIN
		${family}tables -A FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT
		nft --debug=netlink list chain $family filter FORWARD | steps | diff - "/tmp/ours.$family"
	done
	del c1 p1
	add c1 p1
	[ "$(forward)" = "$two_rules" ]
}

@test "firewall: iptables -S, -L, -C, -D, save and restore work with our rules" {
	drop_all
	pod c1 one
	for tables in iptables ip6tables; do
		$tables -S >/tmp/s 2>/tmp/warnings
		$tables -nvL >/tmp/l 2>>/tmp/warnings
		$tables-save >/tmp/save 2>>/tmp/warnings
		[ ! -s /tmp/warnings ]
		$tables -C FORWARD -j CNI-ADMIN
		$tables -C FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT
		$tables-restore </tmp/save
		# (without packet counters, which change by themselves)
		diff <(rules_of </tmp/save) <($tables-save | rules_of)
	done
	reaches one outside 192.0.2.2
	check c1 one
	[ "$(forward)" = "$two_rules" ]
	iptables -D FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT
	iptables -D FORWARD -j CNI-ADMIN
	[ -z "$(forward)" ]
}

@test "firewall: ADD and CHECK restore missing rules in FORWARD" {
	drop_all
	pod c1 one
	iptables -F
	run ! reaches one outside 192.0.2.2
	check c1 one
	[ "$(forward)" = "$two_rules" ]
	reaches one outside 192.0.2.2
	ip6tables -F
	pod c2 two
	[ "$(forward6)" = "$two_rules" ]
	iptables -A FORWARD -s 10.99.0.0/16 -j DROP
	for rule in "-j CNI-ADMIN" "-m mark --mark 0x1000/0x1000 -j ACCEPT"; do
		# shellcheck disable=SC2086 # words
		iptables -D FORWARD $rule
		check c1 one
		[ "$(forward)" = "$two_rules"$'\n-A FORWARD -s 10.99.0.0/16 -j DROP' ]
	done
}

@test "firewall: the administrator's chain comes first, keeps its rules, and its name can be configured" {
	drop_all
	iptables -N CNI-ADMIN
	pod c1 one
	pod c2 two
	iptables -A CNI-ADMIN -s "$(address c1 0)" -j DROP
	run ! reaches one outside 192.0.2.2
	reaches two outside 192.0.2.2
	check c1 one
	del c1 one
	add c1 one '{"iptablesAdminChainName":"MINE"}'
	[ "$(forward)" = "-A FORWARD -j MINE"$'\n'"$two_rules" ]
	[ "$(iptables -S CNI-ADMIN | sed 1d)" = "-A CNI-ADMIN -s $(address c1 0)/32 -j DROP" ]
	del c1 one
	for name in "" -x "a b" ACCEPT 12345678901234567890123456789; do
		run add c1 one '{"iptablesAdminChainName":"'"$name"'"}'
		fails_with "iptablesAdminChainName \"$name\" is not a valid chain name"
		[ "$(jq .code <<<"$output")" = 7 ]
	done
}

@test "firewall: ADD adds a jump to the administrator's chain if the existing jump is after the accepting rule" {
	drop_all
	iptables -N CNI-ADMIN
	iptables -A FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT
	iptables -A FORWARD -j CNI-ADMIN
	pod c1 one
	[ "$(forward | head -2)" = "$two_rules" ]
	before=$(forward)
	check c1 one
	[ "$(forward)" = "$before" ]
}

@test "firewall: ADD adds its rules even if similar rules exist" {
	drop_all
	iptables -N CNI-ADMIN
	for rule in "-p tcp -m mark --mark 0x1000/0x1000 -j ACCEPT" "-m mark --mark 0x1000/0x3000 -j ACCEPT" \
		"-m mark ! --mark 0x1000/0x1000 -j ACCEPT" "-s 10.0.0.1 -m mark --mark 0x1000/0x1000 -j ACCEPT" \
		"-m mark --mark 0x1000/0x1000 -j DROP" "-i eth9 -j CNI-ADMIN" "-m mark --mark 0x1000/0x1000" \
		"-m mark --mark 0x1000 -j ACCEPT" "-s 10.0.0.0/8 -j CNI-ADMIN" "-g CNI-ADMIN"; do
		# shellcheck disable=SC2086 # words
		iptables -A FORWARD $rule
	done
	pod c1 one
	[ "$(forward | head -2)" = "$two_rules" ]
	[ "$(forward | wc -l)" = 12 ]
}

@test "firewall: ADD does not create FORWARD, and adds no rules for a family without addresses" {
	pod c1 one
	[ "$(nft list tables)" = "table inet hawser" ]
	reaches one outside 192.0.2.2
	drop_all
	jq '.ips |= [.[0]]' /tmp/result.c1 >/tmp/result.c2
	add c2 two
	[ "$(forward)" = "$two_rules" ]
	[ -z "$(forward6)" ]
}

@test "firewall: another mark bit works at the same time as the default one" {
	drop_all
	pod c1 one '{"forwardMarkBit":7}'
	pod c2 two
	reaches one outside 192.0.2.2
	reaches two outside fd99::2
	[ "$(forward | grep -c ACCEPT)" = 2 ]
	iptables -C FORWARD -m mark --mark 0x80/0x80 -j ACCEPT
	check c1 one
	nft flush chain inet hawser allow7
	run check c1 one
	fails_with "*allow7*hawser-plugin repair restores*"
	hawser-plugin repair
	check c1 one
	reaches one outside 192.0.2.2
	del c1 one
	run add c1 one '{"forwardMarkBit":32}'
	fails_with "*forwardMarkBit*"
}

@test "firewall: twenty concurrent first ADDs add each rule once" {
	drop_all
	for i in {1..20}; do
		jq -nc '{cniVersion:"1.0.0",interfaces:[{name:"eth0",sandbox:"/x"}],
			ips:[{address:"10.8.0.'"$i"'/24"},{address:"fd08::'"$i"'/64"}]}' >"/tmp/result.c$i"
		add "c$i" one >/dev/null &
		adds[i]=$!
	done
	for i in {1..20}; do wait "${adds[i]}"; done
	[ "$(forward)" = "$two_rules" ]
	[ "$(forward6)" = "$two_rules" ]
	[ "$(ours | jq length)" = 40 ]
	for i in {1..20}; do del "c$i" one; done
	[ "$(ours)" = "[]" ]
}

@test "uninstall: the rules stay while pods need them, and only our rules are removed" {
	drop_all
	iptables -A FORWARD -i lo -j DROP
	jq -nc '{cniVersion:"1.0.0",ips:[{address:"10.8.0.2/24"},{address:"fd08::2/64"}]}' >/tmp/result.c1
	add c1 one
	del c1 one
	add c1 one '{"iptablesAdminChainName":"MINE","forwardMarkBit":3}'
	iptables -A MINE -i lo -j DROP
	run -1 hawser-plugin uninstall
	[[ $output == *"rules in FORWARD are still needed by a pod: 10.8.0.2 "* ]] ||
		[[ $output == *"rules in FORWARD are still needed by a pod: fd08::2 "* ]]
	[ "$(forward | wc -l)" = 5 ]
	check c1 one
	del c1 one
	run -0 hawser-plugin uninstall
	for rules in "ip CNI-ADMIN 12" "ip6 CNI-ADMIN 12" "ip MINE 3" "ip6 MINE 3"; do
		[[ $output == *"iptables-rules $rules removed"* ]]
	done
	[ "$(iptables -S)" = $'-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT
-N MINE\n-A FORWARD -i lo -j DROP\n-A MINE -i lo -j DROP' ]
	[ "$(ip6tables -S)" = $'-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT' ]
	[ "$(nft list tables)" = $'table ip filter\ntable ip6 filter' ]
	[ ! -e /run/hawser ]
}

# ---- records ---------------------------------------------------------------------------------

@test "firewall: CHECK finds lost elements, and repair restores everything" {
	drop_all
	pod c1 one '{"ingressPolicy":"same-bridge"}'
	before=$(nft -s list ruleset)
	for harm in "flush ruleset" "flush table inet hawser" "flush map inet hawser allow6" \
		"flush set inet hawser protected" "delete table ip filter" "flush chain ip filter FORWARD"; do
		nft "$harm"
		[[ $harm != *filter* ]] || drop_all
		[[ $harm == *filter* ]] || {
			run check c1 one
			fails_with "*hawser-plugin repair restores *"
		}
		[[ $harm != "flush ruleset" ]] || drop_all
		run -0 hawser-plugin repair
		check c1 one
		diff <(nft -s list ruleset | sort) <(sort <<<"$before")
	done
	reaches one outside 192.0.2.2
}

@test "firewall: DEL needs neither prevResult nor namespace and can be repeated; GC deletes the same elements" {
	drop_all
	pod c1 one
	pod c2 two
	call DEL c1 "" '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	call DEL c1 "" '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	[ "$(ours | jq -c 'map(split(" ")[1])')" = '["10.7.0.3","fd07::3"]' ]
	reaches two outside 192.0.2.2
	call GC "" "" '{"cniVersion":"1.1.0","name":"net","type":"firewall","cni.dev/valid-attachments":[]}'
	[ "$(ours)" = "[]" ]
	[ -z "$(find /run/hawser/attachments/firewall -type f)" ]
	# without a record, DEL finds the elements by their owner
	add c1 one
	rm -r /run/hawser/attachments/firewall
	call DEL c1 "" '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	[ "$(ours)" = "[]" ]
}

@test "firewall: if a pod takes over the address of another pod, a late DEL of the other pod does not remove the address" {
	drop_all
	pod c1 one
	cp /tmp/result.c1 /tmp/result.c2
	add c2 two
	del c1 one
	[ "$(hawser-plugin rules --json | jq -r '.[] | select(.set == "allow4").containerID')" = c2 ]
	reaches one outside 192.0.2.2
	del c2 two
	[ "$(ours)" = "[]" ]
}

@test "firewall: a prevResult may contain an address twice" {
	jq -nc '{cniVersion:"1.0.0",ips:[{address:"10.8.0.2/24"},{address:"10.8.0.2/24"}]}' >/tmp/result.c1
	add c1 one
	check c1 one
	del c1 one
	[ "$(ours)" = "[]" ]
}

@test "firewall: ADD restores the flushed chain that sets the packet mark" {
	drop_all
	pod c1 one
	nft flush chain inet hawser allow12
	run check c1 one
	fails_with "*hawser-plugin repair restores *"
	pod c2 two
	reaches one outside 192.0.2.2
	check c1 one
	nft flush table inet hawser
	del c2 two
	add c2 two
	reaches two outside 192.0.2.2
}

@test "firewall: portmap's mark bit is rejected" {
	attach c1 one
	run add c1 one '{"forwardMarkBit":13}'
	fails_with "forwardMarkBit 13 is *portmap*"
	[ "$(jq .code <<<"$output")" = 7 ]
}

@test "firewall: a missing prevResult and an unknown ingressPolicy are rejected" {
	run call ADD c1 one '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	fails_with "missing prevResult from earlier plugin"
	attach c1 one
	run add c1 one '{"ingressPolicy":"shut"}'
	fails_with 'unknown ingress policy: "shut"'
	jq 'del(.interfaces) | del(.ips[].interface)' /tmp/result.c1 >/tmp/result.c2
	run add c2 one '{"ingressPolicy":"same-bridge"}'
	fails_with 'interface needs to be set for ingress policy "same-bridge"*'
	run call CHECK c1 one '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	fails_with "missing prevResult from earlier plugin"
	[ -z "$(nft list ruleset)" ]
}

# ---- ingressPolicy -----------------------------------------------------------------------------

@test "ingressPolicy: same-bridge drops packets between bridges with a policy, and nothing else" {
	ip netns add three
	ip netns add four
	attach c1 one
	attach c2 two
	attach c3 three net3 br3 3
	attach c4 four net4 br4 4
	reaches one three "$(address c3 0)"
	add c1 one '{"ingressPolicy":"same-bridge"}'
	reaches one three "$(address c3 0)"
	add c3 three '{"ingressPolicy":"same-bridge"}'
	run ! reaches one three "$(address c3 0)"
	run ! reaches three one "$(address c1 1)"
	reaches one two "$(address c2 0)"
	reaches one four "$(address c4 0)"
	reaches four one "$(address c1 1)"
	reaches outside one "$(address c1 0)"
	reaches one outside 192.0.2.2
	check c1 one
	# there is one element for each bridge, which DEL does not delete
	add c2 two '{"ingressPolicy":"same-bridge"}'
	[ "$(nft -j list set inet hawser protected | jq -c '.nftables[1].set.elem')" = '["br0","br3"]' ]
	for c in c1 c2 c3; do del $c one; done
	[ "$(ours)" = "[]" ]
	[ "$(nft -j list set inet hawser protected | jq -c '.nftables[1].set.elem')" = '["br0","br3"]' ]
}

@test "ingressPolicy: isolated also drops packets between pods of the same bridge" {
	attach c1 one
	attach c2 two
	sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1 ||
		skip "the kernel does not show bridged packets to nftables"
	reaches one two "$(address c2 0)"
	add c1 one '{"ingressPolicy":"isolated"}'
	run ! reaches one two "$(address c2 0)"
	run ! reaches two one "$(address c1 1)"
	reaches one outside 192.0.2.2
	check c1 one
}

@test "ingressPolicy: open is the same as no policy" {
	attach c1 one
	add c1 one '{"ingressPolicy":"open"}'
	[ "$(hawser-plugin rules --json | jq -c '[.[].set] - ["version"]')" = '["allow4","allow6"]' ]
}

bridges() { hawser-plugin rules --json | jq -c '[.[] | select(.set | test("protected|samebridge|isolated")) | .set]'; }

# replace CONTAINER NETNS [JSON]: DEL, then ADD with another configuration
replace() { del "$1" "$2" && add "$@"; }

@test "ingressPolicy: ADD deletes the elements of a policy that no pod uses any more" {
	attach c1 one
	attach c2 two
	add c1 one '{"ingressPolicy":"isolated"}'
	[ "$(bridges)" = '["protected","isolated"]' ]
	add c2 two '{"ingressPolicy":"same-bridge"}'
	[ "$(bridges)" = '["protected","samebridge","isolated"]' ]
	check c1 one '{"ingressPolicy":"isolated"}'
	del c1 one
	add c1 one '{"ingressPolicy":"same-bridge"}'
	[ "$(bridges)" = '["protected","samebridge"]' ]
	replace c1 one '{"ingressPolicy":"open"}'
	[ "$(bridges)" = '["protected","samebridge"]' ]
	check c2 two
	replace c2 two
	[ "$(bridges)" = '[]' ]
	check c2 two
	replace c2 two '{"ingressPolicy":"isolated"}'
	del c2 two
	[ "$(bridges)" = '["protected","isolated"]' ]
	replace c1 one
	[ "$(bridges)" = '[]' ]
}

@test "ingressPolicy: ADD does not read all records if pods of several policies share a bridge" {
	need strace
	attach c1 one
	for i in {2..9}; do
		cp /tmp/result.c1 "/tmp/result.c$i"
		add "c$i" one '{"ingressPolicy":"isolated"}'
	done
	for policy in open same-bridge; do
		traced openat add c1 one '{"ingressPolicy":"'$policy'"}'
		# ADD reads its own record twice, and one record with the policy "isolated"
		[ "$(grep -cE 'openat\([0-9]+, "[0-9a-f]{16,}", [^)]*\) = [0-9]' /tmp/trace)" -le 4 ]
		[[ "$(bridges)" == *isolated* ]]
		del c1 one
	done
	# the elements of a policy that no pod uses any more are still deleted
	add c1 one
	[ "$(bridges)" = '["protected","isolated"]' ]
}

@test "ingressPolicy: DEL deletes the elements of an interface that is not a bridge" {
	jq -n '{cniVersion:"1.0.0",interfaces:[{name:"wire"},{name:"eth0",sandbox:"/x"}],
		ips:[{interface:1,address:"10.8.0.2/24"}]}' >/tmp/result.c1
	add c1 one '{"ingressPolicy":"same-bridge"}'
	[ "$(ours | jq -c sort)" = '["allow4 10.8.0.2 : jump allow12","protected wire","samebridge wire . wire"]' ]
	del c1 one
	[ "$(ours)" = "[]" ]
	add c1 one '{"ingressPolicy":"isolated"}'
	rm -r /run/hawser/attachments/firewall
	del c1 one
	[ "$(ours)" = "[]" ]
}

# ---- firewalld ------------------------------------------------------------------------------------

# start_bus [with-firewalld]: start a private bus; with the argument, also start firewalld.py on it
start_bus() {
	need dbus-daemon
	/usr/bin/python3 -c 'import dbus, gi' 2>/dev/null || skip "python3-dbus and python3-gi are not installed"
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/tmp/bus
	rm -f /tmp/bus /tmp/zones
	dbus-daemon --session --nopidfile --address="$DBUS_SYSTEM_BUS_ADDRESS" --fork --print-pid 3>&- >/tmp/bus.pids
	[ -z "${1-}" ] || start_firewalld
}

# leave_dead_bus: create the socket of a bus that is not running
leave_dead_bus() {
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/tmp/bus
	rm -f /tmp/bus
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/tmp/bus")'
}

start_firewalld() {
	"$HAWSER_SRC/test/firewalld.py" /tmp/zones >/dev/null 2>&1 3>&- &
	echo $! >>/tmp/bus.pids
	wait_until test -e /tmp/zones
}

@test "firewalld: the addresses are in the zone from ADD to DEL, and FORWARD is not changed" {
	start_bus with-firewalld
	drop_all
	pod c1 one
	[ "$(</tmp/zones)" = $'trusted 10.7.0.2/32\ntrusted fd07::2/128' ]
	[ -z "$(forward)" ]
	check c1 one
	pod c2 two '{"firewalldZone":"public","backend":"firewalld"}'
	[ "$(grep public /tmp/zones)" = $'public 10.7.0.3/32\npublic fd07::3/128' ]
	call DEL c1 "" "$(conf)"
	call DEL c1 "" "$(conf)"
	[ "$(grep -c trusted /tmp/zones)" = 0 ]
	call GC "" "" '{"cniVersion":"1.1.0","name":"net","type":"firewall","cni.dev/valid-attachments":[]}'
	[ ! -s /tmp/zones ]
	[ "$(ours)" = "[]" ]
}

@test "firewalld: the plugin does not call firewalld with backend iptables, or if firewalld is not running" {
	start_bus
	drop_all
	pod c1 one
	[ "$(forward)" = "$two_rules" ]
	del c1 one
	start_firewalld
	iptables -F
	add c1 one '{"backend":"iptables"}'
	[ "$(forward)" = "$two_rules" ]
	[ ! -s /tmp/zones ]
}

@test "firewalld: an ADD that cannot add the addresses fails and leaves nothing behind" {
	attach c1 one
	run add c1 one '{"backend":"firewalld"}'
	fails_with "backend is firewalld, but there is no system bus"
	start_bus
	run add c1 one '{"backend":"firewalld"}'
	fails_with "failed to add the address 10.7.0.2/32 to trusted zone: *"
	start_firewalld
	run add c1 one '{"firewalldZone":"nowhere"}'
	fails_with "failed to add the address 10.7.0.2/32 to nowhere zone: INVALID_ZONE: nowhere"
	[ "$(ours)" = "[]" ]
	[ -z "$(find /run/hawser/attachments/firewall -type f)" ]
}

@test "firewalld: CHECK finds a missing source, and repair restores it" {
	start_bus with-firewalld
	pod c1 one
	dbus-send --bus="$DBUS_SYSTEM_BUS_ADDRESS" --print-reply --dest=org.fedoraproject.FirewallD1 \
		/org/fedoraproject/FirewallD1 org.fedoraproject.FirewallD1.zone.removeSource string:trusted string:10.7.0.2/32
	run check c1 one
	fails_with "firewalld zone trusted lacks the address 10.7.0.2/32; hawser-plugin repair restores it"
	hawser-plugin repair
	check c1 one
	kill "$(tail -n 1 /tmp/bus.pids)"
	wait_until ends_with 1 check c1 one
	run check c1 one
	fails_with "firewalld is not running, but ADD added the pod's addresses to its zone trusted"
	sed -i '$d' /tmp/bus.pids
	del c1 one
	[ "$(ours)" = "[]" ]
}

@test "firewalld: ADD and DEL try to connect to a dead bus socket twice, and continue without firewalld" {
	need strace
	leave_dead_bus
	attach c1 one
	traced connect add c1 one
	[ "$(grep -c 'connect(.*/tmp/bus.*ECONNREFUSED' /tmp/trace)" = 2 ]
	rm -r /run/hawser/attachments/firewall
	traced connect del c1 one
	[ "$(grep -c 'connect(.*/tmp/bus.*ECONNREFUSED' /tmp/trace)" = 2 ]
	rm /tmp/bus
	[ "$(ours)" = "[]" ]
}

@test "firewalld: with neither a record nor prevResult, DEL finds the addresses by their owner" {
	start_bus with-firewalld
	pod c1 one
	pod c2 two
	rm -r /run/hawser/attachments/firewall
	call DEL c1 "" '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	[ "$(</tmp/zones)" = $'trusted 10.7.0.3/32\ntrusted fd07::3/128' ]
	call DEL c2 "" '{"cniVersion":"1.0.0","name":"net","type":"firewall"}'
	[ ! -s /tmp/zones ]
	[ "$(ours)" = "[]" ]
}

@test "firewalld: a late DEL keeps an address that now belongs to another pod" {
	start_bus with-firewalld
	pod c1 one
	cp /tmp/result.c1 /tmp/result.c2
	add c2 two
	del c1 one
	[ "$(wc -l </tmp/zones)" = 2 ]
	check c2 two
	del c2 two
	[ ! -s /tmp/zones ]
}

@test "firewalld: DEL removes sources that upstream's plugin added" {
	need_go_plugins firewall
	start_bus with-firewalld
	attach c1 one
	plugin=$GO_PLUGINS/firewall add c1 one
	[ "$(wc -l </tmp/zones)" = 2 ]
	del c1 one
	[ ! -s /tmp/zones ]
}

# start_real_firewalld: start the firewalld that tools/unpack unpacks. The package is not installed, because
# installing it would start firewalld on the machine itself.
start_real_firewalld() {
	local peers=$HAWSER_SRC/build-peers

	need dbus-daemon
	[ -e "$peers/usr/sbin/firewalld" ] || skip "firewalld is not unpacked"
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/tmp/bus
	dbus-daemon --session --nopidfile --address="$DBUS_SYSTEM_BUS_ADDRESS" --fork --print-pid 3>&- >/tmp/bus.pids
	cp -r "$peers/etc/firewalld" /tmp/firewalld
	PYTHONPATH=$peers/usr/lib/python3/dist-packages /usr/bin/python3 "$peers/usr/sbin/firewalld" --nofork --nopid \
		--default-config "$peers/usr/lib/firewalld" --system-config /tmp/firewalld >/tmp/firewalld.log 2>&1 3>&- &
	echo $! >>/tmp/bus.pids
	wait_until nft list table inet firewalld || { cat /tmp/firewalld.log; return 1; }
}

@test "firewalld: after ADD the real firewalld lets the pod's packets pass" {
	start_real_firewalld
	status
	attach c1 one
	run ! reaches one outside 192.0.2.2
	add c1 one
	reaches one outside 192.0.2.2
	reaches one outside fd99::2
	check c1 one
	del c1 one
	run ! reaches one outside 192.0.2.2
	[ "$(nft list ruleset | grep -c 10.7.0.2)" = 0 ]
}

# ---- STATUS -----------------------------------------------------------------------------------------

@test "STATUS: if a native chain drops packets of pods, the error names the chain and the rule to add" {
	status
	drop_all
	status
	pod c1 one
	for chain in 'policy drop;' 'ct state established accept; counter drop;' 'reject;' 'goto shut;' \
		'policy drop; iifname "x" jump shut; ct status dnat accept; meta mark & 0x1000 == 0 accept; jump some;' \
		'drop; meta mark & 0x1000 == 0x1000 accept;' 'ip saddr 0.0.0.0/0 drop;' 'jump some; ct state new reject;' \
		'policy drop; return; accept;'; do
		nft "table inet mine { chain shut { log; drop; }; chain some { ct state established accept; }; chain onward { type filter hook forward priority 0; $chain }; }"
		run ! reaches one outside 192.0.2.2
		run status
		fails_with "nftables chain inet mine onward drops pod traffic; to accept it: nft '*'"
		[ "$(jq .code <<<"$output")" = 50 ]
		eval "$(jq -r .msg <<<"$output" | sed 's/.*to accept it: //')"
		status
		reaches one outside 192.0.2.2
		nft delete table inet mine
	done
	nft 'table ip early { chain onward { type filter hook forward priority -150; policy drop; }; }'
	run status
	fails_with "nftables chain ip early onward drops * at priority -150, before *: give the chain a priority above -5"
}

# legacy_drops: make iptables-legacy drop packets of pods, and add rules that do not change that
legacy_drops() {
	local tables

	need iptables-legacy ip6tables-legacy
	for tables in ip6tables-legacy iptables-legacy; do
		$tables -P FORWARD DROP || skip "the kernel has no $tables"
		$tables -N EMPTY
		$tables -N SOME
		$tables -A FORWARD -s 10::/10 -j DROP 2>/dev/null || $tables -A FORWARD -s 10.99.0.0/16 -j DROP
		$tables -A FORWARD -j EMPTY
		$tables -A FORWARD -i x -j RETURN
		$tables -A SOME -j DROP
		$tables -A SOME -j ACCEPT
		$tables -A FORWARD -i x -j SOME
		$tables -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -m comment --comment x -j ACCEPT
		$tables -A FORWARD -m mark --mark 0x1000/0x1000 -j LOG
		$tables -A FORWARD -m mark --mark 0x1000/0x1000
	done
}

@test "STATUS: if iptables-legacy drops packets of pods, the error names it and the rule to add" {
	legacy_drops
	pod c1 one
	for tables in iptables-legacy ip6tables-legacy; do
		run status
		fails_with "$tables drops pod traffic; to accept it: $tables -I FORWARD *"
		[ "$(jq .code <<<"$output")" = 50 ]
		eval "$(jq -r .msg <<<"$output" | sed 's/.*to accept it: //')"
		[ $tables = iptables-legacy ] || reaches one outside fd99::2
	done
	status
	reaches one outside 192.0.2.2
	# rules after one that drops everything do not matter
	for tables in iptables-legacy ip6tables-legacy; do $tables -P FORWARD ACCEPT; done
	for target in DROP REJECT; do
		iptables-legacy -I FORWARD -j $target
		run status
		fails_with "iptables-legacy drops pod traffic; *"
		iptables-legacy -D FORWARD 1
		status
	done
}

@test "STATUS: succeeds if iptables-legacy may accept packets of pods" {
	legacy_drops
	ip6tables-legacy -P FORWARD ACCEPT
	iptables-legacy -A EMPTY -i x -j RETURN
	iptables-legacy -N OTHER
	for rule in "FORWARD -i br0 -j ACCEPT" "FORWARD -m mark --mark 0x1000/0x3000 -j ACCEPT" \
		"FORWARD -m mark --mark 0x1000/0x1000 -m limit --limit 1/s -j ACCEPT" "EMPTY -i br0 -j ACCEPT" \
		"FORWARD -g OTHER" "FORWARD -m conntrack --ctstate NEW,RELATED -j ACCEPT"; do
		run status
		fails_with "iptables-legacy drops pod traffic; *"
		# shellcheck disable=SC2086 # words
		iptables-legacy -A $rule
		status
		# shellcheck disable=SC2086 # words
		iptables-legacy -D $rule
	done
	iptables-legacy -P FORWARD ACCEPT
	iptables-legacy -I FORWARD -j RETURN
	iptables-legacy -A FORWARD -j DROP
	status
}

@test "STATUS: succeeds with chains that drop only some packets, are not at the forward hook of IP, or are unused" {
	nft 'table inet mine { chain onward { type filter hook forward priority 0; ip daddr 10.9.9.9 drop; iifname "x" drop; };
		chain in { type filter hook input priority 0; policy drop; };
		chain other { drop; }; }'
	nft 'table bridge mine { chain onward { type filter hook forward priority 0; policy drop; }; }'
	status
	status '"forwardMarkBit":3'
}

@test "STATUS: succeeds with a chain that may accept packets of pods" {
	for chain in 'ct state established,related accept; iifname "cni0" accept; oifname "cni0" accept;' 'jump some;' \
		'iifname "cni0" goto some; drop;' 'meta mark & 0xf000 != 0 accept;' 'ct state vmap { new : accept };' \
		'meta mark & 0x1000 != 0 goto pass;' 'ip saddr 10.0.0.0/8 log accept;' 'ct state new accept;' \
		'ct state { new, established } accept;'; do
		nft 'table inet mine { chain pass { accept; }; chain some { meta mark & 0x1000 == 0x1000 accept; };
			chain onward { type filter hook forward priority 0; policy drop; '"$chain"' }; }'
		status
		nft delete table inet mine
	done
	nft 'table inet mine { chain back { return; drop; };
		chain onward { type filter hook forward priority 0; jump back; goto back; drop; }; }'
	status
}

# maze DEPTH JUMPS FORMAT: print rules with JUMPS jumps from each of DEPTH chains to the next
maze() {
	local depth jumps
	for ((depth = 0; depth < $1; depth++)); do
		for ((jumps = 1; jumps <= $2; jumps++)); do
			# shellcheck disable=SC2059 # the argument is a format
			printf -- "$3\n" $depth $jumps $((depth + 1))
		done
	done
}

@test "STATUS: gives up on chains with thousands of paths, and then succeeds" {
	need strace
	nft -f - <<-END
		table inet mine {
		$(for depth in {0..11}; do echo "chain l$depth { }"; done)
		chain onward { type filter hook forward priority 0; policy drop; jump l0; }
		}
		$(maze 11 2 'add rule inet mine l%d ip saddr 1.2.3.%d jump l%d')
	END
	traced sendto,sendmsg status
	[ "$(grep -c 'send.*(' /tmp/trace)" -lt 300 ]
	# reading stops at a rule that may accept
	nft insert rule inet mine l0 iifname cni0 accept
	traced sendto,sendmsg status
	[ "$(grep -c 'send.*(' /tmp/trace)" -lt 20 ]
	# a smaller ruleset is read completely
	nft flush chain inet mine l6
	nft delete rule inet mine l0 handle "$(nft -aj list chain inet mine l0 | jq '[.nftables[].rule.handle? // empty][0]')"
	run status
	fails_with "nftables chain inet mine onward drops pod traffic; *"
}

@test "STATUS: succeeds with iptables-legacy chains with millions of paths" {
	need iptables-legacy iptables-legacy-restore
	iptables-legacy -P FORWARD DROP || skip "the kernel has no iptables-legacy"
	run status
	fails_with "iptables-legacy drops pod traffic; *"
	iptables-legacy-restore <<-END
		*filter
		:FORWARD DROP
		$(for depth in {0..14}; do echo ":L$depth -"; done)
		-A FORWARD -j L0
		$(maze 14 10 '-A L%d -s 1.2.3.%d -j L%d')
		COMMIT
	END
	CNI_COMMAND=STATUS timeout 20 "$plugins/firewall" <<<'{"cniVersion":"1.1.0","name":"net","type":"firewall"}'
	iptables-legacy -F L3
	run status
	fails_with "iptables-legacy drops pod traffic; *"
}

@test "STATUS: a chain that drops all IPv6 packets is an error only if a pod has an IPv6 address" {
	nft 'table ip6 mine { chain onward { type filter hook forward priority 0; policy drop; }; }'
	nft 'table inet both { chain onward { type filter hook forward priority 0; policy drop; ip saddr 10.0.0.0/8 accept; }; }'
	status
	attach c1 one
	jq '.ips |= [.[0]]' /tmp/result.c1 >/tmp/result.c2
	add c2 one
	status
	add c1 one
	run status
	fails_with "nftables chain * drops pod traffic; *"
}

@test "STATUS: fails without libnftables unless our rules are loaded" {
	library=$(ldconfig -p | awk '$1 == "libnftables.so.1" { print $NF; exit }')
	mount --bind /dev/null "$library" || skip "cannot mount over libnftables"
	run status
	umount "$library"
	fails_with "load libnftables: *"
	[ "$(jq .code <<<"$output")" = 50 ]
	pod c1 one
	mount --bind /dev/null "$library"
	run status
	umount "$library"
	[ "$status" = 0 ]
}

@test "STATUS: checks the configuration, and firewalld if it is the backend" {
	run status '"ingressPolicy":"shut"'
	fails_with 'unknown ingress policy: "shut"'
	run status '"backend":"firewalld"'
	fails_with "firewalld is not running"
	[ "$(jq .code <<<"$output")" = 50 ]
	start_bus with-firewalld
	nft 'table inet firewalld { chain filter_FORWARD { type filter hook forward priority 10; reject; }; }'
	status '"backend":"firewalld"'
	status
	run status '"backend":"iptables"'
	fails_with "nftables chain inet firewalld filter_FORWARD drops *"
}

# ---- upstream's plugin ---------------------------------------------------------------------------------

@test "firewall: DEL removes the rules that upstream's plugin added for this pod, and nothing else" {
	need_go_plugins firewall
	drop_all
	attach c1 one
	attach c2 two
	plugin=$GO_PLUGINS/firewall add c2 two
	iptables-save | grep -v '^#' | sed 's/\[.*\]//' >/tmp/before
	ip6tables-save | grep -v '^#' | sed 's/\[.*\]//' >/tmp/before6
	plugin=$GO_PLUGINS/firewall add c1 one
	[ "$(iptables -S CNI-FORWARD | grep -c 10.7.0.2/32)" = 2 ]
	check c1 one
	iptables -D CNI-FORWARD -s 10.7.0.2/32 -j ACCEPT
	run check c1 one
	fails_with "no record of this attachment, and no rules of upstream's firewall plugin for 10.7.0.2"
	del c1 one
	iptables-save | grep -v '^#' | sed 's/\[.*\]//' | diff /tmp/before -
	ip6tables-save | grep -v '^#' | sed 's/\[.*\]//' | diff /tmp/before6 -
	reaches two outside 192.0.2.2
}

@test "firewall: works on a host on which upstream's plugin is also used" {
	need_go_plugins firewall
	drop_all
	attach c1 one
	attach c2 two
	plugin=$GO_PLUGINS/firewall add c2 two
	add c1 one
	reaches one outside 192.0.2.2
	reaches two outside 192.0.2.2
	plugin=$GO_PLUGINS/firewall check c2 two
	check c1 one
	plugin=$GO_PLUGINS/firewall del c2 two
	run ! reaches two outside 192.0.2.2
	reaches one outside 192.0.2.2
}
