# SPDX-License-Identifier: Apache-2.0
"""Pods for comparisons of plugins: namespaces, and the lines for bench/spawn.c that call a plugin

What:  Pods(place, "bridge", count, conf) creates three hosts, one for our plugin, one for the Go
       plugin and one for the probe (bench/probe.c), and `count` pods for each. lines() returns the
       lines that call a plugin for one pod.
How:   a host is a network namespace, too, so that the sides do not affect each other. One program
       creates all namespaces in advance; they are deleted together with the sandbox.
"""
import itertools
import json
import os
import subprocess

GO = "/usr/lib/cni"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"      # Go plugins find iptables here
OURS, PEER, FLOOR = SIDES = ("ours", "go", "probe")

# Configurations of the plugins.
IPAM = {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]],
        "routes": [{"dst": "0.0.0.0/0"}]}
BRIDGE = {"bridge": "cni0", "isGateway": True, "ipam": IPAM}
PTP = {"ipam": IPAM}

QUEUES = 1      # for each end of the veth pair, as in src/plugins/pod/link.c

numbers = itertools.count()


def create_namespaces(names):
    batch = "".join(f"netns add {name}\n" for name in names)
    subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)


class Pods:
    def __init__(self, place, plugin, count, conf, sides=SIDES):
        self.place, self.plugin = place, plugin
        self.name = f"bench{os.getpid()}-{next(numbers)}"
        create_namespaces(self.namespace(side, pod) for side in sides
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

    def lines(self, side, command, verb="run", pod="{n}"):
        netns = f"/run/netns/{self.namespace(side, pod)}"
        host = f"netns /run/netns/{self.namespace(side, 'host')}"
        if side == FLOOR:
            operation = self.plugin if command == "ADD" else "del"
            verb = "selftimed" if verb == "run" else verb
            return [host, f"{verb} {self.probe()} {operation} {pod} {netns} {QUEUES}"]
        cni = self.place.build / "cni" if side == OURS else GO
        return [host, f"env PATH={PATH}", f"env CNI_PATH={cni}", f"env CNI_COMMAND={command}",
                f"env CNI_CONTAINERID=pod{pod}", f"env CNI_NETNS={netns}", "env CNI_IFNAME=eth0",
                f"input {self.conf[side]}", f"{verb} {cni}/{self.plugin}"]
