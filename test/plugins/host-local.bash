# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # variables are those of the tests and of run
#
# test/plugins/host-local.bash - functions for the tests of host-local
load ../lib

ours=$HAWSER_BUILD/cni/host-local
upstream=$GO_PLUGINS/host-local
leases=/var/lib/cni/networks/net

setup() {
	need jq
	rm -rf /var/lib/cni/* /run/hawser /tmp/data
	echo 0123456789abcdef0123456789abcdef >/etc/machine-id
}

# call PLUGIN VERB ID IPAM [MORE]: run a plugin; MORE: additional JSON members
call() {
	CNI_COMMAND=$2 CNI_CONTAINERID=$3 CNI_NETNS=/run/netns/nosuch CNI_IFNAME=${IFNAME:-eth0} \
		CNI_ARGS=${ARGS:-} CNI_PATH=$HAWSER_BUILD/cni \
		"$1" <<<"{\"cniVersion\":\"${VERSION:-1.0.0}\",\"name\":\"net\",\"type\":\"x\"${4:+,\"ipam\":$4}${5:+,$5}}"
}

add() { call "$ours" ADD "$@"; }
del() { call "$ours" DEL "$@"; }
ips() { jq -r '.ips[].address'; }

# traced STRACE-ARGUMENT...: run strace, without the leak sanitizer, which does not work under strace
traced() { ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -o /tmp/trace "$@"; }

# held [DIR]: list the leases
held() {
	find "${1:-$leases}" -maxdepth 1 -type f ! -name lock ! -name 'last_reserved_ip*' -printf '%f\n' | sort
}

entries() { find "$leases/.hawser" -type l | wc -l; }

# Debian's build of upstream's plugin prints an empty "dns" in results of CNI version 1.0.0, and prints the keys
# in a different order; newer releases of the plugin do neither.
normalize() { jq -S 'if .dns == {} then del(.dns) else . end'; }

# same ID IPAM-KEYS [MORE]: assert that ADD of both plugins, on separate directories, returns the same
# result and writes the same files
same() {
	call "$upstream" ADD "$1" "{$2,\"dataDir\":\"/tmp/data/upstream\"}" "${3:-}" | normalize >/tmp/upstream
	call "$ours" ADD "$1" "{$2,\"dataDir\":\"/tmp/data/ours\"}" "${3:-}" | normalize >/tmp/ours
	diff /tmp/upstream /tmp/ours
	diff <(held /tmp/data/upstream/net) <(held /tmp/data/ours/net)
	diff <(cd /tmp/data/upstream/net && cat last*) <(cd /tmp/data/ours/net && cat last*)
}

small='{"ranges":[[{"subnet":"10.1.0.0/29"}]]}' # .2 to .6
dual='{"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00::/64"}]]}'
