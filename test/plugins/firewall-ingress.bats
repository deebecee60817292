#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# firewall: ingressPolicy
# shellcheck disable=SC2154 # variables come from firewall.bash and from run
bats_require_minimum_version 1.5.0
load firewall

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
	unreachable one three "$(address c3 0)"
	unreachable three one "$(address c1 1)"
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
	unreachable one two "$(address c2 0)"
	unreachable two one "$(address c1 1)"
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
