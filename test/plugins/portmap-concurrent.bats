#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# portmap: concurrent calls
# shellcheck disable=SC2154 # variables come from portmap.bash and from run
bats_require_minimum_version 1.5.0
load portmap

# call_c1 VERB NETWORK: call portmap for c1 with $tcp on a network. The configuration is in a file, so that
# nothing but portmap delays concurrent calls.
call_c1() {
	CNI_COMMAND=$1 CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth${2#net} "$plugins/portmap" \
		<"/tmp/conf.$2" >/dev/null
}

@test "portmap: concurrent ADD and DEL of attachments of one container lose no port" {
	pod c1 one
	second ADD c1
	with c1 "$tcp" | jq -c '.name = "net0"' >/tmp/conf.net0
	for network in net1 net2; do
		prev=/tmp/net.c1.2 with c1 "$tcp" | jq -c ".name = \"$network\" | .prevResult.interfaces[].name |=
			sub(\"^eth1\"; \"eth${network#net}\") | .prevResult.ips[0].address = \"10.8.0.1${network#net}/24\"" >/tmp/conf.$network
	done
	for _ in {1..40}; do
		call_c1 ADD net0
		call_c1 ADD net1 & first=$!
		call_c1 DEL net0 & wait $! && wait $first
		[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.11 . 80" ]
		call_c1 ADD net0
		call_c1 ADD net2
		call_c1 DEL net1 & first=$!
		call_c1 DEL net0 & wait $! && wait $first
		[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.8.0.12 . 80" ]
		call_c1 DEL net2
		[ "$(ours)" = "[]" ]
	done
	run -0 find /run/hawser/locks -name 'portmap-container-*'
	[ "${#lines[@]}" = 1 ]
}

@test "portmap: a blocked ADD delays other attachments of the container, but not other containers" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	second ADD c1
	exec 7<"$(echo /run/hawser/locks/portmap-container-*)"
	flock 7
	second ADD c1 "$tcp" 7<&- & waiting=$!
	add c2 "$udp"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80 anyport4 udp . 8080 : 10.7.0.3 . 80" ]
	exec 7<&-
	wait $waiting
	second CHECK c1 "$tcp"
}

@test "portmap: an ADD does not overtake a DEL that waits for the elements" {
	pod c1 one
	pod c2 two
	add c1 "$tcp"
	# an ADD that has the lock on the elements
	exec 7</run/hawser/locks/portmap-elements
	flock --shared 7
	del c1 7<&- & waiting=$!
	with c2 "$udp" >/tmp/conf.c2
	CNI_COMMAND=ADD CNI_CONTAINERID=c2 CNI_NETNS=/run/netns/two CNI_IFNAME=eth0 run -124 timeout 1 "$plugins/portmap" </tmp/conf.c2 7<&-
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.2 . 80" ]
	exec 7<&-
	wait $waiting
	del c2
	[ "$(ours)" = "[]" ]
}

@test "portmap: after forty concurrent ADDs, either one pod has the port on all addresses, or thirty pods have it on one each" {
	pod c1 one
	for i in {1..40}; do
		cp /tmp/net.c1 "/tmp/net.p$i"
		if [ $((i % 4)) = 0 ]; then maps=$tcp; else maps=${tcp/\}/,\"hostIP\":\"192.0.2.$i\"\}}; fi
		{ add "p$i" "$maps" >/dev/null && touch "/tmp/won.p$i"; } &
		adds[i]=$!
	done
	for i in {1..40}; do wait "${adds[i]}" || true; done
	any=$(nft list map inet hawser anyport4 | grep -c 'tcp . 8080' || true)
	some=$(ours | jq 'map(select(startswith("port4"))) | length')
	[ "$any $some" = "1 0" ] || [ "$any $some" = "0 30" ]
	[ "$(find /tmp -name 'won.p*' | wc -l)" = $((any + some)) ]
	for i in {1..40}; do
		del "p$i" "$tcp" &
		dels[i]=$!
	done
	for i in {1..40}; do wait "${dels[i]}"; done
	[ "$(ours)" = "[]" ]
	rm -f /tmp/won.*
}

# thousand CONTAINER: print the configuration of a container with 1000 ports
thousand() {
	with "$1" | jq -c '.runtimeConfig.portMappings = [range(1000) | {hostPort: (. + 20000), containerPort: 80, protocol: "tcp"}]'
}

@test "portmap: ADD and DEL of a thousand ports succeed while another program changes nftables all the time" {
	pod c1 one
	second ADD c1
	pod c2 two
	add c2 "$tcp" # loads the rules
	# without bats' descriptor 3, so that a failed test does not wait for these programs
	nft -i < <(yes "add table ip foreign; delete table ip foreign" 3>&-) >/dev/null 2>&1 3>&- &
	changer=$!
	# No call may wait for a pause of the other program. On a busy machine with two processors each takes half a second;
	# with a sanitizer, several times as long.
	limit=$([ "$(sanitizers)" = none ] && echo 5 || echo 60)
	thousand c1 >/tmp/conf.thousand
	call_timed() { CNI_COMMAND=$1 CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=$2 timeout "$limit" "$plugins/portmap" <"$3" >/dev/null; }
	call_timed ADD eth0 /tmp/conf.thousand
	call_timed CHECK eth0 /tmp/conf.thousand
	prev=/tmp/net.c1.2 thousand c1 | jq -c '.name = "net2"' >/tmp/conf.shared
	call_timed ADD eth1 /tmp/conf.shared
	call_timed DEL eth0 /tmp/conf.thousand
	[ "$(owned_ports | grep -o ': 10.8.0.2 ' | wc -l)" = 1000 ]
	call_timed DEL eth1 /tmp/conf.shared
	kill "$changer"
	[ "$(owned_ports)" = "anyport4 tcp . 8080 : 10.7.0.3 . 80" ]
}

@test "portmap: DEL removes its record while it holds the lock on the container's ports" {
	need strace
	pod c1 one
	add c1 "$tcp"
	record=$(find /run/hawser/attachments/portmap -type f)
	with c1 >/tmp/conf.traced
	CNI_COMMAND=DEL CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth0 ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 \
		strace -e trace=openat,flock,unlinkat,close -o /tmp/net.trace "$plugins/portmap" </tmp/conf.traced
	[ ! -e "$record" ]
	lock=$(sed -n 's|^openat(.*/locks/portmap-container-.* = \([0-9]*\)$|\1|p' /tmp/net.trace)
	# between the lock and its release: the removal of the record
	sed -n "/^flock($lock, LOCK_EX/,/^close($lock)/p" /tmp/net.trace >/tmp/net.locked
	grep -q "^close($lock)" /tmp/net.locked
	grep -q "^unlinkat(.*$record.* = 0$" /tmp/net.locked
}
