# SPDX-License-Identifier: Apache-2.0
"""
test/differential/mask.py - the same name for what is random on both sides

What:  host ends of veth pairs (veth and eight hex digits) become V1, V2, ... in the order in
       which answers, then links, name them; hardware addresses become the link that has them.
Rules: text that the case asks to keep stays. A bridge without an address of its own wears that of
       one of its ports, whichever is lowest: that is "of a port".
"""
import json
import re

VETH = re.compile(r"\bveth[0-9a-f]{8}\b")
MAC = re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b")
PLAIN = ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff")


def replace(tree, change):
    """A copy of a tree in which change() has seen every string, keys as well."""
    if isinstance(tree, dict):
        return {change(key): replace(value, change) for key, value in tree.items()}
    if isinstance(tree, list):
        return [replace(value, change) for value in tree]
    return change(tree) if isinstance(tree, str) else tree


def names(tree):
    """{vethXXXXXXXX: Vn}"""
    out = {}
    for name in VETH.findall(json.dumps(tree)):
        out.setdefault(name, "V%d" % (len(out) + 1))
    return out


def namespaces(doc):
    for part in ("state", "left"):
        for ns, seen in doc.get(part, {}).items():
            if isinstance(seen, dict) and "links" in seen:
                yield ns, seen


def bridges(doc, keep):
    """Give bridges that wear a port's address an owner of their own."""
    worn = set()
    for _, seen in namespaces(doc):
        ports = {one["address"] for one in seen["links"].values() if one.get("master")}
        for name, one in seen["links"].items():
            if one.get("kind") == "bridge" and one["address"] not in keep:
                worn.add(name)
                if one["address"] in ports:
                    one["address"] = "of a port"
                else:
                    one["address"] = "its own"
    for step in doc["steps"].values():
        for one in (step.get("result") or {}).get("interfaces", []):
            if one.get("name") in worn and not one.get("sandbox"):
                one["mac"] = "a mac" if MAC.fullmatch(one.get("mac", "")) else one.get("mac")


def owners(doc, keep):
    """{hardware address: "mac of NAMESPACE LINK"}, of those that are not to be kept"""
    out = {}
    for ns, seen in namespaces(doc):
        for name, one in seen["links"].items():
            mac = one.get("address")
            if mac and MAC.fullmatch(mac) and mac not in PLAIN and mac not in keep:
                out.setdefault(mac, "mac of %s %s" % (ns, name))
    return out


def masked(doc, keep=()):
    """What a side printed, with everything random named alike."""
    found = names(doc)
    doc = replace(doc, lambda text: VETH.sub(lambda m: found[m[0]], text))
    bridges(doc, keep)
    macs = owners(doc, keep)

    def named(text):
        return MAC.sub(lambda m: m[0] if m[0] in PLAIN or m[0] in keep
                       else macs.get(m[0], "mac of nobody"), text)
    return replace(doc, named)


def leaves(tree, path=""):
    """{path: value} of everything that is not an object or a list; empty ones count as absent"""
    if isinstance(tree, (dict, list)):
        pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
        out = {}
        for key, value in pairs:
            out.update(leaves(value, "%s > %s" % (path, key) if path else str(key)))
        return out
    return {path: tree}
