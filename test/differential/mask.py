# SPDX-License-Identifier: Apache-2.0
"""
test/differential/mask.py - replace random names and MAC addresses, so that both sides compare equal

What:  host ends of veth pairs (veth and eight hex digits) become V1, V2, ... in the order in
       which they appear in results, then among the links. A MAC address becomes the name of the
       link that has it.
Rules: texts listed in the case's `keep` are not replaced. A bridge without its own MAC address has
       the lowest one of its ports; such an address becomes "of a port".
"""
import json
import re

VETH = re.compile(r"\bveth[0-9a-f]{8}\b")
MAC = re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b")
PLAIN = ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff")


def replace(tree, change):
    """A copy of a tree with change() applied to every string, including keys."""
    if isinstance(tree, dict):
        return {change(key): replace(value, change) for key, value in tree.items()}
    if isinstance(tree, list):
        return [replace(value, change) for value in tree]
    return change(tree) if isinstance(tree, str) else tree


def names(tree):
    """Returns {name of a veth: "V1", "V2", ...}, in the order in which the names appear."""
    out = {}
    for name in VETH.findall(json.dumps(tree)):
        out.setdefault(name, "V%d" % (len(out) + 1))
    return out


def namespaces(doc):
    for part in ("state", "left"):
        for ns, seen in doc.get(part, {}).items():
            if isinstance(seen, dict) and "links" in seen:
                yield ns, seen


def mask_bridges(doc, keep):
    """Replace MAC addresses of bridges: in the state by "of a port" or "its own", in results by "a mac"."""
    bridges = set()
    for _, seen in namespaces(doc):
        ports = {one["address"] for one in seen["links"].values() if one.get("master")}
        for name, one in seen["links"].items():
            if one.get("kind") == "bridge" and one["address"] not in keep:
                bridges.add(name)
                if one["address"] in ports:
                    one["address"] = "of a port"
                else:
                    one["address"] = "its own"
    for step in doc["steps"].values():
        for one in (step.get("result") or {}).get("interfaces", []):
            if one.get("name") in bridges and not one.get("sandbox"):
                one["mac"] = "a mac" if MAC.fullmatch(one.get("mac", "")) else one.get("mac")


def owners(doc, keep):
    """Returns {MAC address: "mac of NAMESPACE LINK"}, without the addresses in keep."""
    out = {}
    for ns, seen in namespaces(doc):
        for name, one in seen["links"].items():
            mac = one.get("address")
            if mac and MAC.fullmatch(mac) and mac not in PLAIN and mac not in keep:
                out.setdefault(mac, "mac of %s %s" % (ns, name))
    return out


def masked(doc, keep=()):
    """A side's report with random names and addresses replaced."""
    found = names(doc)
    doc = replace(doc, lambda text: VETH.sub(lambda m: found[m[0]], text))
    mask_bridges(doc, keep)
    macs = owners(doc, keep)

    def mask_macs(text):
        return MAC.sub(lambda m: m[0] if m[0] in PLAIN or m[0] in keep
                       else macs.get(m[0], "mac of no link"), text)
    return replace(doc, mask_macs)


def leaves(tree, path=""):
    """Returns {path: value} of every value that is not an object or a list. Empty ones have no path."""
    if isinstance(tree, (dict, list)):
        pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
        out = {}
        for key, value in pairs:
            out.update(leaves(value, "%s > %s" % (path, key) if path else str(key)))
        return out
    return {path: tree}
