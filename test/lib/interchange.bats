#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The cache has upstream's format: podman (with upstream's libcni) and our library read each other's
# files. Uses podman's own containers and networks, and Debian's upstream plugins.
load ../lib

setup() {
	need podman crun conmon busybox iptables jq
	need_go_plugins bridge host-local portmap
	mkdir -p /tmp/rootfs/bin /tmp/net.d
	cp "$(command -v busybox)" /tmp/rootfs/bin/sleep
	cat >/tmp/net.d/demo.conflist <<-CONF
	{ "cniVersion": "0.4.0", "name": "demo", "plugins": [
	  { "type": "bridge", "bridge": "demo0", "isGateway": true, "ipMasq": true, "ipam": {
	    "type": "host-local", "ranges": [[{ "subnet": "10.77.0.0/24" }]],
	    "routes": [{ "dst": "0.0.0.0/0" }] } },
	  { "type": "portmap", "capabilities": { "portMappings": true } } ] }
	CONF
	cat >/tmp/containers.conf <<-CONF
	[network]
	network_backend = "cni"
	network_config_dir = "/tmp/net.d"
	cni_plugin_dirs = ["/usr/lib/cni"]
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	runtime = "crun"
	CONF
	export CONTAINERS_CONF=/tmp/containers.conf
	backend=$(pod info --format '{{.Host.NetworkBackend}}')
	[ "$backend" = cni ] || skip "podman was built without the CNI backend"
	id=$(pod run -d --name one --network demo -p 8080:80 --cgroups=disabled \
		--rootfs /tmp/rootfs /bin/sleep 1000)
	[ "$(ls /var/lib/cni/results)" = "demo-$id-eth0" ]
	ls /var/lib/cni/networks/demo/10.77.0.*
}

teardown() { pod rm -f -t 0 one >/dev/null 2>&1 || true; }

pod() { podman --root /tmp/pr --runroot /tmp/prr --storage-driver vfs "$@"; }

assert_nothing_left() {
	[ -z "$(ls /var/lib/cni/results)" ]
	[ -z "$(find /var/lib/cni/networks/demo -name '10.77.0.*')" ]
	left=$(
		ip -o link show type veth
		iptables-save -t nat | grep -e "$id" -e CNI-DN || true
	)
	[ -z "$left" ]
}

@test "interchange: podman removes a container with a cache file that we rewrote" {
	before=$(jq -S . "/var/lib/cni/results/demo-$id-eth0")
	inode=$(stat -c %i "/var/lib/cni/results/demo-$id-eth0")
	run "$HAWSER_BUILD/test/interchange" rewrite "$id"
	[ "$output" = "1 attachments" ]
	[ "$(stat -c %i "/var/lib/cni/results/demo-$id-eth0")" != "$inode" ]
	# podman's libcni does not store the netns; ours does.
	diff <(echo "$before") <(jq -S 'del(.netns)' "/var/lib/cni/results/demo-$id-eth0")
	pod rm -f -t 0 one
	assert_nothing_left
}

@test "interchange: our DEL works with the cache that podman wrote, and podman rm still succeeds" {
	run "$HAWSER_BUILD/test/interchange" del "$id"
	[ "$output" = "1 attachments" ]
	assert_nothing_left
	pod rm -f -t 0 one
}
