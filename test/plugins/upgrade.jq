# SPDX-License-Identifier: Apache-2.0
#
# Input: `nft -j list table inet hawser`. Output: the commands that add the same elements and chains of networks to the
# rules of 0.1.0. Arguments: $container and $attachment are owners of the same ports, now and in 0.1.0.
def element($set; $elem): {add: {element: {family: "inet", table: "hawser", name: $set, elem: $elem}}};
def owned: walk(if type == "object" and .comment == $container then .comment = $attachment else . end);
def is_new: IN("version", "claimed", "sharing", "iptables") or startswith("direct");

[.nftables[]] as $all
| [$all[].rule | values | select(.chain | test("^(masq|near)_"))] as $rules
| [$all[] | .set // .map | values | select(.elem)] as $sets
| {nftables: [
	($all[].chain | values | select(.name | test("^(masq|near)_")) | {add: {chain: {family, table, name}}}),

	# "daddr 10.7.0.0/24 return" and "daddr != 224.0.0.0/4 goto masqout" were one rule.
	($rules | group_by(.chain)[]
	 | {add: {rule: {family: "inet", table: "hawser", chain: .[0].chain,
		expr: (if .[0].chain | startswith("near_") then .[0].expr
		       else [.[].expr[] | select(.match) | .match.op = "!="] + [{masquerade: null}] end)}}}),

	($sets[] | select(.name | is_new | not) | element(.name; .elem | owned)),

	($sets[] | select(.name | startswith("port")) | (.name | ltrimstr("port")) as $family | .elem[][0].elem
	 | {concat: [.val.concat[0], .val.concat[2], 0]} as $key
	 | element("holder" + $family; [{elem: {val: $key, comment: $attachment}}]), element("upto" + $family; [$key]))
]}
