# SPDX-License-Identifier: Apache-2.0
"""
test/differential/state.py - the state of a host and its pods, and reachability between them

What:  links, addresses, routes, rules, permanent neighbours, qdiscs, bridge VLANs, interface
       sysctls, nftables and the plugins' files, as one tree of JSON values; and which namespace
       reaches which addresses.
How:   JSON output of iproute2, keyed by names so that two trees can be compared leaf by leaf.
Rules: what the kernel changes by itself is left out: indexes, timers, operational state, and
       link-local and multicast entries.
       The two sides write their rules for pods differently. For the tables that contain these
       rules, the tree only says whether they contain anything for a pod.
"""
import ctypes
import itertools
import json
import os
import pathlib
import re
import select
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from waiting import wait_until  # noqa: E402

CLONE_NEWNET = 0x40000000
PORT = 7777
KEPT = ("/var/lib/cni", "/run/cni")
FORWARDING = ("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding",
              "net/ipv6/conf/all/forwarding", "net/ipv4/conf/all/route_localnet")
# Attributes of links that are meaningless here or change by themselves.
LINK_NOISE = {"ifindex", "ifname", "link_index", "link_netnsid", "link", "operstate", "linkmode",
              "group", "promiscuity", "allmulti", "flags", "addr_info", "num_tx_queues",
              "num_rx_queues", "gso_max_size", "gso_max_segs", "tso_max_size", "tso_max_segs",
              "gro_max_size", "gso_ipv4_max_size", "gro_ipv4_max_size", "min_mtu", "max_mtu",
              "parentbus", "parentdev", "inet6_addr_gen_mode", "broadcast", "altnames"}
# Tables with rules of plugins: ours, upstream's nftables and iptables-nft. FOR_PODS matches objects
# that belong to a pod: our elements have a comment, upstream's chains and rules a hash or an ID.
PLUGIN_TABLES = {("inet", "hawser"), ("bridge", "hawser"), ("bridge", "nat"), ("ip", "nat"),
                 ("ip6", "nat"), ("inet", "cni_plugins_masquerade"), ("ip", "filter"),
                 ("ip6", "filter")}
FOR_PODS = re.compile(r'"comment": "[0-9a-f]{16}|CNI-[0-9a-f]{24}|CNI-[DS]N-|cni-br-iface-|'
                      r'CNI-FORWARD.*"field": "[sd]addr"')
FLAG_NOISE = {"LOWER_UP", "NO-CARRIER", "M-DOWN"}
KIND_NOISE = {"hello_timer", "tcn_timer", "topology_change_timer", "gc_timer", "fdb_n_learned",
              "bridge_id", "root_id", "designated_bridge", "designated_root", "root_port",
              "root_path_cost", "topology_change", "topology_change_detected", "message_age_timer",
              "forward_delay_timer", "hold_timer", "id", "no", "designated_port", "designated_cost",
              "topology_change_ack", "config_pending", "state", "port_id", "port_no"}


def tool(*command, stdin=""):
    """Run a program and return the JSON values that it prints."""
    text = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False).stdout
    out, at, decoder = [], 0, json.JSONDecoder()
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        out.append(value)
    return out


def inside(ns):
    return ["-n", ns] if ns else []


def ip(ns, *options, commands):
    """Run ip once with several commands; returns the list that each of them prints."""
    return tool("ip", *options, "-d", "-j", *inside(ns), "-batch", "-",
                stdin="\n".join(commands) + "\n")


def kind_data(info):
    return {key: value for key, value in (info or {}).items() if key not in KIND_NOISE}


def link(raw):
    out = {key: value for key, value in raw.items() if key not in LINK_NOISE | {"linkinfo"}}
    out["flags"] = {flag: True for flag in raw["flags"] if flag not in FLAG_NOISE}
    info = raw.get("linkinfo", {})
    out["kind"] = info.get("info_kind")
    out["data"] = kind_data(info.get("info_data"))
    out["port"] = kind_data(info.get("info_slave_data"))
    return out


def addresses(raw):
    """Addresses without link-local ones, which the kernel generates from the MAC address."""
    out = {}
    for a in raw["addr_info"]:
        if a.get("local", "").startswith("fe80:"):
            continue
        noise = {"family", "local", "prefixlen", "label", "valid_life_time", "preferred_life_time",
                 "tentative"}
        out["%s/%s" % (a.get("local"), a["prefixlen"])] = {
            key: value for key, value in a.items() if key not in noise}
    return out


def routes(families):
    out = {}
    for family, found in families.items():
        for r in found:
            own = r["dst"].startswith(("fe80:", "ff00:")) or (
                family == "-6" and r.get("table") == "local")
            if own:
                continue
            key = "%s dev %s via %s table %s" % (
                r["dst"], r.get("dev"), r.get("gateway", "-"), r.get("table", "main"))
            noise = {"dst", "dev", "gateway", "table", "pref"}
            out[key] = {k: v for k, v in r.items() if k not in noise and k != "flags"}
            flags = [flag for flag in r.get("flags", []) if flag not in ("linkdown", "dead")]
            out[key]["flags"] = {flag: True for flag in flags}
    return out


def rules(families):
    return {"%s %s" % (family, json.dumps(rule, sort_keys=True)): True
            for family, found in families.items() for rule in found}


def neighbours(found):
    return {"%s dev %s" % (n["dst"], n["dev"]): n.get("lladdr") for n in found}


def qdiscs(ns):
    out = {}
    for q in itertools.chain(*tool("tc", "-j", *inside(ns), "qdisc")):
        key = "%s %s" % (q["dev"], "root" if q.get("root") else q.get("parent", "-"))
        out[key] = {"kind": q["kind"], "options": q.get("options", {})}
    return out


def vlans(ns):
    out = {}
    for port in itertools.chain(*tool("bridge", "-j", *inside(ns), "vlan", "show")):
        for v in port["vlans"]:
            name = "%s %s" % (port["ifname"], "-".join(
                str(v[end]) for end in ("vlan", "vlanEnd") if end in v))
            out[name] = {flag: True for flag in v.get("flags", [])}
    return out


def read(path):
    try:
        return path.read_text().rstrip("\n")
    except OSError:
        return None


def sysctls(names):
    """Sysctls of the namespace that this task is in."""
    top = pathlib.Path("/proc/sys")
    out = {name: read(top / name) for name in FORWARDING}
    for family in ("ipv4", "ipv6"):
        for name in names:
            for file in (top / "net" / family / "conf" / name).glob("*"):
                out[str(file.relative_to(top))] = read(file)
    return out


class Within:
    """with Within(ns): the block runs in that namespace; with None, in the current one."""

    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self, ns):
        self.fd = os.open("/run/netns/" + ns, os.O_RDONLY | os.O_CLOEXEC) if ns else None
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def enter(self, fd):
        if self.libc.setns(fd, CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), "setns")

    def __enter__(self):
        if self.fd is not None:
            self.enter(self.fd)

    def __exit__(self, *_):
        if self.fd is not None:
            self.enter(self.home)
            os.close(self.fd)
        os.close(self.home)


def namespace(ns):
    """The state of one namespace; links in the order in which they were created."""
    raw, neigh = ip(ns, commands=["addr", "neigh show nud permanent"])
    routes4, rules4 = ip(ns, "-4", commands=["route show table all", "rule"])
    routes6, rules6 = ip(ns, "-6", commands=["route show table all", "rule"])
    out = {"links": {}, "addrs": {}}
    for one in raw:
        out["links"][one["ifname"]] = link(one)
        out["addrs"][one["ifname"]] = addresses(one)
    out["routes"] = routes({"-4": routes4, "-6": routes6})
    out["rules"] = rules({"-4": rules4, "-6": rules6})
    out["neigh"] = neighbours(neigh)
    out["qdiscs"] = qdiscs(ns)
    if any(one["kind"] == "bridge" for one in out["links"].values()):
        out["vlans"] = vlans(ns)
    with Within(ns):
        out["sysctl"] = sysctls(name for name in out["links"] if name != "lo")
    return out


def files():
    """Returns {path: contents} of the plugins' files; for a symbolic link, its target."""
    out = {}
    for top in KEPT:
        for path in sorted(pathlib.Path(top).rglob("*")):
            if path.is_symlink():
                out[str(path)] = "-> " + os.readlink(path)
            elif path.is_file():
                out[str(path)] = path.read_text(errors="replace")
    return out


def nftables():
    """Returns (entries outside PLUGIN_TABLES, whether PLUGIN_TABLES contain anything for a pod)."""
    try:
        # the first entry is the version of nft
        entries = [entry for ruleset in tool("nft", "-j", "list", "ruleset")
                   for entry in ruleset["nftables"][1:]]
    except FileNotFoundError:
        entries = []
    others, pods = [], False
    for entry in entries:
        kind, what = next(iter(entry.items()))
        table = (what["family"], what["name"] if kind == "table" else what["table"])
        if table in PLUGIN_TABLES:
            pods = pods or bool(FOR_PODS.search(json.dumps(entry)))
        else:
            others.append(entry)
    return others, pods


def settle(namespaces):
    """Wait until no address is tentative, except addresses whose duplicate was found."""
    def is_settled():
        return not any(a.get("tentative") and not a.get("dadfailed") for ns in namespaces
                       for one in ip(ns, "-6", commands=["addr"])[0] if "LOWER_UP" in one["flags"]
                       for a in one.get("addr_info", []))
    wait_until(is_settled, lambda: "addresses stay tentative", 0.05)


def snapshot(pods):
    out = {"host": namespace(None)}
    out.update((pod, namespace(pod)) for pod in pods)
    out["files"] = files()
    out["nft"], out["rules for pods"] = nftables()
    return out


# ---- reachability -------------------------------------------------------------


NOT_NAMESPACES = ("files", "nft", "rules for pods")
OUTSIDE = {"addrs": {"eth0": ["192.0.2.2/24", "fd99::2/64"]}}


def create_outside():
    """Create a neighbour of the host, which has no routes to pods."""
    script = """
        ip netns add outside
        ip link add wire type veth peer name eth0 netns outside
        ip addr add 192.0.2.1/24 dev wire
        ip addr add fd99::1/64 dev wire nodad
        ip link set wire up
        ip -n outside addr add 192.0.2.2/24 dev eth0
        ip -n outside addr add fd99::2/64 dev eth0 nodad
        ip -n outside link set eth0 up"""
    subprocess.run(["bash", "-ec", script], check=True)


def endpoint(ns):
    with Within(ns):
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setblocking(False)
    s.bind(("::", PORT))
    return s


def targets(tree):
    """Yields (namespace, address) for every address in a snapshot that other namespaces could send to."""
    for ns, seen in tree.items():
        if ns in NOT_NAMESPACES:
            continue
        for addrs in seen["addrs"].values():
            for text in addrs:
                ip = text.split("/")[0]
                if not ip.startswith("127.") and ip != "::1":
                    yield ns, ip


def send(s, data, to):
    try:
        s.sendto(data, to)
    except OSError:
        pass


def reach(tree, outside=False, seconds=0.4):
    """Returns {"pod1 to host 10.1.0.1": True} if a datagram arrived and its answer came back. If
    outside is set, the value is the source address that the receiver saw, instead of True.
    Ends when nothing has arrived for some seconds."""
    if outside:
        tree = dict(tree, outside=OUTSIDE)
    sockets = {ns: endpoint(None if ns == "host" else ns) for ns in tree
               if ns not in NOT_NAMESPACES}
    names = {s: ns for ns, s in sockets.items()}
    out, waiting = {}, set()
    for src, s in sockets.items():
        for dst, ip in targets(tree):
            if src != dst:
                label = "%s to %s %s" % (src, dst, ip)
                out[label] = False
                waiting.add(label)
                send(s, b"ask " + label.encode(), (ip if ":" in ip else "::ffff:" + ip, PORT))
    while waiting:
        ready = select.select(list(names), [], [], seconds)[0]
        if not ready:  # the others do not arrive
            break
        for s in ready:
            handle_datagram(s, names[s], out, waiting)
    for s in names:
        s.close()
    return out if outside else {label: bool(source) for label, source in out.items()}


def handle_datagram(s, ns, out, waiting):
    """Receive one datagram: answer a question that is for this namespace, record an answer."""
    try:
        data, peer = s.recvfrom(200)
    except OSError:
        return
    word, label = data.decode().split(" ", 1)
    if word == "ask" and label.split(" ")[2] == ns:
        source = peer[0].replace("::ffff:", "")
        send(s, ("yes %s|%s" % (label, source)).encode(), peer[:2])
    elif word == "yes":
        label, source = label.split("|")
        out[label] = source
        waiting.discard(label)
