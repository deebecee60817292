# SPDX-License-Identifier: Apache-2.0
"""small UDP packets through a host port, with many port mappings

Another namespace, the neighbour, sends a thousand packets to the last of a pod's host ports. Each packet
starts a new flow, because connection tracking forwards the later packets of a flow without looking up
the port mapping. The chains of the Go plugin are loaded with iptables-restore: the plugin itself would
need minutes to create the same chains, because it runs one process for each rule.
"""
import json
import os
import subprocess

from lib.chain import port_mappings
from lib.pods import BRIDGE, OURS, PATH, Pods
from lib.rows import Aim, Pair

PACKETS = 1000
FLOWS = 50      # number of samples; few, because entries of connection tracking stay and there are 64,000 ports
HOST, OUTSIDE = "192.0.2.1", "192.0.2.2"
SOURCES = "100.64.0.0/16"       # source addresses of bench/forward.c
FIRST_PORT, POD_PORT = 10000, 7777
AIM = 1 / 0.9


def rows(place):
    samples = min(place.samples, FLOWS)
    one, hundred, thousand = (Host(place, n) for n in (1, 100, 1000))
    go_one, go_thousand = (Host(place, n, go=True) for n in (1, 1000))

    def row(what, ours, peer, theirs, aim=None, flows="many"):
        return Pair(what, peer=peer, samples=samples, aim=aim and Aim(ratio=round(aim, 2)),
                    command=[place.build / "bench/bench-forward", "{samples}", PACKETS, flows,
                             *ours.words(), *theirs.words()])

    what = f"{PACKETS} new UDP flows"
    yield row(f"{what}, 100 port mappings", hundred, "one port mapping", one, AIM)
    yield row(f"{what}, 1000 port mappings", thousand, "one port mapping", one, AIM)
    yield row(f"{what}, 1000 port mappings", thousand, "Go plugin", go_thousand)
    yield row(f"Go plugin: {what}, 1000 port mappings", go_thousand, "one port mapping", go_one)
    yield row(f"{PACKETS} UDP packets of one flow, 1000 port mappings", thousand, "one port mapping",
              one, AIM, "one")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Host:
    """A host, a pod with a given number of port mappings, and a neighbour."""

    def __init__(self, place, mappings, go=False):
        self.ports = range(FIRST_PORT, FIRST_PORT + mappings)
        self.pods = Pods(place, "bridge", 1, BRIDGE, sides=(OURS,))
        self.host, self.outside, self.pod = (self.pods.namespace(OURS, end)
                                             for end in ("host", "out", 0))
        ip("netns", "add", self.outside)
        ip("-n", self.host, "link", "add", "out0", "type", "veth", "peer", "name", "eth0", "netns",
           self.outside)
        for netns, link, address in (self.host, "out0", HOST), (self.outside, "eth0", OUTSIDE):
            ip("-n", netns, "address", "add", f"{address}/24", "dev", link)
            ip("-n", netns, "link", "set", link, "up")
        ip("-n", self.host, "route", "add", SOURCES, "via", OUTSIDE)
        result = self.attach(place, portmap=not go)
        if go:
            self.restore(go_chains(result["ips"][0]["address"], self.ports))

    def run(self, *command, **options):
        return subprocess.run(["ip", "netns", "exec", self.host, *command], check=True, text=True,
                              **options)

    def attach(self, place, portmap):
        plugins = [{"type": "bridge", **BRIDGE}]
        if portmap:
            plugins.append({"type": "portmap", "capabilities": {"portMappings": True}})
        place.write(f"net.d/{self.host}.conflist", json.dumps(
            {"cniVersion": "1.0.0", "name": self.host, "plugins": plugins}))
        env = dict(os.environ, PATH=PATH, CNI_PATH=str(place.build / "cni"),
                   NETCONFPATH=f"{place.dir}/net.d", CAP_ARGS=port_mappings(self.ports))
        return json.loads(self.run(place.build / "bin/cnitool", "add", self.host,
                                   f"/run/netns/{self.pod}", env=env,
                                   stdout=subprocess.PIPE).stdout)

    def restore(self, rules):
        self.run("iptables-restore", "--noflush", input=rules)

    def words(self):
        """Arguments of bench/forward.c for this host."""
        return [f"/run/netns/{self.outside}", HOST, self.ports[-1], f"/run/netns/{self.pod}", POD_PORT]


def go_chains(address, ports):
    """The chains of the Go plugin for one pod, as input of iptables-restore."""
    pod, chain = address.split("/")[0], "CNI-DN-0123456789abcdef01234"
    lines = ["*nat", ":CNI-HOSTPORT-SETMARK -", ":CNI-HOSTPORT-MASQ -", ":CNI-HOSTPORT-DNAT -",
             f":{chain} -",
             "-A CNI-HOSTPORT-SETMARK -j MARK --set-xmark 0x2000/0x2000",
             "-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE",
             "-A POSTROUTING -j CNI-HOSTPORT-MASQ",
             "-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
             "-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT"]
    for i in range(0, len(ports), 15):
        some = ",".join(str(port) for port in ports[i:i + 15])
        lines.append(f"-A CNI-HOSTPORT-DNAT -p udp -m multiport --dports {some} -j {chain}")
    for port in ports:
        base = f"-A {chain} -p udp -m udp --dport {port}"
        lines += [f"{base} -s {address} -j CNI-HOSTPORT-SETMARK",
                  f"{base} -s 127.0.0.1 -j CNI-HOSTPORT-SETMARK",
                  f"{base} -j DNAT --to-destination {pod}:{POD_PORT}"]
    return "\n".join(lines + ["COMMIT", ""])
