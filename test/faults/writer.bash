# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # work is set by run, kind by the scenario
#
# test/faults/writer.bash - one file, created and then replaced by the writer of $kind
#
# At every point a reader finds either no file, the complete first text or the complete second text;
# and removing the entry also removes the temporary file of an interrupted writer.
writer=("$HAWSER_BUILD/test/writer" "$kind" "$work/dir")

setup() { rm -rf "$work/dir"; }
operation() { inject "${writer[@]}" write first second; }
repair() { "${writer[@]}" remove; }
state() { state_files "$work/dir"; }

verify() {
	local text

	text=$("${writer[@]}" read) || return
	case $1:$text in
	0:*second* | [1-9]*:*first* | [1-9]*:*second*) ;;
	[1-9]*:absent) # check for files, because the reader reports a damaged file as absent
		[ ! -e "$work/dir" ] || [ -z "$(find "$work/dir" -type f ! -name '.*~')" ] ;;
	*) echo "after exit status $1 a reader finds: $text"; return 1 ;;
	esac
}
