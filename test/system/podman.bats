#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Debian's podman with our plugins only: a network as `podman network create` writes it (bridge with
# ipMasq, portmap, firewall, tuning), connections between containers, published ports, and cleanup.
bats_require_minimum_version 1.5.0
load ../lib
load ../state

setup() {
	need podman crun conmon busybox nft
	export CONTAINERS_CONF=/tmp/containers.conf CONTAINERS_STORAGE_CONF=/tmp/storage.conf
	[ -e /tmp/before ] || prepare # not in setup_file, which cannot skip tests
}

# prepare: create networks and a second host, run one container, and save the state after it
prepare() {
	cat >"$CONTAINERS_CONF" <<-CONF
	[network]
	network_backend = "cni"
	cni_plugin_dirs = ["$HAWSER_BUILD/cni"]
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	runtime = "crun"
	CONF
	cat >"$CONTAINERS_STORAGE_CONF" <<-CONF
	[storage]
	driver = "vfs"
	graphroot = "/tmp/storage"
	runroot = "/run/storage"
	CONF
	[ "$(podman info --format '{{.Host.NetworkBackend}}')" = cni ] ||
		skip "podman was built without the CNI backend"
	ip netns add outside
	ip link add out0 up type veth peer name eth0 netns outside
	ip address add 192.0.2.1/24 dev out0
	ip -n outside address add 192.0.2.2/24 dev eth0
	ip -n outside link set eth0 up
	ip netns exec outside busybox httpd -p 80 -h "$HAWSER_SRC/test/runtimes/www" 3>&-
	"$HAWSER_SRC/test/runtimes/image" /tmp/image.tar
	podman load -q -i /tmp/image.tar
	podman network create --subnet 10.77.0.0/24 --ipv6 --subnet fd00:77::/64 demo
	podman network create --subnet 10.78.0.0/24 demo2
	serve one --network demo2 -p 8080:80 # creates everything that stays after DEL
	podman rm -f -t 0 one
	wait_for_exit bridge portmap firewall tuning host-local
	save_steady_state /tmp/before
}

# nothing_left: assert that the state is the same as the saved one
nothing_left() {
	wait_for_exit bridge portmap firewall tuning host-local
	state | diff -U0 /tmp/before -
}

teardown() {
	[ -e /tmp/before ] || return 0 # prepare skipped or failed
	podman rm -f -t 0 --all >/dev/null 2>&1 || true
	nothing_left
}

state() {
	state_links
	state_netns
	state_files /run/hawser /var/lib/cni | grep -v -e last_reserved_ip -e locks/portmap- || true
	rules
}

# rules: print the nftables ruleset. Chains and elements are sorted, because their order changes after a flush; the rules of
# each chain are one line.
rules() {
	nft --json --stateless list ruleset |
		jq -cS '[.nftables[] | select(.metainfo | not) | del(.. | .handle?) |
			if .set.elem then .set.elem |= sort elif .map.elem then .map.elem |= sort else . end] |
			(map(select(.rule)) | group_by([.rule.family, .rule.table, .rule.chain])[]),
			(.[] | select(.rule | not))' | sort
}

# serve NAME [OPTION...]: start a container with a web server on port 80
serve() {
	podman run -d --cgroups=disabled --network demo --name "$@" hawser.test/busybox:1 \
		/bin/httpd -f -p 80 -h /www
	ready "$1"
}

# answers NAME: whether the web server in the container answers
answers() { [ -n "$(source_seen "$(address "$1")" 80)" ]; }

# ready NAME: wait until the web server in the container answers
ready() {
	wait_until answers "$1"
}

# address NAME, address6 NAME: print the addresses of a container
address() { podman inspect "$1" --format '{{.NetworkSettings.Networks.demo.IPAddress}}'; }
address6() { podman inspect "$1" --format '{{.NetworkSettings.Networks.demo.GlobalIPv6Address}}'; }

# source_seen ADDRESS PORT [COMMAND...]: connect to a server and print the source address that it sees; COMMAND
# runs the client in a namespace
source_seen() {
	printf 'GET /cgi-bin/who HTTP/1.0\r\n\r\n' | timeout 10 "${@:3}" busybox nc "$1" "$2" | tail -n 1
}

# seen AS ADDRESS PORT [COMMAND...]: assert that the server at ADDRESS sees the source address AS
seen() {
	local as
	as=$(source_seen "${@:2}")
	echo "$*: seen as '$as'"
	[ "$as" = "$1" ]
}

@test "podman: containers reach each other with their own addresses, and other hosts with the host's address" {
	serve one
	serve two
	seen "$(address one)" "$(address two)" 80 podman exec -i one
	seen "$(address two)" "$(address one)" 80 podman exec -i two
	seen "$(address6 one)" "$(address6 two)" 80 podman exec -i one
	seen 192.0.2.1 192.0.2.2 80 podman exec -i one
}

@test "podman: a published port is reachable on localhost, from other hosts and from containers" {
	serve one -p 8080:80
	serve two
	seen 10.77.0.1 127.0.0.1 8080
	seen 192.0.2.1 192.0.2.1 8080
	seen 192.0.2.2 192.0.2.1 8080 ip netns exec outside
	seen 10.77.0.1 192.0.2.1 8080 podman exec -i two
	seen 10.77.0.1 192.0.2.1 8080 podman exec -i one
	podman rm -f -t 0 one
	[ -z "$(source_seen 192.0.2.1 8080)" ]
}

# one_of WORD WORD...: succeeds if the first word is one of the remaining words
one_of() { [[ " ${*:2} " == *" $1 "* ]]; }

@test "podman: a container on two networks keeps its published port when it leaves one network" {
	serve one --network demo2 -p 8080:80
	one_of "$(source_seen 127.0.0.1 8080)" 10.77.0.1 10.78.0.1
	seen 192.0.2.2 192.0.2.1 8080 ip netns exec outside
	run podman run --cgroups=disabled --network demo2 -p 8080:80 --name two hawser.test/busybox:1 /bin/true
	[ "$status" != 0 ]
	[[ "$output" == *"host port 8080/tcp is taken by container $(podman inspect one --format '{{.Id}}'), "* ]]
	podman rm -f -t 0 two
	podman network disconnect demo one
	seen 10.78.0.1 127.0.0.1 8080
	seen 192.0.2.2 192.0.2.1 8080 ip netns exec outside
	podman network connect demo one
	podman network disconnect demo2 one
	seen 10.77.0.1 127.0.0.1 8080
	podman rm -f -t 0 one
	[ -z "$(source_seen 192.0.2.1 8080)" ]
}

@test "podman: network reload restores flushed rules" {
	serve one --network demo2 -p 8080:80
	nft flush ruleset
	podman network reload one
	seen 192.0.2.2 192.0.2.1 8080 ip netns exec outside
	seen 192.0.2.1 192.0.2.2 80 podman exec -i one
}

@test "podman: stop deletes all network state, and start creates it again" {
	serve one -p 8080:80
	podman stop -t 0 one
	nothing_left
	podman start one
	ready one
	seen 192.0.2.2 192.0.2.1 8080 ip netns exec outside
}
