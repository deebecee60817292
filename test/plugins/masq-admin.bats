#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ipMasq beside rules of an administrator that accept packets, return or choose another source address: in chain
# POSTROUTING of iptables, and in native chains of nftables; our rule in POSTROUTING; ipMasqExclude
bats_require_minimum_version 1.5.0
load ../lib
load outside
load upgrade

plugins=$HAWSER_BUILD/cni
rule='-A POSTROUTING -m connmark --mark 0x68617773 -j MASQUERADE'

# The host has a second address for SNAT. "outside" has routes to the pods, so that it receives and answers
# packets that are not masqueraded.
setup() {
	need ip jq nft iptables ip6tables python3
	sysctl -qw net.ipv6.conf.default.accept_dad=0
	connect_outside
	ip addr add 192.0.2.9/24 dev wire
	ip addr replace fd98::9/128 dev lo
	ip -n outside route add 10.7.0.0/24 via 192.0.2.1
	ip -n outside route add fd07::/64 via fd99::1
	ip -n outside route add fd98::9 via fd99::1
	export CNI_PATH=$plugins:$GO_PLUGINS
}

teardown() {
	local link netns
	for link in $(ip -j link show type veth | jq -r '.[].ifname'); do ip link del "$link" || true; done
	for link in cni0 cni1; do ip link del $link 2>/dev/null || true; done
	for netns in $(ip netns list | cut -d ' ' -f 1); do ip netns del "$netns"; done
	rm -rf /run/hawser /var/lib/cni/networks
	nft flush ruleset
}

# ---- helpers -------------------------------------------------------------------------

# call VERB CONTAINER NETNS: call the plugin with the configuration in /tmp/conf, which conf TYPE [JSON] writes
call() {
	local conf
	conf=$(</tmp/conf)
	[ "$1" = ADD ] || conf=$(jq -c --slurpfile prev "/tmp/result.$2" '.prevResult = $prev[0]' <<<"$conf")
	CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/run/netns/$3 CNI_IFNAME=eth0 \
		"${plugin:-$plugins/$(jq -r .type /tmp/conf)}" <<<"$conf"
}
conf() {
	jq -c --arg type "$1" '{cniVersion:"1.0.0",name:"net",type:$type,isGateway:true,ipMasq:true,
		ipam:{type:"host-local",ranges:[[{"subnet":"10.7.0.0/24"}],[{"subnet":"fd07::/64"}]],
		routes:[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}} + .' <<<"${2-{\}}" >/tmp/conf
}
add() { call ADD "$1" "$2" >"/tmp/result.$1"; } # CONTAINER NETNS
check() { call CHECK c1 one; }
del() { call DEL "$1" "$2"; }
address() { jq -r ".ips[$1].address | split(\"/\")[0]" /tmp/result.c1; } # 0|1: v4 or v6

# two ways to restore our rule
next_add() { add c2 two; }
repair() { hawser-plugin repair; }
# unchanged COMMAND...: run the command, and assert that it changes no rules
unchanged() {
	local status=0
	nft -s list ruleset >/tmp/before 2>&3
	"$@" || status=$?
	nft -s list ruleset 2>&3 | diff /tmp/before - || status=2
	return $status
}

# seen ADDRESS [NETNS]: send from the pod, in netns one or NETNS, to ADDRESS of "outside", and print the source
# address that "outside" sees
seen() {
	rm -f /tmp/seen
	ip netns exec outside timeout 30 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7777))
print("ready", flush=True)
data, source = s.recvfrom(9)
s.sendto(data, source)
print(source[0], flush=True)' "$1" >/tmp/seen 3>&- &
	wait_until has_line ready /tmp/seen
	ip netns exec "${2-one}" python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
for tries in range(20):
    try:
        s.sendto(b"x", (sys.argv[1], 7777))
        sys.exit(s.recv(9) != b"x")
    except TimeoutError:
        pass
sys.exit(1)' "$1"
	wait $!
	sed -n 2p /tmp/seen
}
postrouting() { iptables -t nat -S POSTROUTING | sed 1d; }
postrouting6() { ip6tables -t nat -S POSTROUTING | sed 1d; }

# admin COMMAND: -A or -I rules of an administrator, for both families: 192.0.2.2 is exempt by ACCEPT, .3 by RETURN,
# .4 by a chain that accepts, and .5 gets another source address
admin() {
	iptables -t nat -N EXEMPT
	iptables -t nat -A EXEMPT -d 192.0.2.4 -j ACCEPT
	iptables -t nat "$1" POSTROUTING -d 192.0.2.2 -j ACCEPT
	iptables -t nat "$1" POSTROUTING -d 192.0.2.3 -j RETURN
	iptables -t nat "$1" POSTROUTING -j EXEMPT
	iptables -t nat "$1" POSTROUTING -d 192.0.2.5 -j SNAT --to-source 192.0.2.9
	ip6tables -t nat "$1" POSTROUTING -d fd99::2 -j ACCEPT
	ip6tables -t nat "$1" POSTROUTING -d fd99::5 -j SNAT --to-source fd98::9
}

# more_addresses: give "outside" the addresses that admin uses, and .6, for which there is no rule
more_addresses() {
	local i
	for i in 3 4 5 6; do
		ip -n outside addr add "192.0.2.$i/24" dev eth0
		ip -n outside addr add "fd99::$i/64" dev eth0 nodad
	done
}

# obeys: the rules of admin apply, and other traffic is masqueraded
obeys() {
	local pod pod6
	pod=$(address 0)
	pod6=$(address 1)
	[ "$(seen 192.0.2.2)" = "$pod" ]
	[ "$(seen 192.0.2.3)" = "$pod" ]
	[ "$(seen 192.0.2.4)" = "$pod" ]
	[ "$(seen 192.0.2.5)" = 192.0.2.9 ]
	[ "$(seen 192.0.2.6)" = 192.0.2.1 ]
	[ "$(seen fd99::2)" = "$pod6" ]
	[ "$(seen fd99::5)" = fd98::9 ]
	[ "$(seen fd99::6)" = fd99::1 ]
}

# ---- iptables -------------------------------------------------------------------------

@test "masq: ACCEPT, RETURN and SNAT in POSTROUTING before ADD apply, with bridge and ptp" {
	more_addresses
	admin -A
	for type in bridge ptp; do
		conf $type
		add c1 one
		obeys
		[ "$(postrouting | tail -n 1)" = "$rule" ]
		[ "$(postrouting6 | tail -n 1)" = "$rule" ]
		check
		del c1 one
		# the rule belongs to no pod
		[ "$(postrouting | tail -n 1)" = "$rule" ]
	done
}

@test "masq: rules inserted after ADD apply at once, and rules appended after ADD from the next ADD or repair on" {
	more_addresses
	iptables -t nat -A POSTROUTING -d 10.99.0.0/16 -j ACCEPT
	ip6tables -t nat -A POSTROUTING -d fd99:99::/64 -j ACCEPT
	conf bridge
	add c1 one
	admin -I
	obeys
	iptables -t nat -F POSTROUTING
	iptables -t nat -F EXEMPT
	iptables -t nat -X EXEMPT
	ip6tables -t nat -F POSTROUTING
	repair
	admin -A
	[ "$(seen 192.0.2.2)" = 192.0.2.1 ]
	unchanged check
	add c2 two
	[ "$(postrouting | grep -c MASQUERADE)" = 1 ]
	obeys
}

@test "masq: if POSTROUTING is created after ADD, the next ADD or repair adds our rule" {
	more_addresses
	conf bridge
	add c1 one
	for restore in next_add repair; do
		admin -A
		[ "$(seen 192.0.2.6)" = 192.0.2.1 ]
		# another address takes precedence at once
		[ "$(seen 192.0.2.5)" = 192.0.2.9 ]
		unchanged check
		$restore
		obeys
		# without the chain our own table masquerades again, from the next ADD or repair on
		nft delete table ip nat
		nft delete table ip6 nat
		run unchanged check
		fails_with "chain POSTROUTING of iptables lacks our rule, so pods are not masqueraded; hawser-plugin repair restores it"
		repair
		unchanged check
		[ "$(seen 192.0.2.2)" = 192.0.2.1 ]
		[ "$(seen fd99::2)" = fd99::1 ]
	done
}

@test "masq: after iptables -F of table nat CHECK fails, and the next ADD or repair restores our rule" {
	iptables -t nat -A POSTROUTING -d 192.0.2.2 -j ACCEPT
	conf bridge
	add c1 one
	iptables -F
	[ "$(postrouting | tail -n 1)" = "$rule" ]
	for restore in next_add repair; do
		iptables -t nat -F
		[ "$(seen 192.0.2.2)" = 10.7.0.2 ]
		run unchanged check
		fails_with "chain POSTROUTING of iptables lacks our rule*hawser-plugin repair restores it"
		$restore
		unchanged check
		[ "$(postrouting)" = "$rule" ]
		[ "$(seen 192.0.2.2)" = 192.0.2.1 ]
	done
	iptables -t nat -I POSTROUTING -d 192.0.2.2 -j ACCEPT
	[ "$(seen 192.0.2.2)" = 10.7.0.2 ]
}

# expressions FAMILY: print the rules of POSTROUTING as the kernel has them, without handles and counters
expressions() {
	nft --debug=netlink list chain "$1" nat POSTROUTING |
		sed 's/ nat POSTROUTING [0-9]*//; s/pkts.*//; s/packets [0-9]* bytes [0-9]*//'
}

@test "masq: our rule in POSTROUTING is identical to a rule added by iptables" {
	iptables -t nat -A POSTROUTING -d 10.99.0.0/16 -j ACCEPT
	ip6tables -t nat -A POSTROUTING -d fd99:99::/64 -j ACCEPT
	conf bridge
	add c1 one
	for program in iptables ip6tables; do
		family=${program%tables}
		ours=$(expressions "$family")
		$program -t nat -C POSTROUTING -m connmark --mark 0x68617773 -j MASQUERADE
		$program-save -t nat >/tmp/saved
		$program -t nat -D POSTROUTING -m connmark --mark 0x68617773 -j MASQUERADE
		$program -t nat -A POSTROUTING -m connmark --mark 0x68617773 -j MASQUERADE
		diff <(echo "$ours") <(expressions "$family")
		$program-restore </tmp/saved
		check
		repair
		[ "$($program -t nat -S POSTROUTING | grep -c MASQUERADE)" = 1 ]
	done
	iptables -t nat -A POSTROUTING -m connmark --mark 0x68617773 -j MASQUERADE
	iptables -t nat -A POSTROUTING -d 10.98.0.0/16 -j ACCEPT
	unchanged check
	repair
	[ "$(postrouting)" = "-A POSTROUTING -d 10.99.0.0/16 -j ACCEPT"$'\n'"-A POSTROUTING -d 10.98.0.0/16 -j ACCEPT"$'\n'"$rule" ]
}

@test "masq: copies of our rule, which iptables-restore --noflush adds, are removed" {
	iptables -t nat -A POSTROUTING -d 10.99.0.0/16 -j ACCEPT
	conf bridge
	add c1 one
	{ echo '*nat' && yes -- "$rule" 2>/dev/null | head -n 300 && echo COMMIT; } >/tmp/copies
	add_copies() { iptables-restore --noflush </tmp/copies; }
	for remove in next_add repair; do
		add_copies
		[ "$(postrouting | wc -l)" = 302 ]
		$remove
		[ "$(postrouting)" = "-A POSTROUTING -d 10.99.0.0/16 -j ACCEPT"$'\n'"$rule" ]
	done
	add_copies
	iptables -t nat -A POSTROUTING -d 10.98.0.0/16 -j ACCEPT
	repair
	[ "$(postrouting | tail -n 1)" = "$rule" ]
	[ "$(postrouting | wc -l)" = 3 ]
	del c2 two
	del c1 one
	add_copies
	hawser-plugin uninstall
	[ "$(postrouting)" = "-A POSTROUTING -d 10.99.0.0/16 -j ACCEPT"$'\n'"-A POSTROUTING -d 10.98.0.0/16 -j ACCEPT" ]
}

@test "masq: a family without addresses, and a chain POSTROUTING that is not of iptables, are not changed" {
	ip6tables -t nat -A POSTROUTING -d fd99:99::/64 -j ACCEPT
	nft 'table ip nat { chain POSTROUTING { type nat hook postrouting priority 0; ip daddr 10.99.0.0/16 accept; }; }'
	tables() {
		nft list table ip6 nat
		nft list table ip nat
	}
	tables >/tmp/before
	conf bridge '{"ipam":{"type":"host-local","subnet":"10.7.0.0/24","routes":[{"dst":"0.0.0.0/0"}]}}'
	add c1 one
	tables | diff /tmp/before -
	[ "$(seen 192.0.2.2)" = 192.0.2.1 ]
	[ ! -e /run/hawser/host-objects ] || ! grep -r masquerade /run/hawser/host-objects
}

# host_seen MARK: send a packet with this mark from 192.0.2.8, an address of the host, to 192.0.2.6, and print the
# source address that "outside" sees
host_seen() {
	ip addr replace 192.0.2.8/32 dev lo
	rm -f /tmp/seen
	ip netns exec outside timeout 30 python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("192.0.2.6", 7777))
print("ready", flush=True)
print(s.recvfrom(9)[1][0], flush=True)' >/tmp/seen 3>&- &
	wait_until has_line ready /tmp/seen
	python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, int(sys.argv[1], 0))
s.bind(("192.0.2.8", 0))
s.sendto(b"x", ("192.0.2.6", 7777))' "$1"
	wait $!
	sed -n 2p /tmp/seen
}

# watch EXPRESSION...: count the packets to port 7777 that match each expression when they leave the host, and replies
# that match it when they arrive
watch() {
	local expression
	nft 'add table inet watch
		add chain inet watch leaving { type filter hook postrouting priority 300; }
		add chain inet watch arriving { type filter hook prerouting priority -150; }'
	for expression; do
		nft "add rule inet watch leaving udp dport 7777 $expression counter"
		nft "add rule inet watch arriving udp sport 7777 $expression counter"
	done
}
# watched: print the number of packets that each rule of watch has counted
watched() { nft list table inet watch | grep -o 'packets [0-9]*' | cut -d ' ' -f 2 | paste -sd ' '; }

@test "masq: marks of other programs are not changed, and such packets are not masqueraded" {
	more_addresses
	iptables -t nat -A POSTROUTING -d 10.99.0.0/16 -j ACCEPT
	# as wg-quick does
	iptables -t mangle -A POSTROUTING -m mark ! --mark 0 -j CONNMARK --save-mark
	conf bridge
	add c1 one
	for mark in 0x0000ca6c 0x00000800 0x7fffffff 0x00000001; do
		watch "meta mark $mark ct mark $mark"
		[ "$(host_seen $mark)" = 192.0.2.8 ]
		[ "$(watched)" = "1 0" ]
		nft delete table inet watch
	done
}

@test "masq: pods are masqueraded if their packets or connections have a mark of another program" {
	more_addresses
	admin -A
	iptables -t mangle -A PREROUTING -s 10.7.0.0/24 -j MARK --set-mark 0xca6c
	conf bridge
	add c1 one
	watch "meta mark 0xca6c ct mark 0" "ct mark 0x12345678"
	[ "$(seen 192.0.2.6)" = 192.0.2.1 ]
	[ "$(seen 192.0.2.2)" = 10.7.0.2 ]
	[ "$(watched)" = "2 0 0 0" ]
	# then only SNAT takes precedence
	iptables -t mangle -A PREROUTING -s 10.7.0.0/24 -j CONNMARK --set-mark 0x12345678
	[ "$(seen 192.0.2.6)" = 192.0.2.1 ]
	[ "$(seen 192.0.2.5)" = 192.0.2.9 ]
	[ "$(seen 192.0.2.2)" = 192.0.2.1 ]
	[ "$(watched)" = "2 3 0 3" ]
}

@test "masq: a connection has our mark only in POSTROUTING" {
	more_addresses
	admin -A
	conf bridge
	add c1 one
	watch "ct mark 0" "ct mark != 0"
	for address in 192.0.2.{2..6}; do seen "$address"; done
	[ "$(watched)" = "5 0 5 0" ]
}

@test "masq: without our table, our rule in a restored POSTROUTING masquerades nothing" {
	more_addresses
	iptables -t nat -A POSTROUTING -d 10.99.0.0/16 -j ACCEPT
	conf bridge
	add c1 one
	iptables-save >/tmp/saved
	nft flush ruleset
	iptables-restore </tmp/saved
	[ "$(postrouting | tail -n 1)" = "$rule" ]
	iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark
	for mark in 0 0x800 0xca6c 0x7fffffff; do [ "$(host_seen $mark)" = 192.0.2.8 ]; done
}

@test "masq: bit 11 of the packet mark is free for firewall and portmap" {
	more_addresses
	admin -A
	iptables -P FORWARD DROP
	conf bridge
	add c1 one
	chained() {
		jq -c --argjson keys "$1" --slurpfile prev /tmp/result.c1 '{cniVersion,name,prevResult:$prev[0]} + $keys' /tmp/conf |
			CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth0 "$plugins/$2" >/tmp/chained
	}
	chained '{"type":"firewall","forwardMarkBit":11}' firewall
	chained '{"type":"portmap","markMasqBit":11,"masqAll":true,"runtimeConfig":{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}}' portmap
	[ "$(seen 192.0.2.2)" = 10.7.0.2 ]
	[ "$(seen 192.0.2.6)" = 192.0.2.1 ]
	[ "$(connect outside one 192.0.2.1 tcp 8080 80)" = 10.7.0.1 ]
}

@test "masq: twenty concurrent first ADDs add our rule in POSTROUTING once" {
	iptables -t nat -A POSTROUTING -d 10.99.0.0/16 -j ACCEPT
	conf bridge
	for i in {1..20}; do ip netns add "p$i"; done
	for i in {1..20}; do
		add "c$i" "p$i" &
		adds[i]=$!
	done
	for i in {1..20}; do wait "${adds[i]}" || { cat "/tmp/result.c$i"; false; }; done
	[ "$(postrouting)" = "-A POSTROUTING -d 10.99.0.0/16 -j ACCEPT"$'\n'"$rule" ]
}

@test "uninstall: our rule in POSTROUTING stays while pods need it, and only our rule is removed" {
	iptables -t nat -A POSTROUTING -d 10.99.0.0/16 -j ACCEPT
	conf ptp
	add c1 one
	run -1 hawser-plugin uninstall
	[[ $output == *"the rule in POSTROUTING is still needed by a pod: 10.7.0.2 : jump masq_"* ]]
	[ "$(postrouting | tail -n 1)" = "$rule" ]
	del c1 one
	run -0 hawser-plugin uninstall
	[[ $output == *"iptables-masquerade ip POSTROUTING removed"* ]]
	[ "$(postrouting)" = "-A POSTROUTING -d 10.99.0.0/16 -j ACCEPT" ]
	[ ! -e /run/hawser ]
}

@test "masq: after an upgrade from 0.1.0, the first ADD in any network lets rules in POSTROUTING apply to all pods" {
	more_addresses
	conf bridge
	add c1 one
	as_0.1.0
	admin -A
	[ "$(seen 192.0.2.2)" = 192.0.2.1 ]
	cp /tmp/conf /tmp/conf.first
	conf bridge '{"name":"net2","bridge":"cni1","ipam":{"type":"host-local","ranges":[[{"subnet":"10.8.0.0/24"}],[{"subnet":"fd08::/64"}]]}}'
	add c2 two
	obeys
	mv /tmp/conf.first /tmp/conf
	check
	ip netns add three
	add c3 three
	obeys
	del c1 one
}

@test "masq: upstream's pods and ours are masqueraded beside each other" {
	need_go_plugins bridge host-local
	conf bridge
	plugin=$GO_PLUGINS/bridge add c2 two
	add c1 one
	[ "$(seen 192.0.2.2)" = 192.0.2.1 ]
	[ "$(seen 192.0.2.2 two)" = 192.0.2.1 ]
	check
	[ "$(postrouting | tail -n 1)" = "$rule" ]
	plugin=$GO_PLUGINS/bridge del c2 two
	[ "$(seen 192.0.2.2)" = 192.0.2.1 ]
}

# ---- native chains of nftables ----------------------------------------------------------

# native PRIORITY: a native nat chain with the rules of an administrator
native() {
	nft -f - <<-END
		table inet admin {
			chain after_routing {
				type nat hook postrouting priority $1;
				ip daddr 192.0.2.2 accept
				ip daddr 192.0.2.3 return
				ip daddr 192.0.2.5 snat ip to 192.0.2.9
				ip6 daddr fd99::5 snat ip6 to fd98::9
			}
		}
	END
}

@test "masq: in native chains SNAT takes precedence, in both load orders, but accept and return do not" {
	more_addresses
	conf bridge
	for priority in srcnat 110; do
		for order in before after; do
			[ $order = after ] || native $priority
			add c1 one
			[ $order = before ] || native $priority
			[ "$(seen 192.0.2.5)" = 192.0.2.9 ]
			[ "$(seen fd99::5)" = fd98::9 ]
			[ "$(seen 192.0.2.2)" = 192.0.2.1 ]
			[ "$(seen 192.0.2.3)" = 192.0.2.1 ]
			[ "$(seen 192.0.2.6)" = 192.0.2.1 ]
			del c1 one
			nft flush ruleset
		done
	done
}

# ---- ipMasqExclude ------------------------------------------------------------------------

# direct: print the destinations that hawser-plugin rules shows
direct() {
	hawser-plugin rules --json | jq -r '.[] | select(.set | startswith("direct")) | .element | split(" ")[0]'
}

@test "ipMasqExclude: traffic to these networks is not masqueraded, with bridge and ptp" {
	more_addresses
	for type in bridge ptp; do
		conf $type '{"ipMasqExclude":["192.0.2.2/31","192.0.2.3/32","192.0.2.5/32","192.0.2.5/32","fd99::2/128"]}'
		add c1 one
		pod=$(address 0)
		pod6=$(address 1)
		[ "$(seen 192.0.2.2)" = "$pod" ]
		[ "$(seen 192.0.2.3)" = "$pod" ]
		[ "$(seen 192.0.2.5)" = "$pod" ]
		[ "$(seen 192.0.2.6)" = 192.0.2.1 ]
		[ "$(seen fd99::2)" = "$pod6" ]
		[ "$(seen fd99::6)" = fd99::1 ]
		[ "$(direct)" = $'192.0.2.2/31\n192.0.2.5\nfd99::2' ]
		check
		# with iptables, the same destinations are exempt
		iptables -t nat -A POSTROUTING -d 10.99.0.0/16 -j ACCEPT
		repair
		[ "$(seen 192.0.2.2)" = "$pod" ]
		[ "$(seen 192.0.2.6)" = 192.0.2.1 ]
		del c1 one
		nft flush ruleset
	done
}

@test "ipMasqExclude: each pod keeps the networks of its own ADD" {
	more_addresses
	conf bridge '{"ipMasqExclude":["192.0.2.2/32"]}'
	add c1 one
	conf bridge '{"ipMasqExclude":["192.0.2.5/32"]}'
	add c2 two
	[ "$(seen 192.0.2.2)" = 10.7.0.2 ]
	[ "$(seen 192.0.2.2 two)" = 192.0.2.1 ]
	[ "$(seen 192.0.2.5 two)" = 10.7.0.3 ]
	conf bridge
	ip netns add three
	add c3 three
	[ "$(seen 192.0.2.2 three)" = 192.0.2.1 ]
	[ "$(seen 192.0.2.5 three)" = 192.0.2.1 ]
}

@test "ipMasqExclude: pods without a network share one chain" {
	conf bridge '{"isGateway":false,"ipMasqExclude":["192.0.2.2/32"],"ipam":{"type":"static","addresses":[{"address":"10.7.0.8/32"}]}}'
	add c1 one
	jq -c '.ipam.addresses[0].address = "10.7.0.9/32"' /tmp/conf >/tmp/other
	mv /tmp/other /tmp/conf
	add c2 two
	[ "$(nft list map inet hawser masq4 | grep -o 'masq_[0-9a-f]*' | sort -u | wc -l)" = 1 ]
	[ "$(direct)" = 192.0.2.2 ]
}

@test "ipMasqExclude: CHECK finds missing rules and networks, and repair restores them" {
	conf bridge '{"ipMasqExclude":["192.0.2.2/32"]}'
	add c1 one
	before=$(nft list ruleset)
	chain=$(nft list map inet hawser masq4 | grep -o 'masq_[0-9a-f]*')
	for damage in "flush ruleset" "flush chain inet hawser $chain" "flush set inet hawser direct4${chain#masq}"; do
		nft "$damage"
		run check
		fails_with "*hawser-plugin repair restores *"
		hawser-plugin repair
		check
		[ "$(nft list ruleset)" = "$before" ] || diff <(nft list ruleset) - <<<"$before"
	done
}

@test "ipMasqExclude: a malformed network is refused" {
	for type in bridge ptp; do
		for network in x 10.0.0.1 10.0.0.0/33 '10.0.0.0/8; flush ruleset'; do
			conf $type "$(jq -nc --arg network "$network" '{ipMasqExclude:[$network]}')"
			run call ADD c1 one
			fails_with 7 "ipMasqExclude: *"
		done
	done
	[ ! -e /run/hawser/attachments ] || [ -z "$(find /run/hawser/attachments -type f)" ]
}
