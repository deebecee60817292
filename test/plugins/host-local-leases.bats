#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# host-local: features that only our plugin has: an index, GC, STATUS, leases of earlier boots
# shellcheck disable=SC2154 # variables come from host-local.bash and from run
bats_require_minimum_version 1.5.0
load host-local

gc() { VERSION=1.1.0 call "$ours" GC "" "$@"; } # IPAM [MORE]

@test "host-local: DEL succeeds twice, without the directory, without prevResult and with different ranges" {
	del a "$small"
	[ ! -e "$leases" ]
	add a "$dual"
	del a '{"ranges":[[{"subnet":"192.168.0.0/24"}]]}'
	[ -z "$(held)" ]
	del a "$dual"
	add a "$dual"
	del a '{"type":"host-local"}'
	[ -z "$(held)" ]
}

@test "host-local: DEL releases a lease of ours that was rewritten with the ID alone" {
	add c1 "$dual"
	printf c1 >"$leases/10.1.0.2"
	del c1 "$dual"
	[ -z "$(held)" ]
	[ "$(entries)" = 0 ]
	# also after a GC that keeps the attachment
	add c1 "$dual"
	for lease in $(held); do printf c1 >"$leases/$lease"; done
	VERSION=1.1.0 call "$ours" GC "" "$dual" '"cni.dev/valid-attachments":[{"containerID":"c1","ifname":"eth0"}]'
	[ "$(held | wc -l)" = 2 ]
	del c1 "$dual"
	[ -z "$(held)" ]
}

@test "host-local: a second DEL releases what a first one left, as in upstream" {
	previous='"prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/24"}]}'
	for plugin in "$ours" "$upstream"; do
		[ -x "$plugin" ] || continue
		add c1 "$small"
		printf c1 >"$leases/10.1.0.5"
		call "$plugin" DEL c1 "$small" "$previous"
		[ "$(held)" = 10.1.0.5 ]
		call "$plugin" DEL c1 "$small" "$previous"
		[ -z "$(held)" ]
		rm -rf "$leases"
	done
}

@test "host-local: a repeated DEL keeps a lease of another interface that names only the container" {
	previous='"prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/24"}]}'
	for foreign in "" 10.1.0.6; do
		rm -rf "$leases"
		# a lease without an index entry: DEL reads all leases
		[ -z "$foreign" ] || { mkdir -p "$leases" && printf 'c2\r\neth0' >"$leases/$foreign"; }
		add c1 "$small"
		IFNAME=eth1 add c1 "$small"
		printf c1 >"$leases/10.1.0.3"
		del c1 "$small"
		[ "$(held | tr '\n' ' ')" = "10.1.0.3 ${foreign:+$foreign }" ]
		for _ in 1 2; do
			del c1 "$small"
			del c1 "$small" "$previous"
			[ "$(held | tr '\n' ' ')" = "10.1.0.3 ${foreign:+$foreign }" ]
			VERSION=1.1.0 call "$ours" GC "" "$small" '"cni.dev/valid-attachments":[{"containerID":"c1","ifname":"eth1"},{"containerID":"c2","ifname":"eth0"}]'
		done
		IFNAME=eth1 del c1 "$small"
		[ "$(held)" = "$foreign" ]
		[ "$(entries)" = 0 ]
	done
}

@test "host-local: DEL keeps an address that has a new owner" {
	add a "$small"
	echo -n $'b\r\neth0' >"$leases/10.1.0.2"
	del a "$small"
	[ "$(held)" = 10.1.0.2 ]
	[ "$(entries)" = 0 ]
}

@test "host-local: an ADD that can lease only some of its addresses releases them" {
	few='{"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/30"}]]}' # one address in the second set
	add a "$few"
	run add b "$few"
	fails_with 999 "failed to allocate for range 1: no IP addresses available in range set: 10.2.0.1-10.2.0.2"
	[ "$(held | tr '\n' ' ')" = "10.1.0.2 10.2.0.2 " ]
	[ "$(entries)" = 2 ]
}

@test "host-local: a container ID that is too long is refused" {
	id=$(printf 'a%.0s' {1..2000})
	add "$id" '{"subnet":"10.1.0.0/24"}'
	del "$id" '{"subnet":"10.1.0.0/24"}'
	[ -z "$(held)" ]
	run add "$id$id$id" '{"subnet":"10.1.0.0/24"}'
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$output")" == *"ID is too long"* ]]
	[ -z "$(held)" ]
}

@test "host-local: symbolic links in the directory are not followed for writing" {
	mkdir -p "$leases"
	echo precious >/tmp/precious
	ln -s /tmp/precious "$leases/last_reserved_ip.0"
	ln -s /tmp/precious "$leases/10.1.0.2"
	run add c1 '{"subnet":"10.1.0.0/24"}'
	[ "$status" = 1 ]
	del c1 '{"subnet":"10.1.0.0/24"}'
	[ "$(</tmp/precious)" = precious ]
	[ -z "$(held)" ]
}

@test "host-local: on a full disk ADD fails with ENOSPC and leaves nothing behind" {
	mkdir -p /var/lib/cni/networks
	mount -t tmpfs -o nr_inodes=100,size=64k full /var/lib/cni/networks
	add a "$small"
	dd if=/dev/zero of=/var/lib/cni/networks/ballast bs=4k 2>/dev/null || true
	before=$(held)
	run add b "$small"
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$output")" == *"lease 10.1.0.3 in $leases: "*"No space left on device" ]]
	[ "$(held)" = "$before" ]
	VERSION=1.1.0 run call "$ours" STATUS "" "$small"
	fails_with 50 "cannot write leases to $leases: No space left on device"
	del a "$small"
	[ -z "$(held)" ]
	umount /var/lib/cni/networks
}

@test "host-local: CHECK finds a lease that is missing or has another owner" {
	add a "$dual" >/tmp/a
	check() { run call "$ours" CHECK a "$dual" "\"prevResult\":$(cat /tmp/a)"; }
	check
	[ "$status" = 0 ]
	rm "$leases/fd00::2"
	check
	fails_with "host-local: address fd00::2 is not leased"
	echo -n $'b\r\neth0' >"$leases/fd00::2"
	check
	fails_with "host-local: address fd00::2 is leased to another attachment"
	rm "$leases/10.1.0.2"
	check
	fails_with "host-local: Failed to find address added by container a"
	rm -r "$leases"
	check
	fails_with "host-local: Failed to find address added by container a"
}

@test "host-local: STATUS fails if a set has no free address" {
	status() { VERSION=1.1.0 run call "$ours" STATUS "" "$small"; }
	status
	[ "$status" = 0 ]
	[ ! -e "$leases" ]
	for i in 1 2 3 4 5; do add "c$i" "$small"; done
	status
	fails_with 50 "no IP addresses available in range set: 10.1.0.1-10.1.0.6"
	del c3 "$small"
	status
	[ "$status" = 0 ]
	VERSION=1.1.0 run call "$ours" STATUS "" '{"ranges":[[{"subnet":"10.1.0.4/24"}]]}'
	[ "$status" = 1 ]
}

@test "host-local: STATUS fails if the directory cannot be written" {
	mkdir -p /tmp/data/ro
	mount -t tmpfs -o ro ro /tmp/data/ro
	VERSION=1.1.0 run call "$ours" STATUS "" '{"subnet":"10.1.0.0/24","dataDir":"/tmp/data/ro/a/b"}'
	umount /tmp/data/ro
	fails_with 50 "cannot write leases to /tmp/data/ro/a/b/net: Read-only file system"
}

@test "host-local: a relative dataDir works, for STATUS too" {
	cd "$BATS_TEST_TMPDIR"
	relative='{"subnet":"10.1.0.0/24","dataDir":"data/deep"}'
	VERSION=1.1.0 call "$ours" STATUS "" "$relative"
	add a "$relative"
	[ "$(held data/deep/net)" = 10.1.0.2 ]
	VERSION=1.1.0 call "$ours" STATUS "" "$relative"
	del a "$relative"
	[ -z "$(held data/deep/net)" ]
}

@test "host-local: GC releases invalid leases, upstream's and ours, and keeps valid ones" {
	for id in a b; do add "$id" "$dual"; done
	IFNAME=eth1 add a "$dual"
	if [ -x "$upstream" ]; then for id in c d; do call "$upstream" ADD "$id" "$dual"; done; fi
	printf old1 >"$leases/10.1.0.100"
	printf old2 >"$leases/10.1.0.101"
	: >"$leases/10.1.0.102" # left by a writer that was killed
	gc "$dual" '"cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"},{"containerID":"c","ifname":"eth0"},{"containerID":"old1","ifname":"x"}]'
	[ -z "$(held | grep -v -x -e 10.1.0.2 -e fd00::2 -e 10.1.0.5 -e fd00::5 -e 10.1.0.100)" ]
	[ "$(held | wc -l)" = "$([ -x "$upstream" ] && echo 5 || echo 3)" ]
	[ "$(entries)" = 2 ]
	call "$ours" CHECK a "$dual"
}

@test "host-local: GC without a list releases only leases of killed ADDs" {
	add a "$small"
	echo -n $'b\r\neth0' >"$leases/10.1.0.3" # an owner without an index entry
	: >"$leases/10.1.0.4"
	[ "$(add dead "$small" | ips)" = 10.1.0.5/29 ]
	find "$leases/.hawser" -lname ../../10.1.0.5 -exec touch -h {} + # as if the ADD had not finished
	gc "$small"
	[ "$(held | tr '\n' ' ')" = "10.1.0.2 10.1.0.3 " ]
}

@test "host-local: GC keeps the leases of an attachment if another plugin still has a record of it" {
	add a "$small"
	add b "$small"
	hash() { printf '%s\0' "$@" | sha512sum | head -c 32; }
	dir=/run/hawser/attachments/bridge/$(hash net)
	mkdir -p "$dir"
	echo '{"plugin":"bridge","network":"net","containerID":"a","ifname":"eth0","netns":"","config":{},"boot":"x","started":1}' \
		>"$dir/$(hash a eth0)"
	gc "$small" '"cni.dev/valid-attachments":[]'
	[ "$(held)" = 10.1.0.2 ]
}

# lockers: print how many processes have the lock file open
lockers() { find /proc/[0-9]*/fd -lname "$leases/lock" 2>/dev/null | wc -l; }

@test "host-local: GC with an empty list keeps the leases of 50 ADDs that run at the same time" {
	for id in x y z; do add "$id" "$dual"; done
	exec {lock}>"$leases/lock"
	flock "$lock"
	for i in $(seq 50); do
		add "c$i" "$dual" >"/tmp/r$i" {lock}>&- &
	done
	gc "$dual" '"cni.dev/valid-attachments":[]' {lock}>&- &
	wait_until eval '[ "$(lockers)" -ge 52 ]' # until all ADDs and the GC are waiting
	exec {lock}>&-
	wait
	[ "$(cat /tmp/r* | ips | sort -u | wc -l)" = 100 ]
	diff <(cat /tmp/r* | ips | sed 's|/.*||' | sort) <(held)
	[ "$(entries)" = 100 ]
	rm /tmp/r*
}

@test "host-local: 40 GCs with an empty list, concurrent with 40 ADDs and DELs, leave no lease" {
	for i in $(seq 40); do
		{ add "c$i" "$dual" >/dev/null && del "c$i" "$dual"; } &
		gc "$dual" '"cni.dev/valid-attachments":[]' &
	done
	wait
	[ -z "$(held)" ]
	[ "$(entries)" = 0 ]
}

@test "host-local: if a set is full, ADD releases the leases that this machine made before its last boot" {
	for i in 1 2 3 4 5; do add "c$i" "$small"; done
	boot=$(ls "$leases/.hawser")
	mv "$leases/.hawser/$boot" "$leases/.hawser/${boot%%-*}-00000000-0000-0000-0000-000000000000"
	rm "$leases/10.1.0.3" && echo -n $'other\r\neth0' >"$leases/10.1.0.3" # leased by upstream after the boot
	VERSION=1.1.0 call "$ours" STATUS "" "$small"
	add new "$small"
	[ "$(held | wc -l)" = 2 ]
	[ "$(cat "$leases/10.1.0.3")" = $'other\r\neth0' ]
	[ "$(ls "$leases/.hawser")" = "$boot" ]
}

@test "host-local: a lease from before the boot is kept if its owner has allocated the address again since then" {
	add c1 '{"subnet":"10.1.0.0/30","gateway":"10.9.0.1"}'
	boot=$(ls "$leases/.hawser")
	for old in 00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff; do
		cp -a "$leases/.hawser/$boot" "$leases/.hawser/${boot%%-*}-$old"
	done
	rm -r "$leases/.hawser/$boot" "$leases/10.1.0.1" # a DEL that was killed in between
	ARGS=IP=10.1.0.1 add c1 '{"subnet":"10.1.0.0/30","gateway":"10.9.0.1"}'
	VERSION=1.1.0 call "$ours" GC "" '{"subnet":"10.1.0.0/30"}'
	[ "$(held)" = 10.1.0.1 ]
	add c2 '{"subnet":"10.1.0.0/30","gateway":"10.9.0.1"}'
	for old in 00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff; do
		mkdir -p "$leases/.hawser/${boot%%-*}-$old"
		cp -a "$leases/.hawser/$boot"/* "$leases/.hawser/${boot%%-*}-$old"
	done
	run add c3 '{"subnet":"10.1.0.0/30","gateway":"10.9.0.1"}'
	[ "$status" = 1 ]
	[ "$(cat "$leases/10.1.0.1")" = $'c1\r\neth0' ]
}

@test "host-local: leases of another machine on a shared directory are kept" {
	for i in 1 2 3 4 5; do add "c$i" "$small"; done
	boot=$(ls "$leases/.hawser")
	mv "$leases/.hawser/$boot" "$leases/.hawser/00000000-11111111-1111-1111-1111-111111111111"
	run add new "$small"
	fails_with "failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.6"
	gc "$small" '"cni.dev/valid-attachments":[]'
	[ "$(held | wc -l)" = 5 ]
}

@test "host-local: without a machine ID, ADD to a full set releases nothing, but GC works" {
	rm /etc/machine-id
	for i in 1 2 3 4 5; do add "c$i" "$small"; done
	mv "$leases"/.hawser/* "$leases/.hawser/-11111111-1111-1111-1111-111111111111"
	run add new "$small"
	[ "$status" = 1 ]
	gc "$small"
	[ "$(held | wc -l)" = 5 ]
	gc "$small" '"cni.dev/valid-attachments":[{"containerID":"c3","ifname":"eth0"}]'
	[ "$(held)" = 10.1.0.4 ]
}

@test "host-local: ADD and DEL work for an attachment that has leases from before a reboot" {
	add a "$dual"
	boot=$(ls "$leases/.hawser")
	mv "$leases/.hawser/$boot" "$leases/.hawser/${boot%%-*}-00000000-0000-0000-0000-000000000000"
	add a "$dual"
	[ "$(held | wc -l)" = 4 ]
	del a "$dual"
	[ -z "$(held)" ]
	[ "$(ls "$leases/.hawser")" = "$boot" ]
}

# fill N [LAST]: create N leases, the first for 10.1.0.2, with the owners c2, c3 and so on, and without
# index entries
fill() {
	mkdir -p "$leases"
	python3 - "$1" "$leases" <<-'END'
		import sys
		for n in range(2, int(sys.argv[1]) + 2):
		    with open("%s/10.1.%d.%d" % (sys.argv[2], n >> 8, n & 255), "x") as f:
		        f.write("c%d\r\neth0" % n)
	END
	printf %s "${2:-10.1.0.1}" >"$leases/last_reserved_ip.0"
}

# opened VERB ID: call the plugin, and print how many files it opens, starting with the directory of leases
opened() {
	CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/x CNI_IFNAME=eth0 CNI_PATH=/x \
		traced -e trace=openat,getdents64 "$ours" <<<"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"ipam\":$large}" >/tmp/out
	sed -n '/networks/,$p' /tmp/trace | grep -c openat
}

large='{"ranges":[[{"subnet":"10.1.0.0/16"}]]}'

@test "host-local: with 60,000 leases in a /16 an ADD and a DEL open few files" {
	need strace
	fill 60000 10.1.234.97 # the last lease
	[ "$(opened ADD new)" -lt 12 ]
	[ "$(ips </tmp/out)" = 10.1.234.98/16 ]
	run ! grep getdents /tmp/trace
	touch -d @77777777 "$leases" # marks the index as complete
	[ "$(opened DEL new)" -lt 12 ]
	[ "$(held | wc -l)" = 60000 ]
}

@test "host-local: if the next 64 addresses are taken, an ADD reads the directory once and opens no lease" {
	need strace
	fill 60000 10.1.0.100
	[ "$(opened ADD new)" -lt 80 ]
	[ "$(ips </tmp/out)" = 10.1.234.98/16 ]
}

@test "host-local: ADD finds the only free address in the middle of a /16, and the next ADD fails" {
	need strace
	fill 65533 10.1.255.254
	rm "$leases/10.1.100.7"
	[ "$(opened ADD new)" -lt 80 ]
	[ "$(ips </tmp/out)" = 10.1.100.7/16 ]
	run add more "$large"
	fails_with "failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.255.254"
	del new "$large"
	add more "$large"
	[ "$(held | wc -l)" = 65533 ]
}
