#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Unit tests, most of them of src/net, on a kernel on which none of them is skipped
load ../lib

# none_skipped NAME: assert that all tests of test-NAME pass and none is skipped
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

@test "uml: VLANs can be added to bridge ports" {
	none_skipped bridge
}

@test "uml: a helper does not inherit a negative oom_score_adj" {
	none_skipped helper
}

@test "uml: neighbours learn announced MAC addresses" {
	none_skipped announce
}

@test "uml: rtnetlink batches and dumps work" {
	none_skipped rtnl
}
