#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/differential.bats - the differential suite itself: it reports every kind of difference between
# a plugin and upstream's, and rows of allowed.tsv that are not needed
bats_require_minimum_version 1.5.0
load lib

# A copy of the suite with one small table. A wrapper around upstream's plugin takes the role of ours.
setup() {
	need ip jq
	need_go_plugins ptp host-local
	suite=$BATS_TEST_TMPDIR/differential
	export HAWSER_BUILD=$BATS_TEST_TMPDIR/build
	mkdir -p "$suite" "$HAWSER_BUILD/cni"
	cp "$HAWSER_SRC"/test/differential/{run,*.py} "$suite"
	cp "$HAWSER_SRC/test/waiting.py" "$BATS_TEST_TMPDIR"
	: >"$suite/allowed.tsv"
	printf 'one pod\n\tconf {"ipam": {"type": "host-local", "subnet": "10.1.2.0/24"}}\n' >"$suite/ptp.cases"
	ln -s "$GO_PLUGINS/host-local" "$HAWSER_BUILD/cni/host-local"
	wrapper ""
}

# wrapper COMMAND [VERB]: our plugin becomes a script that runs upstream's ptp and, after VERB (default
# ADD), COMMAND in the host's namespace
wrapper() {
	cat >"$HAWSER_BUILD/cni/ptp" <<-PTP
		#!/bin/bash
		out=\$($GO_PLUGINS/ptp) || { echo "\$out"; exit 1; }
		host=\$(jq -r '.interfaces[0].name' <<<"\$out")
		[ "\$CNI_COMMAND" != ${2:-ADD} ] || { ${1:-true}; }
		echo "\$out"
	PTP
	chmod +x "$HAWSER_BUILD/cni/ptp"
}

differs() { # FIELD UPSTREAM OURS: assert that the suite reports this difference
	run -1 "$suite/run" ptp
	[[ $output == *"# $1 | upstream: $2 | ours: $3"* ]] || { echo "$output"; false; }
}

@test "differential: no difference is reported for the same plugin on both sides" {
	run -0 "$suite/run" ptp
	[ "${lines[0]}" = 1..4 ]
	[ "$(grep -c '^ok ' <<<"$output")" = 4 ]
}

@test "differential: a different result is reported" {
	wrapper 'out=$(jq ".ips[0].gateway = \"10.1.2.9\"" <<<"$out")'
	differs "steps > 1 ADD pod1 > result > ips > 0 > gateway" 10.1.2.1 10.1.2.9
}

@test "differential: a different flag of a link is reported" {
	wrapper 'ip link set "$host" promisc on'
	differs "state > host > links > V1 > flags > PROMISC" - true
}

@test "differential: an additional address, route and rule and a changed sysctl are reported" {
	wrapper 'ip addr add 10.9.9.9/32 dev lo; ip route add 10.8.0.0/16 dev "$host"
		ip rule add from 10.7.0.0/16 table 7; sysctl -qw net.ipv4.conf."$host".arp_filter=1'
	differs "state > host > addrs > lo > 10.9.9.9/32 > scope" - global
	[[ $output == *"state > host > routes > 10.8.0.0/16 dev V1 via - table main > type"* ]]
	[[ $output == *"state > host > rules > -4 "*"10.7.0.0"* ]]
	[[ $output == *"state > host > sysctl > net/ipv4/conf/V1/arp_filter | upstream: 0 | ours: 1"* ]]
}

@test "differential: an unreachable pod is reported" {
	wrapper 'ip netns exec pod1 ip route add blackhole 10.1.2.1/32 metric 0 table 9
		ip netns exec pod1 ip rule add to 10.1.2.1 table 9'
	differs "reach > pod1 to host 10.1.2.1" true false
}

@test "differential: leftovers of DEL are reported, with the side whose DEL left them" {
	wrapper 'echo x >/var/lib/cni/left' DEL
	differs "left > files > /var/lib/cni/left" - 'x\n'
	grep -q "^not ok .*our DEL cleans up after upstream's ADD" <<<"$output"
	grep -q "^ok .*upstream's DEL cleans up after our ADD" <<<"$output"
}

@test "differential: a row of allowed.tsv allows its own difference and no other" {
	wrapper 'ip link set "$host" promisc on'
	printf '*\tptp\tone pod*\tstate > host > links > V* > flags > PROMISC\t-\ttrue\treason\n' >"$suite/allowed.tsv"
	run -0 "$suite/run" ptp
	wrapper 'ip link set "$host" promisc on; ip link set "$host" mtu 1400'
	differs "state > host > links > V1 > mtu" 1500 1400
}

@test "differential: a row of allowed.tsv that no case needs is a failure" {
	printf '*\tptp\tone*\tstate > host > *\t-\ttrue\told reason\n' >"$suite/allowed.tsv"
	run -1 "$suite/run" ptp
	[[ $output == *"# allowed.tsv:1: not needed: old reason"* ]]
}

@test "differential: a malformed table is reported with its name" {
	printf 'one pod\n\tpods 2\n' >"$suite/ptp.cases"
	run -1 "$suite/run" ptp
	[ "$output" = 'ptp.cases: "one pod" has no conf' ]
	printf 'one pod\n\tcnof {}\n' >"$suite/ptp.cases"
	run -1 "$suite/run" ptp
	[ "$output" = "ptp.cases:2: unknown keyword: cnof" ]
}

@test "differential: every plugin named in allowed.tsv has a .cases file" {
	cd "$HAWSER_SRC/test/differential"
	while read -r plugin; do
		[ -f "$plugin.cases" ]
	done < <(grep -v '^#' allowed.tsv | cut -f2 | sort -u)
}
