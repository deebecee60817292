# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# test/state.bash - functions that print the state of the system, to find leftovers of an operation
#
# What:  each state_ function prints one kind of object, in a stable order. Fault scenarios (in
#        state()) and bats files compare the output before and after an operation.
# Rules: values that change by themselves (interface indexes, link-local addresses, times) are not
#        printed. Directories are not printed either: they stay on purpose. Lock files also stay;
#        they are always empty.

# shellcheck source=test/wait.bash
source "${BASH_SOURCE[0]%/*}/wait.bash"

# state_links [NETNS...]: print links with their addresses, in this namespace and in the named ones
state_links() {
	local ns all name addresses address

	for ns in "" "$@"; do
		all=$(ip ${ns:+-n "$ns"} -br address) # not <(ip): that process may outlive the loop
		while read -r name _ addresses; do
			printf 'link %s/%s' "$ns" "$name"
			for address in $addresses; do
				[[ $address == fe80:* ]] || printf ' %s' "$address"
			done
			echo
		done <<<"$all"
	done
}

# state_kernel [NETNS...]: links, addresses, routes, rules, neighbours, qdiscs and sysctls, in this
# namespace and in the named ones
state_kernel() {
	local ns

	for ns in "" "$@"; do
		{
			ip ${ns:+-n "$ns"} -o -batch - <<-END
				link show
				address show
				route show table all
				neighbour show
				rule show
			END
			ip ${ns:+-n "$ns"} -6 rule show
			tc ${ns:+-n "$ns"} qdisc show
		} | sed -E '/ fe80:|^fe80:| ff00:/d; s/^[0-9]+: +([a-z])/\1/; s/@[^:]*:/:/
			s/,(NO-CARRIER|LOWER_UP|M-DOWN)|(NO-CARRIER|M-DOWN),//g
			s/ (qdisc|state|link-netnsid|link-netns|valid_lft|preferred_lft|expires) [^ ]+//g
			s/ (tentative|linkdown|dead|[A-Z]+ *$)//g'"; s|^|/$ns |"
	done
	"$HAWSER_BUILD/test/sysctls" "$@"
}

# none_runs NAME...: whether no process with one of these names is running
none_runs() {
	local name comm

	for comm in /proc/[0-9]*/comm; do
		read -r comm 2>/dev/null <"$comm" || continue
		for name; do
			[ "$comm" != "$name" ] || return 1
		done
	done
}

# wait_for_exit NAME...: wait until no process with one of these names is running
wait_for_exit() { wait_until none_runs "$@"; }

# is_steady FILE: whether state() prints the same twice, 0.1 s apart; the last output is in FILE
is_steady() {
	state >"$1.before"
	sleep 0.1 # the interval of the comparison
	state >"$1"
	cmp -s "$1.before" "$1"
}

# save_steady_state FILE: wait until the output of state() no longer changes, and write it to FILE.
# The kernel completes new links and addresses asynchronously.
save_steady_state() {
	wait_until is_steady "$1"
	rm "$1.before"
}

# state_files PATH...: all files below these paths except directories, with their checksums
state_files() {
	local type mode path all there=() files=()

	for path in "$@"; do
		[ ! -e "$path" ] || there+=("$path")
	done
	[ ${#there[@]} -gt 0 ] || return 0
	all=$(find "${there[@]}" ! -type d -printf '%y %m %p %l\n' | sort)
	[ -n "$all" ] || return 0
	while read -r type mode path; do
		echo "file $type $mode $path"
		[ "$type" != f ] || files+=("$path")
	done <<<"$all"
	[ ${#files[@]} = 0 ] || cksum "${files[@]}"
}

# state_netns: the named network namespaces
state_netns() {
	ip netns list | sed 's/^/netns /' | sort
}

# state_nft: the whole nftables ruleset with its elements, without counters and handles
state_nft() {
	nft --stateless list ruleset
}

# state_processes: names of the processes in this pid namespace, without zombies
state_processes() {
	local stat line all=()

	for stat in /proc/[0-9]*/stat; do
		read -r line 2>/dev/null <"$stat" || continue
		line=${line#* } # "(NAME) STATE ..."
		[[ ${line##*) } == Z* ]] || all+=("process ${line%)*})")
	done
	printf '%s\n' "${all[@]}" | sort
}

# state_mounts: all mount points
state_mounts() {
	local where all=()

	while read -r _ _ _ _ where _; do
		all+=("mount $where")
	done </proc/self/mountinfo
	printf '%s\n' "${all[@]}"
}
