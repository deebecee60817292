#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A clock that was set back
bats_require_minimum_version 1.5.0
load concurrent
load ../clock

@test "clock: all verbs work after the clock was set back" {
	pods 1 4
	for type in bridge ptp; do
		add "$type" 1
		ten_years_ago add "$type" 2
		ten_years_ago check "$type" 1
		check "$type" 2
		# GC deletes invalid attachments that were added before it started, whatever the wall clock says
		gc "$type" '{"containerID": "c2", "ifname": "eth0"}'
		run ! check "$type" 1
		check "$type" 2
		add "$type" 3
		ten_years_ago gc "$type" '{"containerID": "c3", "ifname": "eth0"}'
		run ! check "$type" 2
		check "$type" 3
		ten_years_ago add "$type" 4
		ten_years_ago del "$type" 3
		del "$type" 4
		[ -z "$(left)" ]
	done
}
