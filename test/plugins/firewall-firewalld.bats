#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# firewall: firewalld, simulated by firewalld.py on a private bus, and Debian's
# shellcheck disable=SC2154 # variables come from firewall.bash and from run
bats_require_minimum_version 1.5.0
load firewall

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
	unreachable one outside 192.0.2.2
	add c1 one
	reaches one outside 192.0.2.2
	reaches one outside fd99::2
	check c1 one
	del c1 one
	unreachable one outside 192.0.2.2
	[ "$(nft list ruleset | grep -c 10.7.0.2)" = 0 ]
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
