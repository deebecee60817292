# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# pod.bash: words for tests of a plugin that gives a pod its interface. $pod_plugin names it, $plugins
# is where ours are, and conf JSON [IPAM] makes a configuration: all three are the test file's.
# shellcheck disable=SC2154

# call VERB CONTAINER NETNS CONF: the plugin; NETNS is a name, a path or ""
call() {
	local netns=$3
	case $netns in "" | /*) ;; *) netns=/run/netns/$netns ;; esac
	CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=$netns CNI_IFNAME=eth0 "${plugin:-$plugins/$pod_plugin}" <<<"$4"
}
go() { plugin=$GO_PLUGINS/$pod_plugin call "$@"; }

# add JSON [IPAM]: ADD container c1 in netns one; what it says is in /tmp/result
try_add() {
	conf "$@" >/tmp/conf
	call ADD c1 one "$(</tmp/conf)"
}
add() { try_add "$@" >/tmp/result; }
result() { jq -r "$1" /tmp/result; }
with_result() { jq -c --slurpfile prev /tmp/result '.prevResult = $prev[0]' /tmp/conf; }
check() { call CHECK c1 one "$(with_result)"; }
del() { call DEL c1 "${1-one}" "$(with_result)"; }

# drifts MESSAGE COMMAND...: CHECK finds what COMMAND did
drifts() {
	local message=$1
	shift
	check
	"$@"
	run check
	fails_with 999 "$message"
}

leases() { # addresses that are taken
	find /var/lib/cni/networks/net -type f \( -name '*.*.*.*' -o -name '*:*' \) -printf '%f\n' 2>/dev/null |
		sort
}

# talks FROM ADDRESS: can netns FROM reach a server of netns two at ADDRESS, by TCP?
talks() {
	rm -f /tmp/server
	ip netns exec two timeout 10 python3 -c '
import socket, sys
s = socket.create_server((sys.argv[1], 7777), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("ready", flush=True)
s.accept()[0].sendall(b"hello")' "$2" >/tmp/server &
	until grep -qs ready /tmp/server; do sleep 0.01; done
	[ "$(ip netns exec "$1" timeout 5 python3 -c '
import socket, sys
print(socket.create_connection((sys.argv[1], 7777), 5).recv(9).decode())' "$2")" = hello ]
	wait
}

# end_pods: their links and namespaces; a namespace's own end takes a while, and its links with it
end_pods() {
	local link netns

	for link in $(ip -j link show type veth | jq -r '.[].ifname'); do ip link del "$link" || true; done
	for netns in $(ip netns list | cut -d ' ' -f 1); do ip netns del "$netns"; done
}
