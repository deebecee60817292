# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# test/pod.bash - helpers for tests of a plugin that creates a pod's interface
#
# The test file defines $pod_plugin (the name of the plugin), $plugins (the directory of our plugins)
# and the function conf JSON [IPAM], which prints a configuration.
# shellcheck disable=SC2154

# call VERB CONTAINER NETNS CONF: call the plugin; NETNS is a name, a path or ""
call() {
	local netns=$3
	case $netns in "" | /*) ;; *) netns=/run/netns/$netns ;; esac
	CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=$netns CNI_IFNAME=eth0 "${plugin:-$plugins/$pod_plugin}" <<<"$4"
}
# upstream VERB CONTAINER NETNS CONF: the same for upstream's plugin
upstream() { plugin=$GO_PLUGINS/$pod_plugin call "$@"; }

# try_add JSON [IPAM]: ADD container c1 in netns one
# add JSON [IPAM]: the same, and write the result to /tmp/result
try_add() {
	conf "$@" >/tmp/conf
	call ADD c1 one "$(</tmp/conf)"
}
add() { try_add "$@" >/tmp/result; }
result() { jq -r "$1" /tmp/result; }
with_result() { jq -c --slurpfile prev /tmp/result '.prevResult = $prev[0]' /tmp/conf; }
check() { call CHECK c1 one "$(with_result)"; }
del() { call DEL c1 "${1-one}" "$(with_result)"; }

# drifts MESSAGE COMMAND...: assert that CHECK succeeds before COMMAND and fails with MESSAGE after it
drifts() {
	local message=$1
	shift
	check
	"$@"
	run check
	fails_with 999 "$message"
}

# leases: print the allocated addresses
leases() {
	find /var/lib/cni/networks/net -type f \( -name '*.*.*.*' -o -name '*:*' \) -printf '%f\n' 2>/dev/null |
		sort
}

# works_in_every_version COMMAND [KEYS]: ADD, with $static as IPAM, and DEL in every spec version; COMMAND must
# succeed after each DEL
works_in_every_version() {
	local version
	for version in 0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0; do
		add '{"cniVersion":"'$version'"'"${2:+,$2}"'}' "$static"
		[ "$(result .cniVersion)" = "$version" ]
		ip -n one addr show eth0 | grep -q 10.7.0.9/24
		call DEL c1 one "$(</tmp/conf)"
		"$1"
	done
}

# add_forty_at_once: forty concurrent ADDs of /tmp/conf, of containers c1 to c40 in new namespaces p1 to p40; each
# pod gets another address. The results are /tmp/r1 to /tmp/r40.
add_forty_at_once() {
	local i adds
	for i in {1..40}; do ip netns add "p$i"; done
	for i in {1..40}; do
		call ADD "c$i" "p$i" "$(</tmp/conf)" >"/tmp/r$i" &
		adds[i]=$!
	done
	for i in {1..40}; do wait "${adds[i]}" || { cat "/tmp/r$i"; return 1; }; done
	[ "$(jq -r '.ips[0].address' /tmp/r? /tmp/r?? | sort -u | wc -l)" = 40 ]
}

# delete_forty_at_once: forty concurrent DELs of these pods
delete_forty_at_once() {
	local i dels
	for i in {1..40}; do
		call DEL "c$i" "p$i" "$(</tmp/conf)" &
		dels[i]=$!
	done
	for i in {1..40}; do wait "${dels[i]}" || return; done
}
