#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# hawser-plugin: install and uninstall
# shellcheck disable=SC2154 # stderr and stderr_lines come from run
load hawser-plugin
bats_require_minimum_version 1.5.0

@test "install: creates the directory, a copy of the program and a relative symbolic link for each plugin" {
	"$program" install a/b
	cmp "$program" a/b/hawser-plugin
	[ "$(stat -c %a a/b/hawser-plugin)" = 755 ]
	diff <("$program" list | cut -d ' ' -f 1 | sed 's/$/ l hawser-plugin/; $a hawser-plugin f ' | sort) <(listing a/b)
	run --separate-stderr call a/b/noop DEL
	[ "$output" = '{}' ]
}

@test "install: a second install, or one by the installed copy, changes nothing" {
	"$program" install dir
	before=$(listing dir; stat -c %i dir/noop)
	"$program" install dir
	dir/hawser-plugin install dir
	[ "$before" = "$(listing dir; stat -c %i dir/noop)" ]
}

@test "install: replaces an older copy that is running" {
	"$program" install dir
	silence
	CNI_COMMAND=DEL CNI_CONTAINERID=c CNI_IFNAME=e CNI_PATH=/x dir/noop <&"$silent" &
	wait_until test "/proc/$!/exe" -ef dir/hawser-plugin
	"$program" install dir
	kill $!
	cmp "$program" dir/hawser-plugin
}

@test "install: refuses to replace foreign files, lists them, and changes nothing" {
	mkdir dir
	echo foreign >dir/loopback
	ln -s /usr/lib/cni/bridge dir/noop
	before=$(listing dir)
	run --separate-stderr "$program" install dir
	[ "$status" = 1 ]
	[ "$stderr" = "hawser-plugin: install into dir: dir already contains loopback, noop (use --force to replace)" ]
	[ "$before" = "$(listing dir)" ]
}

@test "install: a file named hawser-plugin that does not contain our text is treated as foreign" {
	mkdir dir
	echo '#!/bin/sh' >dir/hawser-plugin
	run --separate-stderr "$program" install dir
	[ "$status" = 1 ]
	[ "$stderr" = "hawser-plugin: install into dir: dir already contains hawser-plugin (use --force to replace)" ]
	[ "$(listing dir)" = "hawser-plugin f " ]
	"$program" install dir --force
	cmp "$program" dir/hawser-plugin
}

@test "install: temporary files of a killed install are reused or removed" {
	mkdir dir
	ln -s hawser-plugin dir/.noop~
	ln -s elsewhere dir/.loopback~
	echo half >dir/.hawser-plugin~
	"$program" install dir
	[ "$(find dir -name '.*~')" = "" ]
	[ "$(readlink dir/loopback)" = hawser-plugin ]
	cmp "$program" dir/hawser-plugin
}

@test "install: concurrent installs succeed" {
	for _ in 1 2 3 4 5; do
		rm -rf dir
		pids=()
		for _ in 1 2 3 4; do
			"$program" install dir &
			pids+=($!)
		done
		for pid in "${pids[@]}"; do wait "$pid"; done
		diff <("$program" list | cut -d ' ' -f 1 | sed 's/$/ l hawser-plugin/; $a hawser-plugin f ' | sort) <(listing dir)
	done
}

@test "install: run through a symbolic link, it copies the binary and not the link, even to another file system" {
	ln -s "$program" link
	mkdir other
	mount -t tmpfs none other
	./link install other/dir
	[ ! -L other/dir/hawser-plugin ]
	cmp "$program" other/dir/hawser-plugin
	umount other
}

@test "install: --force replaces foreign files, but never a directory" {
	mkdir dir
	echo foreign >dir/loopback
	"$program" install dir --force
	[ "$(readlink dir/loopback)" = hawser-plugin ]
	rm dir/noop
	mkdir dir/noop
	before=$(listing dir)
	run --separate-stderr "$program" install --force dir
	[ "$status" = 1 ]
	[ "$stderr" = "hawser-plugin: install into dir: dir already contains noop" ]
	[ "$before" = "$(listing dir)" ]
}

@test "install: replaces symbolic links to a hawser-plugin in another directory" {
	mkdir dir
	ln -s ../../bin/hawser-plugin dir/loopback
	"$program" install dir
	[ "$(readlink dir/loopback)" = hawser-plugin ]
}

@test "install: reports why it cannot write" {
	echo >file
	run --separate-stderr "$program" install file/dir
	[ "$status" = 1 ]
	[[ "$stderr" == "hawser-plugin: install into file/dir: "*"Not a directory" ]]
	mkdir dir
	mount -t tmpfs -o ro none dir
	run --separate-stderr "$program" install dir
	umount dir
	[ "$status" = 1 ]
	[[ "$stderr" == "hawser-plugin: install into dir: "*"Read-only file system" ]]
}

@test "install: without /proc, the error names the file that cannot be read" {
	# shellcheck disable=SC2016 # the inner shell expands it
	run --separate-stderr unshare -m sh -c 'mount -t tmpfs none /proc && exec "$1" install dir' - "$program"
	[ "$status" = 1 ]
	# (without /proc, sanitizers also print a warning)
	[[ "$stderr" == *"hawser-plugin: install into dir: open /proc/self/exe: No such file or directory"* ]]
	[ -z "$(listing dir)" ]
}

@test "hawser-plugin: commands fail if their output cannot be written" {
	[ -c /dev/full ] || skip "there is no /dev/full"
	lost() { "$program" "$@" >/dev/full; }
	closed() { "$program" "$@" >&-; }
	for command in list "list --json" "rules --json" --help --version; do
		# shellcheck disable=SC2086 # two words
		run lost $command
		[ "$status" = 1 ]
		[ "$output" = "hawser-plugin: write to standard output: No space left on device" ]
		# shellcheck disable=SC2086 # two words
		run closed $command
		[ "$status" = 1 ]
		[ "$output" = "hawser-plugin: write to standard output: Bad file descriptor" ]
	done
}

@test "install: make install puts the program into bin, and symbolic links to it into lib/hawser/cni" {
	install_hawser
	links=$(find "$DESTDIR" -path '*/lib/hawser/cni')
	diff <("$program" list | cut -d ' ' -f 1 | sort) <(ls "$links")
	for link in "$links"/*; do
		[ "$(realpath "$link")" = "$(find "$DESTDIR" -path '*/bin/hawser-plugin')" ]
	done
	[ -z "$(find "$DESTDIR" -path '*/opt/*')" ]
}

@test "uninstall: removes the copy and the symbolic links to it, and nothing else" {
	"$program" install dir
	echo foreign >dir/another
	ln -sf /elsewhere/hawser-plugin dir/noop
	ln -s hawser-plugin dir/of-another-version
	run "$program" uninstall dir
	[ "$status" = 0 ]
	[ "$(listing dir)" = "another f 
noop l /elsewhere/hawser-plugin" ]
	"$program" uninstall dir
}

@test "uninstall: keeps a hawser-plugin that no symbolic link refers to" {
	mkdir dir
	cp "$program" dir
	"$program" uninstall dir
	[ -x dir/hawser-plugin ]
}

@test "uninstall: without an argument it reports, on a clean host, that there is nothing to remove" {
	run "$program" uninstall
	[ "$status" = 0 ]
	[[ "$output" == "nothing to remove"* ]]
}
