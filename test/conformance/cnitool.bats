#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/conformance/cnitool.bats - upstream's cnitool and ours check and delete each other's attachments

setup() {
	export CNI_PATH=$BATS_TEST_TMPDIR/ours:/usr/lib/cni
	mkdir "$BATS_TEST_TMPDIR/ours"
	ln -s "$HAWSER_BUILD/cni/loopback" "$BATS_TEST_TMPDIR/ours"
	export NETCONFPATH=$BATS_TEST_TMPDIR/net.d
	export CAP_ARGS='{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}'
	export CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAME=pod'
	ours=$HAWSER_BUILD/bin/cnitool
	mkdir -p "$NETCONFPATH"
	ip netns add pod
}

teardown() {
	ip netns del pod || true
	ip link del conf0 2>/dev/null || true
	rm -rf /var/lib/cni/results /var/lib/cni/networks
}

network() { # VERSION: a network of our loopback and Debian's bridge and portmap
	cat >"$NETCONFPATH/10-net.conflist" <<CONF
{ "cniVersion": "$1", "name": "net", "plugins": [
  { "type": "loopback" },
  { "type": "bridge", "bridge": "conf0", "isGateway": true, "ipam": { "type": "host-local",
    "ranges": [[{ "subnet": "10.98.0.0/24" }]], "routes": [{ "dst": "0.0.0.0/0" }] } },
  { "type": "portmap", "capabilities": { "portMappings": true } } ] }
CONF
}

own_network() { # a network of version 1.1.0 with only our plugins
	echo '{"cniVersion":"1.1.0","name":"net","plugins":[{"type":"loopback"}]}' \
		>"$NETCONFPATH/10-net.conflist"
}

# Replaces what differs between two runs: MAC addresses, random link names, the address of the pod.
masked() { sed -E 's/([0-9a-f]{2}:){5}[0-9a-f]{2}/MAC/g; s/veth[0-9a-f]{8}/VETH/g; s/10\.98\.0\.[0-9]+\/24/POD/'; }

nothing_left() {
	[ -z "$(find /var/lib/cni -type f ! -name lock ! -name 'last_reserved_ip.*')" ]
	[ -z "$(ip -o link show type veth)" ]
}

# Debian's portmap 1.1.1 looks for its IPv4 rules in ip6tables, so its CHECK fails for every port.
# Therefore CHECK runs without port mappings.
add_check_del() { # VERSION ADDER DELETER
	network "$1"
	"$2" add net /run/netns/pod
	[ "$1" = 0.3.1 ] || CAP_ARGS="{}" "$3" check net /run/netns/pod
	"$3" del net /run/netns/pod
	nothing_left
}

for_versions() { for v in 0.3.1 0.4.0 1.0.0; do add_check_del "$v" "$@"; done; }

@test "conformance: upstream's cnitool checks and deletes our attachments" {
	for_versions "$ours" "$GO_CNITOOL"
}
@test "conformance: our cnitool checks and deletes upstream's attachments" {
	for_versions "$GO_CNITOOL" "$ours"
}

@test "conformance: add of both programs prints the same result" {
	for v in 0.3.1 0.4.0 1.0.0; do
		network "$v"
		theirs=$("$GO_CNITOOL" add net /run/netns/pod | masked)
		"$GO_CNITOOL" del net /run/netns/pod
		mine=$("$ours" add net /run/netns/pod | masked)
		"$ours" del net /run/netns/pod
		diff <(echo "$theirs") <(echo "$mine")
	done
}

@test "conformance: the cache files of both programs have the same contents" {
	network 1.0.0
	"$GO_CNITOOL" add net /run/netns/pod
	theirs=$(jq -S . /var/lib/cni/results/net-* | masked)
	name=$(ls /var/lib/cni/results)
	"$GO_CNITOOL" del net /run/netns/pod
	"$ours" add net /run/netns/pod
	mine=$(jq -S . /var/lib/cni/results/net-* | masked)
	[ "$name" = "$(ls /var/lib/cni/results)" ]
	"$ours" del net /run/netns/pod
	diff <(echo "$theirs") <(echo "$mine")
}

@test "conformance: gc of each program deletes attachments of the other, and status of both succeeds" {
	own_network
	for pair in "$ours $GO_CNITOOL" "$GO_CNITOOL $ours"; do
		read -r adder collector <<<"$pair"
		"$adder" add net /run/netns/pod
		"$collector" status net /run/netns/pod
		"$collector" gc net /run/netns/pod
		nothing_left
		[ -z "$(ip -n pod -o link show lo up)" ]
	done
}

@test "conformance: a failed add of both programs has the same exit status and prints the same cause" {
	network 1.0.0
	sed -i 's/"bridge": "conf0"/"bridge": "conf0", "vlan": 5000/' "$NETCONFPATH/10-net.conflist"
	run "$GO_CNITOOL" add net /run/netns/pod
	theirs=$status
	run "$ours" add net /run/netns/pod
	[ "$status" = "$theirs" ]
	[[ "$output" == *"invalid VLAN ID 5000"* ]]
	nothing_left
}
