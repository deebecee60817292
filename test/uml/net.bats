#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The unit tests of the kernel layer, where nothing has to be skipped.
load ../lib

# none_skipped NAME: all tests of test-NAME run and pass
none_skipped() {
	run "$HAWSER_BUILD/src/test-$1"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output != *SKIPPED* ]]
}

@test "uml: links can be made, changed and deleted" {
	none_skipped link
}

@test "uml: every link kind is made as asked and read back" {
	none_skipped kind
}

@test "uml: bridge ports carry the VLANs they are given" {
	none_skipped bridge
}

@test "uml: neighbours learn what is announced" {
	none_skipped announce
}

@test "uml: batches and dumps" {
	none_skipped rtnl
}
