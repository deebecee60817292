#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap: a host port belongs to one container; conflicts between containers
# shellcheck disable=SC2154 # variables come from portmap.bash and from run
bats_require_minimum_version 1.5.0
load portmap

@test "portmap: a host port of another pod is refused, and the error says how to free it" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	run add c2 "$udp" "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, network net; if that container no longer exists, DEL with CNI_CONTAINERID=c1 CNI_IFNAME=eth0, or GC, on network net frees the port"
	[ "$(ours | jq -c 'map(select(startswith("anyport4")))')" = '["anyport4 tcp . 8080 : 10.7.0.2 . 80"]' ]
	ip netns del one
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, interface eth0, network net (its network namespace no longer exists); *"
	call portmap GC "" "" "$(jq -c '."cni.dev/valid-attachments" = [{containerID:"c2",ifname:"eth0"}]' /tmp/conf)"
	add c2 "$tcp"
	[ "$(seen outside two 192.0.2.1 tcp)" = 192.0.2.2 ]
	del c1 "$tcp"
	check c2 "$tcp"
}

@test "portmap: a port on every address conflicts with the same port on one address, in either order" {
	some='{"hostPort":8080,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.3"}'
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	run add c2 "$some"
	fails_with "host port 8080/tcp is taken by container c1, *"
	del c1
	add c2 "$some"
	run add c1 "$tcp"
	fails_with "host port 8080/tcp is taken by container c2, *"
	run add c1 "$some"
	fails_with "host port 8080/tcp is taken by container c2, *"
	add c1 "${some/.3/.1}"
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
	[ "$(seen outside two 192.0.2.3 tcp)" = 192.0.2.2 ]
	del c2
	ip netns add three
	cp /tmp/net.c2 /tmp/net.c3
	run add c3 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, *"
	del c1
	add c3 "$tcp"
	del c3
	[ "$(ours)" = "[]" ]
}

@test "portmap: a host port may be mapped once per family and protocol, and by one pod both on all addresses and on one" {
	pod c1 one
	pod c2 two
	add c1 "${tcp/\}/,\"hostIP\":\"0.0.0.0\"\}}" "${tcp/\}/,\"hostIP\":\"127.0.0.1\"\}}" "$udp"
	add c2 "${tcp/\}/,\"hostIP\":\"::\"\}}"
	[ "$(seen outside one 192.0.2.1 tcp)" = 192.0.2.2 ]
	[ "$(seen outside two fd99::1 tcp)" = fd99::2 ]
	[ "$(seen outside one fd99::1 udp)" = fd99::2 ]
	check c1 "${tcp/\}/,\"hostIP\":\"0.0.0.0\"\}}" "${tcp/\}/,\"hostIP\":\"127.0.0.1\"\}}" "$udp"
}

@test "portmap: DEL removes a host port that is mapped both on all addresses and on one, and leaves nothing behind" {
	some='{"hostPort":8080,"containerPort":81,"protocol":"tcp","hostIP":"192.0.2.1"}'
	pod c1 one
	pod c2 two
	for first in "$tcp" "$some"; do
		mappings=("$first" "$tcp" "$some") # a mapping that is listed twice is added once
		add c1 "${mappings[@]}"
		check c1 "${mappings[@]}"
		[ "$(seen outside one 192.0.2.1 tcp 8080 81)" = 192.0.2.2 ]
		[ "$(seen outside one 192.0.2.3 tcp 8080 80)" = 192.0.2.2 ]
		del c1
		[ "$(ours)" = "[]" ]
		nft flush ruleset
	done
	add c1 "$tcp" "$some"
	del c1
	add c2 "$some"
	run add c1 "$tcp"
	fails_with "host port 8080/tcp is taken by container c2, *"
}

@test "portmap: the error for a conflict with an attachment without a record lists the elements to delete" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	rm -rf /run/hawser/attachments/portmap
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by an attachment whose record is missing; if its container no longer exists, this frees the port: nft 'delete element inet hawser anyport4 { tcp . 8080 }; delete element inet hawser anyport6 { tcp . 8080 }; delete element inet hawser anymark4 { tcp . 8080 }; delete element inet hawser anymark6 { tcp . 8080 }; delete element inet hawser claimed { tcp . 8080 }'"
	jq -r .msg <<<"$output" | sed -n 's/.*: \(nft .*\)/\1/p' | bash
	[ "$(ours)" = "[]" ]
	add c2 "$tcp"
}

@test "portmap: the commands in the error also free a port that is mapped with a hostIP and conditions, and leave other ports alone" {
	pod c1 one
	pod c2 two
	conf '{"conditionsV4":["ip saddr 192.0.2.2"]}'
	add c1 "${tcp/\}/,\"hostIP\":\"192.0.2.3\"\}}" "${tcp/\}/,\"hostIP\":\"fd99::1\"\}}" "${udp/\}/,\"hostIP\":\"192.0.2.3\"\}}"
	rm -rf /run/hawser/attachments/portmap
	run add c2 "$tcp"
	jq -r .msg <<<"$output" | sed -n 's/.*: \(nft .*\)/\1/p' | bash
	[ "$(ours | jq -r 'map(sub(" .*"; "")) | join(" ")')" = "port4 cond4 mark4 claimed" ]
	[[ "$(owned_ports)" == "port4 udp . 192.0.2.3 . 8080 : "* ]]
	add c2 "$tcp"
	[ "$(seen outside two 192.0.2.3 tcp)" = 192.0.2.2 ]
}

@test "portmap: DEL releases a port number that several containers have on different addresses, after the last of them" {
	pod c1 one
	pod c2 two
	add c1 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	add c2 "${tcp/\}/,\"hostIP\":\"192.0.2.3\"\}}" "${tcp/\}/,\"hostIP\":\"fd99::1\"\}}"
	check c1 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	del c2
	check c1 "${tcp/\}/,\"hostIP\":\"192.0.2.1\"\}}"
	run add c2 "$tcp"
	fails_with "host port 8080/tcp is taken by container c1, *"
	add c2 "${tcp/\}/,\"hostIP\":\"::\"\}}" # the other family
	del c1
	run add c1 "${tcp/\}/,\"hostIP\":\"fd99::1\"\}}"
	fails_with "host port 8080/tcp is taken by container c2, *"
	del c2
	[ "$(ours)" = "[]" ]
	add c1 "$tcp"
	[ "$(ours | jq -c 'map(select(startswith("claimed")))')" = '["claimed tcp . 8080"]' ]
}

# requests CONTAINER MAPPING...: print how many messages ADD sends
requests() {
	with "$@" >/tmp/conf.traced
	CNI_COMMAND=ADD CNI_CONTAINERID=$1 CNI_NETNS=/run/netns/$(netns "$1") CNI_IFNAME=eth0 \
		ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -e trace=sendto,sendmsg -o /tmp/net.trace "$plugins/portmap" \
		</tmp/conf.traced >/dev/null
	grep -c AF_NETLINK /tmp/net.trace
}

@test "portmap: ADD sends the same number of messages, however many host addresses have ports" {
	need strace
	pod c1 one
	pod c2 two
	add c1 "$udp" # loads the rules
	before=$(requests c2 "$tcp")
	del c1
	del c2
	many=()
	for i in {1..30}; do many+=("{\"hostPort\":$((9000 + i)),\"containerPort\":80,\"protocol\":\"tcp\",\"hostIP\":\"192.0.2.$i\"}"); done
	add c1 "${many[@]}"
	[ "$(requests c2 "$tcp")" = "$before" ]
	del c2
	del c1
	[ "$(ours)" = "[]" ]
}
