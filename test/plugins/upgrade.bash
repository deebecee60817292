# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# test/plugins/upgrade.bash - replaces the state of this version by what version 0.1.0 would have written

# as_0.1.0: load the rules of 0.1.0, and change elements, chains of networks and records to what 0.1.0 wrote: The owner
# of c1's ports is the attachment of its eth0. There are no claims and no shared ports, but numbers of the pods that
# have a port on one address. A network's chain has one rule, which masquerades. Records have no hash of the
# configuration, and no cookie of the namespace.
as_0.1.0() {
	local attachment container record
	attachment=$(hawser-plugin rules --json | jq -r 'first(.[] | select(.ifname == "eth0" and .containerID == "c1")).owner')
	container=$(hawser-plugin rules --json | jq -r 'first(.[] | select(.ifname == null and .containerID == "c1")).owner')
	nft -j list table inet hawser |
		jq --arg container "$container" --arg attachment "$attachment" -f "${BASH_SOURCE[0]%/*}/upgrade.jq" >/tmp/conf.old
	nft delete table inet hawser
	nft -f "$HAWSER_SRC/test/data/ruleset-0.1.0.nft"
	nft -j -f /tmp/conf.old
	while read -r record; do
		jq -c 'del(.entry, .configHash, .netnsCookie)' "$record" >/tmp/conf.record
		cat /tmp/conf.record >"$record"
	done < <(find /run/hawser/attachments -type f)
}
