#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# host-local compared with upstream's plugin (Debian's), on separate directories and on a shared one;
# host-local-leases.bats tests what only our plugin has.
# shellcheck disable=SC2034,SC2154 # variables of host-local.bash, and of run
bats_require_minimum_version 1.5.0
load host-local

# same_error IPAM [MORE]: assert that ADD of both plugins fails with the same message
same_error() {
	run call "$upstream" ADD c1 "$@"
	[ "$status" = 1 ]
	expected=$(jq -r .msg <<<"$output")
	run call "$ours" ADD c1 "$@"
	[ "$status" = 1 ]
	echo "upstream: $expected" && echo "ours:     $(jq -r .msg <<<"$output")"
	[ "$(jq -r .msg <<<"$output")" = "$expected" ]
}

# ---- compared with upstream ------------------------------------------------------------------

@test "host-local: ADD returns the same result and writes the same files as upstream, for each form of ranges" {
	need_go_plugins host-local
	n=0
	while read -r keys; do
		rm -rf /tmp/data
		for id in a b c; do
			same "$id" "$keys"
		done
		n=$((n + 1))
	done <<-'END'
		"subnet":"10.1.0.0/24"
		"subnet":"10.1.0.0/24","rangeStart":"10.1.0.10","rangeEnd":"10.1.0.20","gateway":"10.1.0.254"
		"subnet":"10.1.0.0/24","ranges":[[{"subnet":"fd00::/64"}]]
		"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00::/64","gateway":"fd00::5"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0","gw":"fd00::9"}]
		"ranges":[[{"subnet":"10.1.0.0/30"},{"subnet":"10.2.0.0/24","rangeStart":"10.2.0.1","rangeEnd":"10.2.0.3","gateway":"10.2.0.2"}]]
		"ranges":[[{"subnet":"10.1.0.0/29","rangeStart":"10.1.0.4"}]]
		"ranges":[[{"subnet":"fd00::/120","rangeStart":"fd00::fe"},{"subnet":"fd01::/64"}]]
		"ranges":[[{"subnet":"10.1.0.0/24","gateway":"192.168.0.1"}]]
	END
	[ "$n" = 8 ]
}

@test "host-local: ADD returns the same result as upstream in all versions that Debian's plugin supports" {
	need_go_plugins host-local
	for VERSION in 0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0; do
		rm -rf /tmp/data
		same a '"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00::/64"}]],"routes":[{"dst":"0.0.0.0/0"}]'
	done
}

@test "host-local: allocation starts after the last address and wraps around, as in upstream" {
	need_go_plugins host-local
	keys='"ranges":[[{"subnet":"10.1.0.0/29"},{"subnet":"10.2.0.0/30"}]]'
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		same "c$i" "$keys"
		call "$upstream" DEL "c$i" "{$keys,\"dataDir\":\"/tmp/data/upstream\"}"
		del "c$i" "{$keys,\"dataDir\":\"/tmp/data/ours\"}"
	done
}

@test "host-local: addresses requested in CNI_ARGS, args and runtimeConfig are allocated as in upstream" {
	need_go_plugins host-local
	keys='"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00::/64"}]]'
	ARGS='IP=10.1.0.50' same a "$keys"
	ARGS='IgnoreUnknown=1;X=y;IP=10.1.0.51/24' same b "$keys"
	same c "$keys" '"args":{"cni":{"ips":["10.1.0.60","fd00::60/64"]}}'
	same d "$keys" '"runtimeConfig":{"ips":["fd00::70"]}'
	ARGS='IP=10.1.0.80' same e "$keys" '"runtimeConfig":{"ips":["fd00::80"]}'
	same f "$keys"
	ARGS='IP=' same g "$keys"
}

@test "host-local: runtimeConfig.ipRanges come before all other sets, as in upstream" {
	need_go_plugins host-local
	for id in a b; do
		same "$id" '"subnet":"10.1.0.0/24","ranges":[[{"subnet":"10.2.0.0/24"}]]' \
			'"runtimeConfig":{"ipRanges":[[{"subnet":"10.3.0.0/24"}],[{"subnet":"fd00::/64"}]]}'
	done
}

@test "host-local: the contents of resolvConf are returned as dns, as in upstream" {
	need_go_plugins host-local
	printf '# one\n;two\n  nameserver 10.0.0.1 x\nnameserver\tfd00::1\nnameserver\ndomain a\ndomain b c\nsearch x  y\nsearch z\noptions ndots:2 rotate # no\nsortlist 1\n' >/tmp/resolv
	same a '"subnet":"10.1.0.0/24","resolvConf":"/tmp/resolv"'
	run add b '{"subnet":"10.1.0.0/24","resolvConf":"/tmp/nosuch"}'
	[ "$status" = 1 ]
	[ ! -e "$leases" ]
}

@test "host-local: each invalid configuration is refused with the same error text as in upstream" {
	need_go_plugins host-local
	same_error ""
	same_error '{}'
	same_error '{"ranges":[]}'
	same_error '{"ranges":[[]]}'
	same_error '{"ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"fd00::/64"}]]}'
	same_error '{"ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"10.1.0.0/25"}]]}'
	same_error '{"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.1.0.0/25"}]]}'
	same_error '{"ranges":[[{"subnet":"10.1.0.0/31"}]]}'
	same_error '{"ranges":[[{"subnet":"fd00::/127"}]]}'
	same_error '{"ranges":[[{"subnet":"10.1.0.4/24"}]]}'
	same_error '{"ranges":[[{"subnet":"10.1.0.0/24","rangeStart":"10.2.0.1"}]]}'
	same_error '{"ranges":[[{"subnet":"10.1.0.0/24","rangeStart":"fd00::1"}]]}'
	same_error '{"ranges":[[{"subnet":"10.1.0.0/24","rangeEnd":"10.2.0.1"}]]}'
	same_error '{"ranges":[[{"subnet":"10.1.0.0/24","rangeStart":"10.1.0.9","rangeEnd":"10.1.0.5"}]]}'
	same_error '{"ranges":[[{"gateway":"10.1.0.1"}]]}'
	VERSION=0.2.0 same_error '{"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}'
	ARGS='IP=nonsense' same_error "$small"
}

@test "host-local: each refused address has the same error text as in upstream, and nothing is left behind" {
	need_go_plugins host-local
	ARGS='IP=10.1.0.1' same_error "$small"
	ARGS='IP=10.9.0.1' same_error "$small"
	same_error "$small" '"args":{"cni":{"ips":["10.1.0.3","10.9.0.1"]}}'
	[ -z "$(held)" ]
	rm -r "$leases"
	add other "$small"
	ARGS='IP=10.1.0.2' same_error "$small"
	for i in 1 2 3 4; do add "o$i" "$small"; done
	same_error "$small"
	same_error '{"ranges":[[{"subnet":"10.2.0.0/24"}],[{"subnet":"10.1.0.0/29"}]]}'
	[ "$(held | wc -l)" = 5 ]
}

# ---- on the same directory as upstream -------------------------------------------------------

@test "host-local: our DEL and CHECK work on upstream's leases, and upstream's on ours" {
	need_go_plugins host-local
	call "$upstream" ADD a "$dual"
	call "$ours" CHECK a "$dual"
	add b "$dual"
	call "$upstream" CHECK b "$dual"
	[ "$(held | wc -l)" = 4 ]
	del a "$dual"
	[ "$(held | tr '\n' ' ')" = "10.1.0.3 fd00::3 " ]
	call "$upstream" DEL b "$dual"
	[ -z "$(held)" ]
	[ "$(entries)" = 0 ]
}

@test "host-local: DEL finds upstream's leases by prevResult, without reading other leases" {
	need_go_plugins host-local
	need strace
	call "$upstream" ADD a "$dual" >/tmp/a
	for id in b c d; do call "$upstream" ADD "$id" "$dual"; done
	CNI_COMMAND=DEL CNI_CONTAINERID=a CNI_IFNAME=eth0 CNI_PATH=/x traced -e openat "$ours" \
		<<<"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"ipam\":$dual,\"prevResult\":$(cat /tmp/a)}"
	[ "$(held | wc -l)" = 6 ]
	run ! grep -E '10\.1\.0\.[345]|fd00::[345]' /tmp/trace
}

@test "host-local: DEL without prevResult also releases leases that upstream made for the same attachment" {
	need_go_plugins host-local
	need strace
	scans() { # ID: does its DEL read other leases?
		CNI_COMMAND=DEL CNI_CONTAINERID=$1 CNI_IFNAME=eth0 CNI_PATH=/x traced -e openat "$ours" \
			<<<"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"ipam\":$small}"
		grep -q "\"$(held)\"" /tmp/trace
	}
	call "$upstream" ADD b "$small"
	call "$upstream" ADD a "$small"
	add a "$small" # upstream would read all leases and refuse the ADD
	[ "$(held | wc -l)" = 3 ]
	del a "$small"
	[ "$(held)" = 10.1.0.2 ]
	# the index is known to be complete until upstream creates a lease
	del b "$small"
	add c "$small"
	add d "$small"
	run ! scans d
	call "$upstream" ADD e "$small"
	add e "$small"
	del e "$small"
	[ "$(held | wc -l)" = 1 ]
	# the same in a directory that our plugin created
	rm -r "$leases"
	add c "$small"
	add d "$small"
	run ! scans d
	call "$upstream" ADD e "$small"
	call "$upstream" DEL e "$small"
	add d "$small"
	scans d
}

@test "host-local: a second ADD of an attachment is refused, and the first keeps its lease" {
	add a "$dual"
	run add a "$dual"
	fails_with "failed to allocate for range 0: 10.1.0.2 has been allocated to a, duplicate allocation is not allowed"
	[ "$(held | tr '\n' ' ')" = "10.1.0.2 fd00::2 " ]
	IFNAME=eth1 add a "$dual"
	del a "$dual"
	[ "$(held | tr '\n' ' ')" = "10.1.0.3 fd00::3 " ]
	need_go_plugins host-local
	IFNAME=eth1 run call "$upstream" ADD a "$dual"
	fails_with "failed to allocate for range 0: 10.1.0.3 has been allocated to a, duplicate allocation is not allowed"
}

@test "host-local: 100 concurrent ADDs, half of them upstream's, lease 100 different addresses per family" {
	need_go_plugins host-local
	for i in $(seq 100); do
		plugin=$ours
		[ $((i % 2)) = 0 ] || plugin=$upstream
		call "$plugin" ADD "c$i" "$dual" >"/tmp/r$i" &
	done
	wait
	[ "$(cat /tmp/r* | jq -r '.ips[].address' | sort | uniq | wc -l)" = 200 ]
	[ "$(held | wc -l)" = 200 ]
	for i in $(seq 100); do
		plugin=$upstream
		[ $((i % 2)) = 0 ] || plugin=$ours
		call "$plugin" DEL "c$i" "$dual" &
	done
	wait
	[ -z "$(held)" ]
	[ "$(entries)" = 0 ]
	rm /tmp/r*
}

@test "host-local: upstream does not mistake an index entry for a lease" {
	need_go_plugins host-local
	add a "$small"
	rm "$leases/10.1.0.2" # removed by hand
	run call "$upstream" CHECK a "$small"
	[ "$status" = 1 ]
	call "$upstream" ADD a "$small"
	[ "$(held | wc -l)" = 1 ]
	call "$upstream" DEL a "$small"
	[ -z "$(held)" ]
}

@test "host-local: a lease that contains only a container ID, as in old versions, belongs to that container" {
	mkdir -p "$leases"
	printf a >"$leases/10.1.0.2"
	printf ' a\r\n' >"$leases/10.1.0.3"
	printf b >"$leases/10.1.0.4"
	call "$ours" CHECK a "$small"
	del a "$small"
	[ "$(held)" = 10.1.0.4 ]
}
