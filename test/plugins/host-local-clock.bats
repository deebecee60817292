#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# host-local: a clock that was set back
# shellcheck disable=SC2154 # variables come from host-local.bash
bats_require_minimum_version 1.5.0
load host-local
load ../clock

@test "host-local: ADD, GC and DEL work after the clock was set back" {
	add a "$small"
	ten_years_ago add b "$small"
	VERSION=1.1.0 call "$ours" GC "" "$small" '"cni.dev/valid-attachments":[{"containerID":"b","ifname":"eth0"}]'
	[ "$(held)" = 10.1.0.3 ]
	ten_years_ago del b "$small"
	[ -z "$(held)" ]
}
