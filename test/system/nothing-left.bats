#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Whole chains run by cnitool leave the machine unchanged: network, sysctls, nftables, processes, mounts,
# and files below /run/hawser, /run/cni and /var/lib/cni. Each test runs with a bridge and with ptp, both
# dual stack and followed by tuning. Host objects (created once per host), which stay on purpose, were
# created by an ADD and a DEL before the test; `uninstall` removes them.
bats_require_minimum_version 1.5.0
load ../lib
load ../state

setup() {
	need ip tc nft jq
	export CNI_PATH=$HAWSER_BUILD/cni NETCONFPATH=$BATS_TEST_TMPDIR/net.d
	mkdir "$NETCONFPATH"
	network bridge "$on_bridge"
	network ptp "" "$other"
	ip netns add pod
	initial=$(state)
	for net in bridge ptp; do
		cnitool add "$net" /run/netns/pod >/dev/null
		cnitool del "$net" /run/netns/pod
	done
	wait_for_plugins
	save_steady_state "$BATS_TEST_TMPDIR/before"
}

teardown() {
	ip netns del pod 2>/dev/null || true
	ip link del br0 2>/dev/null || true
	rm -rf /run/hawser /run/cni /var/lib/cni/*
	nft flush ruleset
	sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
}

dual='[[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00:1::/64"}]]'
other='[[{"subnet": "10.1.3.0/24"}], [{"subnet": "fd00:3::/64"}]]'
on_bridge='"bridge": "br0", "isDefaultGateway": true, "hairpinMode": true, "macspoofchk": true,'

# network NAME KEYS [RANGES]: write the configuration of network NAME, which uses the plugin NAME and tuning
network() {
	cat >"$NETCONFPATH/$1.conflist" <<-END
		{ "cniVersion": "1.1.0", "name": "$1", "plugins": [
			{ "type": "$1", $2 "mtu": 1400, "ipMasq": true, "ipam": { "type": "host-local", "ranges":
				${3:-$dual} } },
			{ "type": "tuning", "allmulti": true, "sysctl": { "net.ipv4.conf.IFNAME.arp_filter": "1",
				"net.core.somaxconn": "500" } } ] }
	END
}

state() {
	if [ -e /run/netns/pod ]; then state_kernel pod; else state_kernel; fi
	state_files /run/hawser /run/cni /var/lib/cni | grep -v last_reserved_ip || true
	state_nft
	state_mounts
}

# wait_for_plugins: wait until all plugins, and the background processes of DELs, have exited
wait_for_plugins() {
	wait_for_exit bridge ptp host-local tuning cnitool
}

# unchanged: assert that the state is the same as before the test
unchanged() {
	wait_for_plugins
	state | diff -U0 "$BATS_TEST_TMPDIR/before" -
}

# unchanged_without_pod: assert the same, ignoring the deleted namespace
unchanged_without_pod() {
	wait_for_plugins
	diff -U0 <(grep -v '^/pod \|^sysctl pod/\|netns' "$BATS_TEST_TMPDIR/before") <(state | grep -v netns)
}

on_each() { # COMMAND...: run COMMAND for each network, with $net set to its name
	for net in bridge ptp; do
		echo "# $net"
		"$@"
	done
}

add() { cnitool add "${1:-$net}" /run/netns/pod >/dev/null; }
del() { cnitool del "${1:-$net}" /run/netns/pod; }
check() { cnitool check "${1:-$net}" /run/netns/pod; }

# by_plugin TYPE VERB [NETNS]: call one plugin of the chain directly, without prevResult
by_plugin() {
	jq -c --arg type "$1" '{cniVersion, name} + (.plugins[] | select(.type == $type))' \
		"$NETCONFPATH/$net.conflist" |
		CNI_COMMAND=$2 CNI_CONTAINERID=$container CNI_NETNS=${3-/run/netns/pod} CNI_IFNAME=eth0 \
			"$HAWSER_BUILD/cni/$1"
}
# the container ID that cnitool derives from the path of the namespace
container=cnitool-$(printf %s /run/netns/pod | sha512sum | cut -c 1-20)

del_by_plugins() { by_plugin tuning DEL "$@" && by_plugin "$net" DEL "$@"; }

# ---- DEL in any state -------------------------------------------------------------------

@test "nothing left: ADD, CHECK and DEL leave nothing behind" {
	each() { add && check && del && unchanged; }
	on_each each
}

@test "nothing left: DEL twice succeeds and leaves nothing behind" {
	each() { add && del && del && unchanged; }
	on_each each
}

@test "nothing left: DEL without an ADD succeeds and changes nothing" {
	each() { del && unchanged; }
	on_each each
}

@test "nothing left: DEL without a cached result leaves nothing behind" {
	each() {
		add
		rm -r /var/lib/cni/results
		del_by_plugins
		unchanged
	}
	on_each each
}

@test "nothing left: DEL without a record leaves nothing behind" {
	each() {
		add
		rm -r /run/hawser/attachments
		del
		# only the record had the former value of a sysctl that does not belong to the interface
		ip netns exec pod sysctl -qw net.core.somaxconn=4096
		unchanged
	}
	on_each each
}

@test "nothing left: DEL with neither a record nor a cached result leaves nothing behind" {
	each() {
		add
		rm -r /run/hawser/attachments /var/lib/cni/results
		del_by_plugins
		ip netns exec pod sysctl -qw net.core.somaxconn=4096
		unchanged
	}
	on_each each
}

@test "nothing left: DEL with an empty netns path leaves nothing behind" {
	each() {
		add
		rm -r /var/lib/cni/results
		del_by_plugins ""
		ip netns exec pod sysctl -qw net.core.somaxconn=4096
		unchanged
	}
	on_each each
}

@test "nothing left: DEL after the namespace was deleted leaves nothing behind" {
	each() {
		add
		ip netns del pod
		del
		unchanged_without_pod
		ip netns add pod
	}
	on_each each
}

@test "nothing left: DEL after the bridge was deleted leaves nothing behind" {
	add bridge
	ip link del br0
	del bridge
	[ -z "$(ip link show type veth)" ]
	[ -z "$(find /run/hawser/attachments /var/lib/cni/networks/bridge/.hawser ! -type d)" ]
	add bridge # another ADD creates the bridge again
	check bridge
	del bridge
}

@test "nothing left: DEL of one attachment keeps the other attachment" {
	cnitool add bridge /run/netns/pod >/dev/null
	CNI_IFNAME=eth1 cnitool add ptp /run/netns/pod >/dev/null
	CNI_IFNAME=eth1 cnitool del ptp /run/netns/pod
	cnitool check bridge /run/netns/pod
	cnitool del bridge /run/netns/pod
	unchanged
}

# ---- ADDs that fail ------------------------------------------------------------------------

# chain: append the other plugins with records to the network
chain() {
	jq '.plugins += [{type: "portmap", capabilities: {portMappings: true}}, {type: "firewall"},
		{type: "bandwidth", egress: "ifb", ingressRate: 8000000, ingressBurst: 800000, egressRate: 8000000,
			egressBurst: 800000}]' "$NETCONFPATH/$net.conflist" >"$BATS_TEST_TMPDIR/chain"
	mv "$BATS_TEST_TMPDIR/chain" "$NETCONFPATH/$net.conflist"
	export CAP_ARGS='{"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}'
}

# add_again TYPE: call ADD of one plugin of the chain for the attached pod, with the result of the chain
add_again() {
	jq -c --arg type "$1" --argjson runtime "$CAP_ARGS" --slurpfile prev "$BATS_TEST_TMPDIR/result" \
		'{cniVersion, name, runtimeConfig: $runtime, prevResult: $prev[0]} + (.plugins[] | select(.type == $type))' \
		"$NETCONFPATH/$net.conflist" |
		CNI_COMMAND=ADD CNI_CONTAINERID=$container CNI_NETNS=/run/netns/pod CNI_IFNAME=eth0 "$HAWSER_BUILD/cni/$1"
}

@test "nothing left: a list may contain the same plugin twice" {
	before=$(state)
	jq '.plugins += [{type: "tuning", mtu: 1300, sysctl: {"net.core.somaxconn": "600"}}]' \
		"$NETCONFPATH/$net.conflist" >"$BATS_TEST_TMPDIR/twice"
	mv "$BATS_TEST_TMPDIR/twice" "$NETCONFPATH/$net.conflist"
	cnitool add "$net" /run/netns/pod >/dev/null
	[ "$(ip netns exec pod sysctl -n net.core.somaxconn)" = 600 ]
	[ "$(ip -n pod -j link show eth0 | jq '.[0].mtu')" = 1300 ]
	cnitool del "$net" /run/netns/pod
	[ "$(state)" = "$before" ]
}

@test "nothing left: every plugin with records refuses a second ADD, and the first stays" {
	each() {
		chain
		cnitool add "$net" /run/netns/pod >"$BATS_TEST_TMPDIR/result"
		save_steady_state "$BATS_TEST_TMPDIR/first"
		for type in $(jq -r '.plugins[].type' "$NETCONFPATH/$net.conflist"); do
			run add_again "$type"
			[ "$(jq .code <<<"$output")" = 1017 ]
			[ "$(jq -r .msg <<<"$output")" = "plugin $type: container $container interface eth0 is already attached to network $net; call DEL first" ]
			[ "$(jq .details <<<"$output")" = null ]
			state | diff -U0 "$BATS_TEST_TMPDIR/first" -
			check
		done
		# the cache has an entry of the first ADD: cnitool does not undo the second by a DEL
		run ! add
		state | diff -U0 "$BATS_TEST_TMPDIR/first" -
		check
		# nor if the entry was lost, because a plugin refuses the second ADD
		mv /var/lib/cni/results "$BATS_TEST_TMPDIR/results"
		run ! add
		mv "$BATS_TEST_TMPDIR/results" /var/lib/cni/results
		state | diff -U0 "$BATS_TEST_TMPDIR/first" -
		check
		del
		[ -z "$(find /run/hawser/attachments -type f)" ]
	}
	on_each each
}

# count: the number of links of the host, of files, and of elements in our nftables tables
count() {
	ip -o link | wc -l
	find /run/hawser/attachments /var/lib/cni/networks -type f | wc -l
	"$HAWSER_BUILD/bin/hawser-plugin" rules | wc -l
}

@test "nothing left: an ADD for a new namespace replaces the attachment of the dead pod" {
	each() {
		chain
		add
		first=$(count)
		ip netns del pod
		ip netns add pod
		add
		check
		wait_for_plugins
		[ "$(count)" = "$first" ]
		del
		[ -z "$(find /run/hawser/attachments -type f)" ]
		[ -z "$(ip link show type veth)" ]
	}
	on_each each
}

@test "nothing left: an ADD that fails because the interface exists leaves nothing behind" {
	# (not a veth: DEL would take a veth without a record for one of upstream's plugin, and delete it)
	ip -n pod link add eth0 type bridge
	wait_for_plugins
	state >"$BATS_TEST_TMPDIR/before"
	each() {
		run ! add
		unchanged
		run ! by_plugin "$net" ADD
		unchanged
	}
	on_each each
}

@test "nothing left: an ADD whose last plugin fails leaves nothing behind" {
	each() {
		sed -i s/arp_filter/nosuch/ "$NETCONFPATH/$net.conflist"
		run ! add
		unchanged
	}
	on_each each
}

@test "nothing left: a dual-stack ADD that finds no free IPv6 address leaves nothing behind" {
	one_v6='[[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00:1::/64", "rangeStart": "fd00:1::7",
		"rangeEnd": "fd00:1::7"}]]'
	ip netns add other
	each() {
		network "$net" "$([ "$net" = ptp ] || echo "$on_bridge")" "$one_v6"
		cnitool add "$net" /run/netns/other >/dev/null
		wait_for_plugins
		save_steady_state "$BATS_TEST_TMPDIR/half"
		run ! add
		wait_for_plugins
		state | diff -U0 "$BATS_TEST_TMPDIR/half" -
		cnitool del "$net" /run/netns/other
	}
	on_each each
	ip netns del other
	unchanged
}

# ---- GC, uninstall ----------------------------------------------------------------------------

@test "nothing left: GC instead of DEL leaves nothing behind" {
	each() {
		add
		cnitool --yes gc "$net"
		unchanged
	}
	on_each each
}

@test "nothing left: uninstall removes the host objects" {
	forwarding='forward\|conf/all/accept_redirects'
	each() { add && del; }
	on_each each
	wait_for_plugins
	"$HAWSER_BUILD/bin/hawser-plugin" uninstall
	# host-local's files lock and last_reserved_ip stay, as in upstream. Forwarding stays enabled, with the
	# sysctls that the kernel changes together with it.
	rm /var/lib/cni/networks/{bridge,ptp}/lock
	diff -U0 <(grep -v "$forwarding" <<<"$initial") <(state | grep -v "$forwarding")
	[ ! -e /run/hawser ]
}
