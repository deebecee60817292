#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# hawser-plugin as a program: selection of the plugin, help; and attachment records,
# with the test plugin link-and-file.
# shellcheck disable=SC2154 # stderr and stderr_lines come from run
load hawser-plugin
bats_require_minimum_version 1.5.0

test_plugin=$HAWSER_BUILD/test/cni/link-and-file

# ---- selection of the plugin -----------------------------------------------------------------

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

# ---- a plugin started by hand ----------------------------------------------------------------

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

@test "plugin: fails if standard output is closed" {
	closed() { call "$@" >&-; }
	for verb in ADD VERSION; do
		run closed "$HAWSER_BUILD/cni/noop" "$verb"
		[ "$status" = 1 ]
	done
	run closed "$HAWSER_BUILD/cni/loopback" DEL # nothing to print
	[ "$status" = 0 ]
	for argument in list --help --version; do
		closed() { "$program" "$argument" >&-; }
		run closed
		[ "$status" = 1 ]
		[ "$output" = "hawser-plugin: write to standard output: Bad file descriptor" ]
	done
	closed() { "$program" noop --help >&-; }
	run closed
	[ "$status" = 1 ]
}

# ---- attachment records, with real links and files -------------------------------------------

# record VERB [CONTAINER [MORE]]: call link-and-file; MORE: additional members of the configuration
record() {
	call "$test_plugin" "$1" "${2:-c1}" \
		'{"cniVersion":"1.1.0","name":"net","type":"link-and-file","directory":"/tmp/things"'"${3:+,$3}"'}'
}

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

@test "record: a second ADD is refused as long as the namespace of the first exists" {
	ip netns add record
	netns=/run/netns/record record ADD c1
	before=$(things)
	run record ADD c1
	[ "$status" = 1 ]
	[ "$(jq -r .msg <<<"$output")" = "plugin link-and-file: container c1 interface eth0 is already attached to network net; call DEL first" ]
	[ "$before" = "$(things)" ]
	record CHECK c1
	ip netns del record
	record ADD c1 '"directory":"/tmp/things/other"'
	[ "$(things | wc -l)" = "$(wc -l <<<"$before")" ]
	[ "$(records)" = 1 ]
	record DEL c1
	[ -z "$(things)" ]
}

@test "record: a new namespace with the path and the inode number of a dead one can be attached" {
	ip netns add record
	netns=/run/netns/record record ADD c1
	ip netns del record
	ip netns add record
	# (the kernel may also have chosen the same number)
	sed -i "s/\"netnsID\":\"[^\"]*\"/\"netnsID\":\"$(stat -L -c %d:%i /run/netns/record)\"/" /run/hawser/attachments/*/*/*
	netns=/run/netns/record record ADD c1 '"directory":"/tmp/things/other"'
	[ "$(records)" = 1 ]
	netns=/run/netns/record record DEL c1
	[ -z "$(things)" ]
	ip netns del record
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

# ---- completion and man page -----------------------------------------------------------------

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
