# SPDX-License-Identifier: Apache-2.0
"""A typical chain of plugins: loopback, bridge with ipMasq, portmap, bandwidth

What:  Chain(place, count) creates hosts and pods like Pods. lines() returns the lines that make our
       cnitool run the chain for one pod, with our plugins or with the Go plugins. A pod has one port
       mapping.
How:   each plugin needs the result of the plugin before it, which is not known in advance. So a
       cnitool must run the chain; both sides use ours.
"""
import json

from lib.pods import BRIDGE, FLOOR, GO, OURS, PATH, SIDES, Pods

MASQ = {**BRIDGE, "ipMasq": True}
LIMITS = {"ingressRate": 100000000, "ingressBurst": 2000000, "egressRate": 100000000,
          "egressBurst": 2000000}


def network(name, bridge=MASQ):
    return {"cniVersion": "1.0.0", "name": name, "plugins": [
        {"type": "loopback"}, {"type": "bridge", **bridge},
        {"type": "portmap", "capabilities": {"portMappings": True}},
        {"type": "bandwidth", **LIMITS}]}


def port_mappings(ports):
    """The value of CAP_ARGS. It has no blanks, because blanks separate words in bench/spawn.c."""
    return json.dumps({"portMappings": [{"hostPort": port, "containerPort": 7777, "protocol": "udp"}
                                        for port in ports]}, separators=(",", ":"))


class Chain:
    def __init__(self, place, count, sides=SIDES):
        self.place = place
        self.pods = Pods(place, "bridge", count, BRIDGE, sides=sides)
        for side in sides:
            place.write(f"net.d/{self.pods.name}-{side}.conflist",
                        json.dumps(network(self.name(side))))

    def name(self, side):
        return f"{self.pods.name}-{side}"

    def host(self, side):
        return self.pods.namespace(side, "host")

    def lines(self, side, command, pod="{n}"):
        if side == FLOOR:
            return self.pods.lines(side, command, pod=pod)
        build = self.place.build
        # The digit 3 and the pod's number form a port that is unique among thousands of pods.
        ports = port_mappings(["PORT"]).replace('"PORT"', f"3{pod}")
        return [f"netns /run/netns/{self.host(side)}",
                f"env CNI_PATH={build / 'cni' if side == OURS else GO}",
                f"env PATH={PATH}",
                f"env NETCONFPATH={self.place.dir}/net.d", f"env CAP_ARGS={ports}",
                f"run {build}/bin/cnitool {command.lower()} {self.name(side)}"
                f" /run/netns/{self.pods.namespace(side, pod)}"]
