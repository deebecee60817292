#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Debian's podman on our plugins alone: a network as `podman network create` writes it (bridge with
# ipMasq, portmap, firewall, tuning), containers that talk, published ports, and nothing left.
bats_require_minimum_version 1.5.0
load lib
load state

setup() {
	need podman crun conmon busybox nft
	export CONTAINERS_CONF=/tmp/containers.conf CONTAINERS_STORAGE_CONF=/tmp/storage.conf
	[ -e /tmp/before ] || prepare # not setup_file: that can skip nothing
}

# prepare: a network, a host beyond this one, and how everything looks after a container's life
prepare() {
	# crun refuses cgroup v1 with a cgroup2 mount that holds controllers beside it; the mount
	# namespace is this file's own.
	umount /sys/fs/cgroup/unified 2>/dev/null || true
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
	serve one --network demo2 -p 8080:80 # with all that stays once it is made
	podman rm -f -t 0 one
	settle bridge portmap firewall tuning host-local
	calm /tmp/before
}

# nothing_left: everything is as it was without a container
nothing_left() {
	settle bridge portmap firewall tuning host-local
	state | diff -U0 /tmp/before -
}

# Nothing of a container is left, whatever the test was about.
teardown() {
	[ -e /tmp/before ] || return 0 # it was skipped, or failed
	podman rm -f -t 0 --all >/dev/null 2>&1 || true
	nothing_left
}

state() {
	state_links
	state_netns
	state_files /run/hawser /var/lib/cni | grep -v -e last_reserved_ip -e locks/portmap-container- || true
	rules
}

# rules: all of nftables but "upto4", where numbers stay once they were needed. After a flush chains and
# elements come in another order, which means nothing; the rules of a chain are a line of their own.
rules() {
	nft --json --stateless list ruleset |
		jq -cS '[.nftables[] | select((.metainfo or .set.name == "upto4") | not) | del(.. | .handle?) |
			if .set.elem then .set.elem |= sort elif .map.elem then .map.elem |= sort else . end] |
			(map(select(.rule)) | group_by([.rule.family, .rule.table, .rule.chain])[]),
			(.[] | select(.rule | not))' | sort
}

# serve NAME [OPTION...]: a container that answers on port 80
serve() {
	podman run -d --cgroups=disabled --network demo --name "$@" hawser.test/busybox:1 \
		/bin/httpd -f -p 80 -h /www
	ready "$1"
}

# ready NAME: wait until it answers
ready() {
	for _ in {1..50}; do
		[ -z "$(who "$(address "$1")" 80)" ] || return 0
		sleep 0.1
	done
	return 1
}

# address NAME, address6 NAME: of a container
address() { podman inspect "$1" --format '{{.NetworkSettings.Networks.demo.IPAddress}}'; }
address6() { podman inspect "$1" --format '{{.NetworkSettings.Networks.demo.GlobalIPv6Address}}'; }

# who ADDRESS PORT [COMMAND...]: as whom the server there sees COMMAND's network
who() {
	printf 'GET /cgi-bin/who HTTP/1.0\r\n\r\n' | timeout 10 "${@:3}" busybox nc "$1" "$2" | tail -n 1
}

# seen AS ADDRESS PORT [COMMAND...]
seen() {
	local as
	as=$(who "${@:2}")
	echo "$*: seen as '$as'"
	[ "$as" = "$1" ]
}

@test "podman: containers reach each other as themselves, and the outside as the host" {
	serve one
	serve two
	seen "$(address one)" "$(address two)" 80 podman exec -i one
	seen "$(address two)" "$(address one)" 80 podman exec -i two
	seen "$(address6 one)" "$(address6 two)" 80 podman exec -i one
	seen 192.0.2.1 192.0.2.2 80 podman exec -i one
}

@test "podman: a published port answers on localhost, to the outside and to containers" {
	serve one -p 8080:80
	serve two
	seen 10.77.0.1 127.0.0.1 8080
	seen 192.0.2.1 192.0.2.1 8080
	seen 192.0.2.2 192.0.2.1 8080 ip netns exec outside
	seen 10.77.0.1 192.0.2.1 8080 podman exec -i two
	seen 10.77.0.1 192.0.2.1 8080 podman exec -i one
	podman rm -f -t 0 one
	[ -z "$(who 192.0.2.1 8080)" ]
}

# one_of WORD WORD...: the first is one of the others
one_of() { [[ " ${*:2} " == *" $1 "* ]]; }

@test "podman: a container on two networks has its published port as long as it is on one" {
	serve one --network demo2 -p 8080:80
	one_of "$(who 127.0.0.1 8080)" 10.77.0.1 10.78.0.1
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
	[ -z "$(who 192.0.2.1 8080)" ]
}

@test "podman: network reload brings back what somebody else flushed" {
	serve one --network demo2 -p 8080:80
	nft flush ruleset
	podman network reload one
	seen 192.0.2.2 192.0.2.1 8080 ip netns exec outside
	seen 192.0.2.1 192.0.2.2 80 podman exec -i one
}

@test "podman: stop frees everything but the container, start takes it up again" {
	serve one -p 8080:80
	podman stop -t 0 one
	nothing_left
	podman start one
	ready one
	seen 192.0.2.2 192.0.2.1 8080 ip netns exec outside
}
