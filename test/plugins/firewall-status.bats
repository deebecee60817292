#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# firewall: STATUS finds chains of the host that drop the packets of pods
# shellcheck disable=SC2154 # variables come from firewall.bash and from run
bats_require_minimum_version 1.5.0
load firewall

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
		unreachable one outside 192.0.2.2
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

@test "STATUS: reads each of the chains with thousands of paths once" {
	need strace
	nft -f - <<-END
		table inet mine {
		$(for depth in {0..11}; do echo "chain l$depth { }"; done)
		chain onward { type filter hook forward priority 0; policy drop; jump l0; }
		}
		$(maze 11 2 'add rule inet mine l%d ip saddr 1.2.3.%d jump l%d')
	END
	run traced sendto,sendmsg status
	fails_with "nftables chain inet mine onward drops pod traffic; *"
	[ "$(grep -c 'send.*(' /tmp/trace)" -lt 32 ]
	# reading stops at a rule that may accept
	nft insert rule inet mine l0 iifname cni0 accept
	traced sendto,sendmsg status
	[ "$(grep -c 'send.*(' /tmp/trace)" -lt 20 ]
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
