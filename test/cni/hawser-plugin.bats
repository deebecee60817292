#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# hawser-plugin as a program: selection of the plugin, help, install and uninstall; and attachment records,
# with the test plugin link-and-file.
# shellcheck disable=SC2154 # stderr and stderr_lines come from run
load ../lib
bats_require_minimum_version 1.5.0

program=$HAWSER_BUILD/bin/hawser-plugin
test_plugin=$HAWSER_BUILD/test/cni/link-and-file

setup() {
	need ip jq
	unset CNI_COMMAND CNI_ARGS CNI_NETNS_OVERRIDE
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	for link in $(links); do ip link del "$link"; done
	rm -rf /run/hawser /tmp/things
}

conf='{"cniVersion":"1.1.0","name":"net","type":"noop"}'

# call PROGRAM VERB [CONTAINER [CONF]]
call() {
	CNI_COMMAND=$2 CNI_CONTAINERID=${3:-c1} CNI_NETNS=/nowhere CNI_IFNAME=eth0 CNI_PATH=/nowhere \
		"$1" <<<"${4:-$conf}"
}

# listing DIR: print names, types and link targets
listing() { find "$1" -mindepth 1 -printf '%P %y %l\n' | sort; }

# silence: open a pipe without data and without EOF as descriptor $silent, for use as standard input
silence() {
	mkfifo silence
	exec {silent}<>silence
}

# ---- selection of the plugin -----------------------------------------------------------------------

@test "hawser-plugin: the plugin is selected by the name of the symbolic link, or by the first argument" {
	run --separate-stderr call "$HAWSER_BUILD/cni/noop" ADD
	[ "$status" = 0 ]
	[ "$output" = '{}' ]
	noop() { "$program" noop; }
	run --separate-stderr call noop ADD
	[ "$output" = '{}' ]
}

@test "hawser-plugin: BUILD/cni has a relative symbolic link for each plugin and nothing else" {
	diff <("$program" list | cut -d ' ' -f 1 | sort) <(ls "$HAWSER_BUILD/cni")
	for link in "$HAWSER_BUILD"/cni/*; do
		[ "$(readlink "$link")" = ../bin/hawser-plugin ]
	done
}

@test "hawser-plugin: the error for an unknown plugin lists the known ones" {
	run --separate-stderr "$program" nosuch
	[ "$status" = 1 ]
	[ -z "$output" ]
	[[ "$stderr" == 'hawser-plugin: unknown plugin "nosuch": hawser-plugin '*' has '*loopback*noop* ]]
}

@test "hawser-plugin: a runtime gets the error for an unknown plugin as JSON" {
	ln -s "$program" nosuch
	run --separate-stderr call ./nosuch ADD
	[ "$status" = 1 ]
	[ "$(jq .code <<<"$output")" = 999 ]
	[[ "$(jq -r .msg <<<"$output")" == 'unknown plugin "nosuch": '* ]]
}

@test "hawser-plugin: without arguments, with invalid arguments or with --help it prints the usage" {
	run --separate-stderr "$program"
	[ "$status" = 1 ]
	[[ "$stderr" == usage:* ]]
	for wrong in "list x" "install" "install a b" "install --what" "uninstall a b" "rules x" "repair x"; do
		# shellcheck disable=SC2086 # several words
		run --separate-stderr "$program" $wrong
		[ "$status" = 1 ]
		[[ "$stderr" == usage:* ]]
	done
	run --separate-stderr "$program" --help
	[ "$status" = 0 ]
	[[ "$output" == usage:* ]]
	run "$program" --version
	[[ "$output" == "hawser-plugin "[0-9]* ]]
}

@test "hawser-plugin: list --json prints the supported versions of each plugin" {
	"$program" list --json | jq -e '.[] | select(.name == "loopback") |
		.supportedVersions == ["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"] and
		(.summary | length > 0)'
}

# ---- a plugin started by hand --------------------------------------------------------

@test "plugin: without CNI_COMMAND it prints name and versions on standard error and does not read input" {
	silence
	for argument in "" version --version; do
		# shellcheck disable=SC2086 # may be empty
		run --separate-stderr timeout 10 "$HAWSER_BUILD/cni/loopback" $argument <&"$silent"
		[ "$status" = 0 ]
		[ -z "$output" ]
		[[ "${stderr_lines[0]}" == "CNI loopback plugin hawser "[0-9]* ]]
		[ "${stderr_lines[1]}" = "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0" ]
	done
}

@test "plugin: a missing variable is reported without waiting for input" {
	silence
	CNI_COMMAND=ADD run timeout 10 "$HAWSER_BUILD/cni/loopback" <&"$silent"
	[ "$status" = 1 ]
	[ "$(jq .code <<<"$output")" = 4 ]
}

@test "plugin: --help describes the plugin and its configuration keys" {
	for option in --help -h; do
		run --separate-stderr "$HAWSER_BUILD/cni/noop" $option
		[ "$status" = 0 ]
		[[ "$output" == *CNI_COMMAND* ]]
		[[ "$output" == *debugFile* ]]
	done
}

@test "plugin: a closed standard input is an I/O error, code 5" {
	closed() { CNI_COMMAND=DEL CNI_CONTAINERID=c CNI_IFNAME=e CNI_PATH=/x "$HAWSER_BUILD/cni/noop" <&-; }
	run closed
	[ "$status" = 1 ]
	[ "$(jq .code <<<"$output")" = 5 ]
	[[ "$(jq -r .msg <<<"$output")" == "error reading from stdin: "* ]]
}

@test "plugin: an endless configuration is refused" {
	endless() {
		yes '{"name":"net"}' | CNI_COMMAND=DEL CNI_CONTAINERID=c CNI_IFNAME=e CNI_PATH=/x \
			timeout 20 "$HAWSER_BUILD/cni/noop"
	}
	run endless
	[ "$status" = 1 ]
	[ "$(jq .code <<<"$output")" = 5 ]
}

@test "plugin: fails if the result cannot be written" {
	[ -c /dev/full ] || skip "there is no /dev/full"
	full() { call "$HAWSER_BUILD/cni/noop" ADD >/dev/full; }
	run full
	[ "$status" = 1 ]
}

# ---- install -----------------------------------------------------------------------------

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
	for command in list "list --json" --help --version; do
		# shellcheck disable=SC2086 # two words
		run lost $command
		[ "$status" = 1 ]
		[ "$output" = "hawser-plugin: write to standard output: No space left on device" ]
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

# ---- attachment records, with real links and files ---------------------------------------------------

links() { ip -j link show type bridge | jq -r '.[].ifname' | sort; }
# record VERB [CONTAINER [MORE]]: call link-and-file; MORE: additional members of the configuration
record() {
	call "$test_plugin" "$1" "${2:-c1}" \
		'{"cniVersion":"1.1.0","name":"net","type":"link-and-file","directory":"/tmp/things"'"${3:+,$3}"'}'
}
things() { links; find /tmp/things -type f -printf '%f\n' 2>/dev/null | sort; }
records() { find /run/hawser/attachments -type f | wc -l; }
valid() { echo "\"cni.dev/valid-attachments\":[${1:+{\"containerID\":\"$1\",\"ifname\":\"eth0\"\}}]"; }

@test "record: ADD creates an attachment, CHECK finds it, DEL removes it, and GC removes invalid ones" {
	record ADD c1
	record ADD c2
	[ "$(links | wc -l)" = 2 ]
	[ "$(records)" = 2 ]
	record CHECK c1
	record GC "" "$(valid c2)"
	[ "$(links | wc -l)" = 1 ]
	[ -e /tmp/things/net-c2-eth0 ]
	run record CHECK c1
	[ "$status" = 1 ]
	record DEL c2
	record DEL c2
	[ -z "$(things)" ]
	[ "$(records)" = 0 ]
}

@test "record: a failed ADD undoes itself and leaves no record" {
	record ADD c1
	link=$(links)
	record DEL c1
	ip link add "$link" type bridge
	run record ADD c1
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$output")" == "create link $link: "* ]]
	[ "$(records)" = 0 ]
	[ "$(things)" = "$link" ]
	: >/tmp/file
	more='"directory":"/tmp/file/x"'
	ip link del "$link"
	run record ADD c1 "$more"
	[ "$status" = 1 ]
	[ "$(records)" = 0 ]
	[ -z "$(things)" ]
}

@test "record: a second ADD is refused and leaves the first attachment unchanged" {
	record ADD c1
	before=$(things)
	run record ADD c1
	[ "$status" = 1 ]
	[ "$(jq -r .msg <<<"$output")" = "container c1 already has interface eth0" ]
	[ "$before" = "$(things)" ]
	record CHECK c1
}

@test "record: DEL works from the record after the configuration has changed" {
	record ADD c1
	call "$test_plugin" DEL c1 '{"cniVersion":"1.1.0","name":"net","directory":"/elsewhere"}'
	[ -z "$(things)" ]
}

@test "record: if the boot ID cannot be read, GC removes no live attachment" {
	record ADD c1
	mount --bind /dev/null /proc/sys/kernel/random/boot_id
	record GC ""
	umount /proc/sys/kernel/random/boot_id
	record CHECK c1
}

@test "record: a HAWSER_STATE that other users can write to is refused" {
	mkdir -m 1777 open
	HAWSER_STATE=$PWD/open run record ADD c1
	[ "$status" = 1 ]
	[[ "$(jq -r .msg <<<"$output")" == "$PWD/open contains attachment records but is writable by other users: "* ]]
	[ -z "$(listing open)" ]
	[ -z "$(things)" ]
}

@test "record: records and locks are stored in HAWSER_STATE" {
	HAWSER_STATE=$PWD/state record ADD c1
	[ "$(find state/attachments -type f | wc -l)" = 1 ]
	[ ! -e /run/hawser ]
	HAWSER_STATE=$PWD/state record DEL c1
	[ -z "$(things)" ]
}

# ---- completion and man page -------------------------------------------------------------------------------

# complete_words WORD...: print the completions of "hawser-plugin WORD..."
complete_words() {
	bash -c 'source "$HAWSER_SRC/completions/hawser-plugin"; COMP_WORDS=(hawser-plugin "$@")
		COMP_CWORD=$#; _hawser_plugin; echo "${COMPREPLY[@]}"' - "$@"
}

@test "hawser-plugin: completion offers commands, plugins and directories" {
	mkdir dir
	[ "$(complete_words "")" = "list install uninstall rules repair --help --version $("$program" list | cut -d ' ' -f 1 | xargs)" ]
	[ "$(complete_words lo)" = loopback ]
	[ "$(complete_words list --)" = --json ]
	[ "$(complete_words rules --)" = --json ]
	[ -z "$(complete_words repair "")" ]
	[ "$(complete_words install d)" = dir ]
	[ "$(complete_words install dir --)" = --force ]
	[ "$(complete_words noop "")" = --help ]
}

@test "hawser-plugin: the man page contains every command, option and plugin" {
	page=$HAWSER_SRC/man/hawser-plugin.1
	for word in $("$program" --help | grep -oE '^ *(usage: )?  *hawser-plugin [a-z]+' | awk '{ print $NF }'); do
		grep -q "^\.\(Cm\|It Cm\) $word" "$page"
	done
	for plugin in $("$program" list | cut -d ' ' -f 1); do
		grep -q "^\.It Sy $plugin$" "$page"
	done
	grep -q 'Fl -force' "$page"
}
