# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC1091 # paths are those of bats
#
# test/system/concurrent.bash - attachments by bridge and ptp, both dual stack, for many pods
load ../lib
load ../state

ranges='[[{"subnet": "10.NET.0.0/16"}], [{"subnet": "fd00:NET::/64"}]]'
# shellcheck disable=SC2034 # by name
conf_bridge='{"cniVersion": "1.1.0", "name": "on-bridge", "type": "bridge", "bridge": "br0",
	"isDefaultGateway": true, "ipMasq": true, "ipam": {"type": "host-local", "ranges": '${ranges//NET/1}'}}'
# shellcheck disable=SC2034
conf_ptp='{"cniVersion": "1.1.0", "name": "on-ptp", "type": "ptp",
	"ipMasq": true, "ipam": {"type": "host-local", "ranges": '${ranges//NET/2}'}}'

setup() {
	need ip tc nft jq
	export CNI_PATH=$HAWSER_BUILD/cni
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	umount /var/lib/cni/networks /run/hawser 2>/dev/null || true
	ip -all netns delete
	rm -rf /run/hawser /var/lib/cni/*
	nft flush ruleset
	for link in $(ip -j link show type veth | jq -r '.[].ifname'); do ip link del "$link" || true; done
	ip link del br0 2>/dev/null || true
	sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
}

# pods FROM TO: create the namespaces pFROM to pTO
pods() { seq -f 'netns add p%.0f' "$1" "$2" | ip -batch -; }

# call VERB TYPE N [MORE]: run plugin TYPE for pod N; MORE: additional members of the configuration
call() {
	local conf=conf_$2
	CNI_COMMAND=$1 CNI_CONTAINERID=c$3 CNI_NETNS=/run/netns/p$3 CNI_IFNAME=eth0 \
		"$HAWSER_BUILD/cni/$2" <<<"${!conf%\}}${4:+, $4}}"
}

add() { call ADD "$@" >"result.$2" 2>&1; }
del() { call DEL "$@"; }
check() { call CHECK "$1" "$2" "\"prevResult\": $(<"result.$2")"; }
gc() { call GC "$1" 0 "\"cni.dev/valid-attachments\": [${2-}]"; }
type_of() { [ $(($1 % 2)) = 0 ] && echo bridge || echo ptp; }

# at_once COMMAND N...: run COMMAND N for each N at the same time; fails if one of them fails
at_once() {
	local command=$1 n bad=0
	local -A pids
	shift
	for n; do
		"$command" "$n" &
		pids[$n]=$!
	done
	for n; do
		wait "${pids[$n]}" || { echo "$command $n failed: $(cat "result.$n")"; bad=1; }
	done
	return "$bad"
}

addresses() { jq -r '.ips[].address' result.*; }

# left: print the links, leases and records of attachments
left() {
	wait_for_exit bridge ptp
	ip -br link show type veth
	find /run/hawser/attachments /var/lib/cni/networks ! -type d ! -name lock ! -name 'last_*' ! -name ballast
}

state() {
	state_kernel
	state_files /run /var/lib/cni
	state_nft
	state_mounts
}

# ---- many at once ---------------------------------------------------------------------
