#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap: DEL in any state, GC, and connection tracking of UDP ports
# shellcheck disable=SC2154 # variables come from portmap.bash and from run
bats_require_minimum_version 1.5.0
load portmap

@test "portmap: DEL succeeds without mappings, without a result, without a namespace, and twice" {
	pod c1 one
	add c1 "$tcp" "${udp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	call portmap DEL c1 "" "$(</tmp/conf)"
	[ "$(ours)" = "[]" ]
	call portmap DEL c1 "" "$(</tmp/conf)"
	add c1 "$tcp"
	rm -rf /run/hawser
	call portmap DEL c1 "" "$(jq -c ".runtimeConfig.portMappings = [$tcp]" /tmp/conf)"
	[ "$(ours)" = "[]" ]
}

@test "portmap: DEL with neither a record nor prevResult leaves no element with the pod's address" {
	conf '{"masqAll":true}'
	jq -cn '{cniVersion:"1.1.0",interfaces:[{name:"eth0",sandbox:"/run/netns/one"}],
		ips:[{interface:0,address:"10.9.0.3/32"},{interface:0,address:"fd09::3/128"}]}' >/tmp/net.c1
	sed 's/\.0\.3/.0.4/; s/::3/::4/' /tmp/net.c1 >/tmp/net.c2
	add c2 "$udp"
	ours >/tmp/net.others
	add c1 "$tcp"
	[ "$(ours | jq -r 'map(sub(" .*"; "")) | unique | join(" ")')" = "anymark4 anymark6 anyport4 anyport6 claimed self4 self6 snatall4 snatall6" ]
	rm -rf /run/hawser/attachments/portmap
	call portmap DEL c1 "" "$(jq -c ".runtimeConfig.portMappings = [$tcp]" /tmp/conf)"
	diff <(ours) /tmp/net.others
}

@test "portmap: GC deletes attachments that are no longer valid" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	add c2 "$udp"
	call portmap GC "" "" "$(jq -c '."cni.dev/valid-attachments" = [{containerID:"c2",ifname:"eth0"}]' /tmp/conf)"
	[ "$(ours | jq -c 'map(select(startswith("anyport4")))')" = '["anyport4 udp . 8080 : 10.7.0.3 . 80"]' ]
}

@test "portmap: ADD and DEL flush the conntrack entries of UDP ports" {
	pod c1 one
	pod c2 two
	sees() { ip netns exec outside python3 -IS -c ' # SECONDS
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(float(sys.argv[1]))
s.bind(("192.0.2.2", 5555))
s.sendto(b"x", ("192.0.2.1", 8080))
try:
    print(s.recv(9).decode())
except TimeoutError:
    print("no answer")' "$1"; }
	for netns in one two; do
		ip netns exec $netns timeout 120 python3 -IS -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 80))
open("/tmp/ready." + sys.argv[1], "w")
while True:
    s.sendto(sys.argv[1].encode(), s.recvfrom(9)[1])' $netns &
		wait_until test -e /tmp/ready.$netns
	done
	[ "$(sees 0.7)" = "no answer" ] # now conntrack has an entry for the host
	add c1 "$udp"
	[ "$(sees 30)" = one ]
	del c1
	[ "$(sees 0.7)" = "no answer" ]
	add c2 "$udp"
	[ "$(sees 30)" = two ]
	kill "$(jobs -p | head -n 1)" "$(jobs -p | tail -n 1)"
	rm -f /tmp/ready.*
}

has_udp_entry() { grep -q '^ipv4 .* udp .* dport=8080 ' /proc/net/nf_conntrack; }

@test "portmap: a failed ADD keeps the conntrack entries of another pod's UDP port" {
	[ -e /proc/net/nf_conntrack ] || skip "this kernel has no /proc/net/nf_conntrack"
	pod c1 one
	pod c2 two
	add c1 "$udp"
	python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 8080))'
	has_udp_entry
	run add c2 "$udp"
	fails_with "host port 8080/udp is taken by *"
	has_udp_entry
	run add c2 "${udp/\}/,\"hostIP\":\"192.0.2.1\"\}}" # one address of a port that another pod has on every address
	fails_with "host port 8080/udp is taken by *"
	has_udp_entry
	del c1
	run ! has_udp_entry
	add c1 "${udp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 8080))'
	run add c2 "$udp" # a port on every address, which another pod has on one of them
	fails_with "host port 8080/udp is taken by *"
	has_udp_entry
	del c1
	run ! has_udp_entry
}
