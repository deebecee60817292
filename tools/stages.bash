# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# tools/stages.bash - run stages of checks and add up their totals; sourced by .ci/run and others
#
# What:  `stage NAME COMMAND...` runs a command whose last line is "N passed, N failed[, N skipped]".
#        `end_stages` prints the result and the seconds of each stage, then the sum as the last line.
# Rules: a stage that fails does not stop the later ones. A command that fails without a failed test,
#        or without a total, counts as one failure.
stage_names=() stage_results=() stages_passed=0 stages_failed=0 stages_skipped=0

# print_total PASSED FAILED SKIPPED
print_total() {
	echo "$1 passed, $2 failed$([ "$3" = 0 ] || echo ", $3 skipped")"
}

stage() {
	local name=$1 start=$SECONDS status=0 log passed=0 failed=0 skipped=0

	shift
	log=$(mktemp)
	printf '\n=== %s ===\n' "$name"
	"$@" 2>&1 | tee "$log" || status=1
	# after a failure, the last line is an error of make
	if [[ $(tail -n 2 "$log" | grep -v '^make: ' | tail -n 1) =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
		passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]} skipped=${BASH_REMATCH[4]:-0}
	else
		status=1
	fi
	rm "$log"
	[ "$status" = 0 ] || [ "$failed" -gt 0 ] || failed=1
	stages_passed=$((stages_passed + passed))
	stages_failed=$((stages_failed + failed))
	stages_skipped=$((stages_skipped + skipped))
	stage_names+=("$name")
	stage_results+=("$(print_total "$passed" "$failed" "$skipped"), $((SECONDS - start)) s")
}

end_stages() {
	local i

	echo
	for i in "${!stage_names[@]}"; do
		printf '%-10s %s\n' "${stage_names[i]}" "${stage_results[i]}"
	done
	print_total "$stages_passed" "$stages_failed" "$stages_skipped"
	[ "$stages_failed" = 0 ]
}
