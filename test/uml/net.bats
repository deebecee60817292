#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# test/uml/net.bats - unit tests of src/net; this kernel has all features, so none may be skipped
load ../lib

# none_skipped NAME: all tests of test-NAME run and pass
none_skipped() {
	run "$HAWSER_BUILD/src/test-$1"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output != *SKIPPED* ]]
}

@test "uml: links can be created, changed and deleted" {
	none_skipped link
}

@test "uml: every link kind is created with its options and read back" {
	none_skipped kind
}

@test "uml: bridge ports carry the configured VLANs" {
	none_skipped bridge
}

@test "uml: neighbours learn announced addresses" {
	none_skipped announce
}

@test "uml: rtnetlink batches and dumps" {
	none_skipped rtnl
}
