# SPDX-License-Identifier: Apache-2.0
"""Pods for a comparison of plugins: namespaces, and the lines of bench/spawn.c that call a plugin

What:  Pods(place, "bridge", count, conf) makes three hosts, one for our plugin, one for Go's and one
       for the bare probe (bench/probe.c), and `count` pods for each. lines() calls a plugin for one of
       them.
How:   a host is a network namespace, too, so that what one side makes is in nobody else's way. All
       are made beforehand by one program; they go with the sandbox.
"""
import itertools
import json
import os
import subprocess

GO = "/usr/lib/cni"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"      # where Go's find iptables
OURS, PEER, FLOOR = SIDES = ("ours", "go", "probe")

# What the benches give their plugins.
IPAM = {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]],
        "routes": [{"dst": "0.0.0.0/0"}]}
BRIDGE = {"bridge": "cni0", "isGateway": True, "ipam": IPAM}
PTP = {"ipam": IPAM}

QUEUES = 1      # of each end, as src/plugins/pod/link.c asks for: the floor asks for what we do

numbers = itertools.count()


def make_namespaces(names):
    batch = "".join(f"netns add {name}\n" for name in names)
    subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)


class Pods:
    def __init__(self, place, plugin, count, conf, sides=SIDES):
        self.place, self.plugin = place, plugin
        self.name = f"bench{os.getpid()}-{next(numbers)}"
        make_namespaces(self.namespace(side, pod) for side in sides
                        for pod in ("host", *range(count)))
        for side in sides:
            subprocess.run(["ip", "-n", self.namespace(side, "host"), "link", "set", "lo", "up"],
                           check=True)
        if FLOOR in sides:
            subprocess.run(["ip", "netns", "exec", self.namespace(FLOOR, "host"), self.probe(), "setup"],
                           check=True)
        self.conf = {side: place.write(f"{self.name}-{side}.json", json.dumps(
            {"cniVersion": "1.0.0", "name": f"{self.name}-{side}", "type": plugin, **conf}))
            for side in sides}

    def namespace(self, side, pod):
        return f"{self.name}-{side}-{pod}"

    def probe(self):
        return self.place.build / "bench/bench-probe"

    def lines(self, side, command, how="run", pod="{n}"):
        netns = f"/run/netns/{self.namespace(side, pod)}"
        host = f"netns /run/netns/{self.namespace(side, 'host')}"
        if side == FLOOR:
            what = self.plugin if command == "ADD" else "del"
            how = "says" if how == "run" else how
            return [host, f"{how} {self.probe()} {what} {pod} {netns} {QUEUES}"]
        cni = self.place.build / "cni" if side == OURS else GO
        return [host, f"env PATH={PATH}", f"env CNI_PATH={cni}", f"env CNI_COMMAND={command}",
                f"env CNI_CONTAINERID=pod{pod}", f"env CNI_NETNS={netns}", "env CNI_IFNAME=eth0",
                f"input {self.conf[side]}", f"{how} {cni}/{self.plugin}"]
