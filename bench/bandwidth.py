# SPDX-License-Identifier: Apache-2.0
"""how exactly a pod's bandwidth is limited: TCP for some seconds, on the wire

To the pod and from it, from it with an ifb on the host, and beside subnets that are not limited, at
three rates.
"""
import json
import os
import subprocess

from lib import stream
from lib.pods import OURS, PTP, Pods
from lib.rows import Rate

MBIT = 1000000
RATES = (10 * MBIT, 100 * MBIT, 1000 * MBIT)
BURST = 50              # a second's rate is so many bursts
WINDOWS = 3
SECONDS = 1.0           # each
FULL = 200              # samples; with fewer the windows are shorter


def rows(place):
    seconds = max(0.2, SECONDS * min(place.samples, FULL) / FULL)

    def row(what, rate, *ends):
        return Rate(what, rate, stream.rates(*ends, WINDOWS, seconds))

    for rate in RATES:
        what = f"{rate // MBIT} Mbit/s"
        host, pod, address, gateway = attach(place, rate)
        yield row(f"{what} to the pod", rate, host, pod, address)
        yield row(f"{what} from the pod", rate, pod, host, gateway)
        host, pod, _, gateway = attach(place, rate, egress="ifb")
        yield row(f"{what} from the pod by ifb", rate, pod, host, gateway)
        host, pod, address, _ = attach(place, rate, unshapedSubnets=["192.0.2.0/24"])
        yield row(f"{what} to the pod, some subnets free", rate, host, pod, address)


def attach(place, rate, **keys):
    """A pod on a host of its own; both namespaces and both addresses."""
    pods = Pods(place, "ptp", 1, PTP, sides=(OURS,))
    host, pod = pods.namespace(OURS, "host"), pods.namespace(OURS, 0)
    place.write(f"net.d/{host}.conflist", json.dumps({
        "cniVersion": "1.0.0", "name": host, "plugins": [{"type": "ptp", **PTP}, {
            "type": "bandwidth", "ingressRate": rate, "ingressBurst": rate // BURST,
            "egressRate": rate, "egressBurst": rate // BURST, **keys}]}))
    env = dict(os.environ, CNI_PATH=str(place.build / "cni"), NETCONFPATH=f"{place.dir}/net.d")
    said = subprocess.run(["ip", "netns", "exec", host, place.build / "bin/cnitool", "add", host,
                           f"/run/netns/{pod}"], env=env, check=True, stdout=subprocess.PIPE).stdout
    ip = json.loads(said)["ips"][0]
    return host, pod, ip["address"].split("/")[0], ip["gateway"]
