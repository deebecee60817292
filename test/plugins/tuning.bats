#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# tuning compared with upstream's plugin (Debian's), each on a veth in its own namespace; then features that
# only our plugin has: DEL restores sysctls, and succeeds even if a part of the state is missing; CHECK compares
# every attribute.
bats_require_minimum_version 1.5.0
load ../lib

ours=$HAWSER_BUILD/cni/tuning
upstream=$GO_PLUGINS/tuning

setup() {
	need ip jq
	rm -rf /etc/cni/tuning /run/cni /run/hawser
	for ns in one two; do
		ip netns add "$ns"
		ip -n "$ns" link add eth0 address 02:00:00:00:00:01 type veth \
			peer name peer address 02:00:00:00:00:02
		ip -n "$ns" link set eth0 up
	done
}

teardown() {
	ip netns del one 2>/dev/null || true
	ip netns del two 2>/dev/null || true
}

previous='"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"peer","mac":"02:00:00:00:00:02"},
	{"name":"eth0","mac":"02:00:00:00:00:01","sandbox":"/run/netns/x"}],
	"ips":[{"interface":1,"address":"10.1.2.3/24"}]}'

# call PLUGIN VERB NETNS KEYS: run a plugin; KEYS: JSON members
call() {
	CNI_COMMAND=$2 CNI_CONTAINERID=c1 CNI_NETNS=${3:+/run/netns/$3} CNI_IFNAME=eth0 \
		CNI_ARGS=${ARGS:-} CNI_PATH=$HAWSER_BUILD/cni \
		"$1" <<<"{\"cniVersion\":\"${VERSION:-1.0.0}\",\"name\":\"${NET:-net}\",\"type\":\"tuning\",$previous${4:+,$4}}"
}

# state NETNS: print the attributes and sysctls that tuning can change
state() {
	ip -n "$1" -j -d link show eth0 | jq -c '.[] | {address, mtu, txqlen, promiscuity, flags}'
	ip netns exec "$1" sysctl net.core.somaxconn net.ipv4.conf.eth0.log_martians \
		net.ipv4.ip_local_port_range
}

normalize() { jq -S 'if .dns == {} then del(.dns) else . end'; }

# same KEYS: assert that ADD of both plugins has the same result and effect
same() {
	call "$upstream" ADD one "$1" | normalize >/tmp/upstream
	call "$ours" ADD two "$1" | normalize >/tmp/ours
	diff /tmp/upstream /tmp/ours
	diff <(state one) <(state two)
}

saved=/run/cni/tuning/c1_eth0.json
everything='"mac":"02:00:00:00:00:99","promisc":true,"mtu":1400,"allmulti":true,
	"sysctl":{"net.core.somaxconn":"500","net.ipv4.conf.IFNAME.log_martians":"1",
		"net.ipv4.ip_local_port_range":"2000 3000"}'

@test "tuning: ADD has the same effect and result as in upstream, for each attribute and for all at once" {
	need_go_plugins tuning
	for keys in '"mac":"02:00:00:00:00:99"' '"mtu":1300' '"promisc":true' '"allmulti":true' \
		'"sysctl":{"net.core.somaxconn":"500"}' "$everything" ''; do
		same "$keys"
		teardown
		setup
	done
}

@test "tuning: the file of former values is the same as upstream's, byte for byte" {
	need_go_plugins tuning
	call "$upstream" ADD one "$everything"
	mv "$saved" /tmp/upstream
	call "$ours" ADD two "$everything"
	diff /tmp/upstream "$saved"
	[ "$(stat -c %a "$saved")" = 600 ]
}

@test "tuning: our DEL restores what upstream's ADD changed, and upstream's DEL what our ADD changed" {
	need_go_plugins tuning
	keys='"mac":"02:00:00:00:00:99","promisc":true,"mtu":1400,"allmulti":true'
	before=$(state one)
	call "$upstream" ADD one "$keys"
	[ "$(state one)" != "$before" ]
	call "$ours" DEL one "$keys"
	[ "$(state one)" = "$before" ]
	[ ! -e "$saved" ]
	call "$ours" ADD one "$keys"
	[ "$(state one)" != "$before" ]
	call "$upstream" DEL one "$keys"
	[ "$(state one)" = "$before" ]
	[ ! -e "$saved" ]
}

@test "tuning: a MAC address in args overrides runtimeConfig, which overrides CNI_ARGS, which overrides the configuration" {
	mac() { ip -n one -j link show eth0 | jq -r '.[].address'; }
	add() { # MAC KEYS
		run call "$ours" ADD one "$2"
		[ "$(mac)" = "$1" ]
		[ "$(jq -r '.interfaces[1].mac' <<<"$output")" = "$1" ]
		call "$ours" DEL one "$2"
		[ "$(mac)" = 02:00:00:00:00:01 ]
	}
	conf='"mac":"02:00:00:00:01:01"'
	runtime='"runtimeConfig":{"mac":"02:00:00:00:01:03"}'
	args='"args":{"cni":{"mac":"02:00:00:00:01:04"}}'
	add 02:00:00:00:01:01 "$conf"
	ARGS='MAC=02:00:00:00:01:02' add 02:00:00:00:01:02 "$conf"
	ARGS='MAC=02:00:00:00:01:02' add 02:00:00:00:01:03 "$conf,$runtime"
	ARGS='MAC=02:00:00:00:01:02' add 02:00:00:00:01:04 "$conf,$runtime,$args"
}

@test "tuning: args override all keys of the configuration, and replace or add single sysctls" {
	call "$ours" ADD one '"mtu":1400,"sysctl":{"net.core.somaxconn":"500","net.ipv4.conf.IFNAME.log_martians":"1"},
		"args":{"cni":{"mtu":1300,"txQLen":77,"promisc":true,"allmulti":true,
			"sysctl":{"net.core.somaxconn":"600"}}}'
	run state one
	[[ $output == *'"mtu":1300,"txqlen":77,"promiscuity":1'*PROMISC* ]]
	[[ $output == *'somaxconn = 600'*'log_martians = 1'* ]]
	call "$ours" DEL one ""
	call "$ours" ADD two '"args":{"cni":{"sysctl":{"net.core.somaxconn":"700"}}}'
	run state two
	[[ $output == *'somaxconn = 700'* ]]
}

@test "tuning: DEL also restores sysctls and the length of the transmit queue" {
	before=$(state one)
	call "$ours" ADD one "$everything,\"txQLen\":77"
	[ "$(state one)" != "$before" ]
	call "$ours" DEL one "$everything,\"txQLen\":77"
	[ "$(state one)" = "$before" ]
	[ -z "$(find /run/hawser/attachments -type f)" ]
}

@test "tuning: DEL and a failed ADD of another network leave alone what the first network saved" {
	before=$(state one)
	call "$ours" ADD one "$everything"
	tuned=$(state one)
	NET=other previous='"a":1' call "$ours" DEL one "$everything"
	NET=other previous='"a":1' call "$ours" DEL "" "$everything"
	NET=other previous='"a":1' run ! call "$ours" ADD one "$everything"
	NET=other run ! call "$ours" ADD one '"mtu":70000'
	[ "$(state one)" = "$tuned" ]
	[ -e "$saved" ]
	call "$ours" DEL one "$everything"
	[ "$(state one)" = "$before" ]
	[ ! -e "$saved" ]
}

@test "tuning: a repeated DEL of another network leaves alone what the first network saved" {
	before=$(state one)
	call "$ours" ADD one "$everything"
	tuned=$(state one)
	NET=other call "$ours" ADD one '"mtu":1300'
	for _ in 1 2 3; do
		NET=other call "$ours" DEL one '"mtu":1300'
		[ "$(state one)" = "$tuned" ]
		[ -e "$saved" ]
	done
	call "$ours" DEL one "$everything"
	[ "$(state one)" = "$before" ]
	[ ! -e "$saved" ]
}

@test "tuning: a failed ADD does not change the file that upstream's ADD has written" {
	need_go_plugins tuning
	before=$(state one)
	call "$upstream" ADD one '"mtu":1400'
	cp "$saved" /tmp/saved
	# the kernel refuses the sysctl, and the MTU
	run ! call "$ours" ADD one '"mtu":1300,"sysctl":{"net.core.somaxconn":"x"}'
	diff /tmp/saved "$saved"
	run ! call "$ours" ADD one '"mtu":70000'
	diff /tmp/saved "$saved"
	call "$upstream" DEL one '"mtu":1400'
	[ "$(state one)" = "$before" ]
}

@test "tuning: each network and each entry of a list restores what it saved itself" {
	before=$(state one)
	for second in 'NET=other' 'NET=net'; do
		call "$ours" ADD one "$everything"
		tuned=$(state one)
		env_call() { local "$second" && call "$@"; }
		env_call "$ours" ADD one '"mtu":1300,"mac":"02:00:00:00:00:77"'
		[ "$(state one)" != "$tuned" ]
		env_call "$ours" DEL one '"mtu":1300,"mac":"02:00:00:00:00:77"'
		[ "$(state one)" = "$tuned" ]
		call "$ours" DEL one "$everything"
		[ "$(state one)" = "$before" ]
		[ ! -e "$saved" ]
	done
}

@test "tuning: DEL and CHECK under another network name work if prevResult names the interface" {
	keys='"mac":"02:00:00:00:00:99","promisc":true,"mtu":1400,"allmulti":true'
	before=$(state one)
	for plugin in "$ours" "$upstream"; do
		[ -x "$plugin" ] || continue
		call "$ours" ADD one "$keys"
		NET=renamed call "$plugin" CHECK one "$keys"
		NET=renamed call "$plugin" DEL one "$keys"
		[ "$(state one)" = "$before" ]
		[ ! -e "$saved" ]
		call "$ours" DEL one "$keys"
		[ "$(state one)" = "$before" ]
	done
}

@test "tuning: a failed ADD changes nothing" {
	before=$(state one)
	run call "$ours" ADD one '"mtu":1400,"sysctl":{"net.core.somaxconn":"500","net.ipv4.nosuch":"1"}'
	[ "$status" = 1 ]
	[ "$(state one)" = "$before" ]
	run call "$ours" ADD one '"mtu":70000,"mac":"02:00:00:00:00:99","sysctl":{"net.core.somaxconn":"500"}'
	[ "$status" = 1 ]
	[ "$(state one)" = "$before" ]
	[ ! -e "$saved" ]
	[ -z "$(find /run/hawser/attachments -type f)" ]
}

@test "tuning: a MAC address of the wrong length is refused, and nothing is changed" {
	before=$(state one)
	for mac in 02:00:00:00:00:00:00:99 02:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:99; do
		run call "$ours" ADD one "\"mac\":\"$mac\",\"mtu\":1400,\"sysctl\":{\"net.core.somaxconn\":\"500\"}"
		fails_with "invalid args $mac for MAC addr: interface eth0 has MAC addresses of 6 bytes"
		[ "$(jq .code <<<"$output")" = 7 ]
		[ "$(state one)" = "$before" ]
	done
	[ ! -e "$saved" ]
}

@test "tuning: DEL succeeds twice, without the interface, without the namespace and without a path" {
	call "$ours" ADD one "$everything"
	ip -n one link del eth0
	call "$ours" DEL one "$everything"
	[ ! -e "$saved" ]
	call "$ours" DEL one "$everything"
	call "$ours" ADD two "$everything"
	ip netns del two
	call "$ours" DEL two "$everything"
	[ ! -e "$saved" ]
	call "$ours" DEL "" "$everything"
}

@test "tuning: each error has the same text as in upstream" {
	run call "$ours" ADD one '"sysctl":{"kernel.hostname":"x"}'
	fails_with 'invalid net sysctl key: "kernel/hostname"'
	run call "$ours" ADD one '"sysctl":{"net/../kernel/hostname":"x"}'
	[ "$status" = 1 ]
	run call "$ours" ADD one '"sysctl":{"../net/core/somaxconn":"500"}'
	[ "$status" = 0 ]
	call "$ours" DEL one ''
	run call "$ours" ADD one '"sysctl":{"net.core.somaxconn":"1","net.core.somaxconn":"2"}'
	[[ "$(jq -r .msg <<<"$output")" == *"duplicated sysctl keys are not allowed"* ]]
	run call "$ours" ADD one '"mac":"nonsense"'
	[[ "$(jq -r .msg <<<"$output")" == "invalid args nonsense for MAC addr: "* ]]
	previous='"a":1' run call "$ours" ADD one '"mtu":1400'
	fails_with "Required prevResult missing"
}

@test "tuning: duplicate keys in objects other than sysctl are accepted" {
	call "$ours" ADD one '"x":{"a":"1","a":"2"},"args":{"cni":{}},"sysctl":{"net.core.somaxconn":"500"}'
}

@test "tuning: only sysctls of the administrator's allowlist are allowed" {
	mkdir -p /etc/cni/tuning
	printf '^net\\.core\\.\\w+$\n\n   ^net.ipv4.conf.IFNAME.[a-z_]*$  \n^net.ipv6.x\\d$\n' >/etc/cni/tuning/allowlist.conf
	call "$ours" ADD one '"sysctl":{"net.core.somaxconn":"500","net.ipv4.conf.IFNAME.log_martians":"1"}'
	call "$ours" DEL one ""
	run call "$ours" ADD two '"sysctl":{"net.ipv4.ip_local_port_range":"2000 3000"}'
	fails_with 'Sysctl net.ipv4.ip_local_port_range is not allowed. Only the following sysctls are allowed: [^net\.core\.\w+$ ^net.ipv4.conf.IFNAME.[a-z_]*$ ^net.ipv6.x\d$]'
	VERSION=1.1.0 run call "$ours" STATUS "" '"sysctl":{"net.ipv4.ip_local_port_range":"2000 3000"}'
	[ "$status" = 1 ]
	call "$ours" ADD two '"mtu":1400'
}

@test "tuning: IFNAME is replaced even by an interface name that contains a dot" {
	ip -n one link set eth0 down
	ip -n one link set eth0 name eth.5
	CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/one CNI_IFNAME=eth.5 CNI_PATH=/x "$ours" \
		<<<"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",$previous,\"sysctl\":{\"net.ipv4.conf.IFNAME.log_martians\":\"1\"}}"
	[ "$(ip netns exec one cat /proc/sys/net/ipv4/conf/eth.5/log_martians)" = 1 ]
}

@test "tuning: CHECK finds each attribute and each sysctl that was reset" {
	keys="$everything,\"txQLen\":77"
	drift() { # MESSAGE COMMAND...: make a change, then CHECK
		call "$ours" ADD one "$keys"
		call "$ours" CHECK one "$keys"
		message=$1
		shift
		"$@"
		run call "$ours" CHECK one "$keys"
		fails_with "$message"
		call "$ours" DEL one "$keys"
	}
	drift "Error: Tuning configured Ethernet of eth0 is 02:00:00:00:00:99, current value is 02:00:00:00:00:01" \
		ip -n one link set eth0 address 02:00:00:00:00:01
	drift "Error: Tuning link eth0 configured promisc is true, current value is 0" \
		ip -n one link set eth0 promisc off
	drift "Error: Tuning configured MTU of eth0 is 1400, current value is 1500" \
		ip -n one link set eth0 mtu 1500
	drift "Error: Tuning configured all-multicast mode of eth0 is true, current value is false" \
		ip -n one link set eth0 allmulticast off
	drift "Error: Tuning configured Transmit Queue Length of eth0 is 77, current value is 1000" \
		ip -n one link set eth0 txqueuelen 1000
	drift "Error: Tuning configured value of net/core/somaxconn is 500, current value is 4096" \
		ip netns exec one sysctl -qw net.core.somaxconn=4096
	call "$ours" ADD two '"mtu":1400'
	ip -n two link del eth0
	run call "$ours" CHECK two '"mtu":1400'
	fails_with "Cannot find container link eth0"
}

@test "tuning: CHECK ignores white space between numbers, and the case of a MAC address" {
	keys='"mac":"02:00:00:00:00:AB","sysctl":{"net.ipv4.ip_local_port_range":"2000   3000"}'
	call "$ours" ADD one "$keys"
	call "$ours" CHECK one "$keys"
}

@test "tuning: CHECK accepts an interface that another program made promiscuous" {
	call "$ours" ADD one '"mtu":1400'
	ip -n one link set eth0 promisc on
	call "$ours" CHECK one '"mtu":1400'
}

@test "tuning: GC restores the values of invalid attachments and keeps valid attachments" {
	before=$(state one)
	VERSION=1.1.0 call "$ours" ADD one "$everything"
	VERSION=1.1.0 call "$ours" GC "" '"cni.dev/valid-attachments":[{"containerID":"c1","ifname":"eth0"}]'
	[ -e "$saved" ]
	VERSION=1.1.0 call "$ours" GC "" '"cni.dev/valid-attachments":[]'
	[ "$(state one)" = "$before" ]
	[ ! -e "$saved" ]
}
