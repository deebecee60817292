# SPDX-License-Identifier: Apache-2.0
"""accuracy of a pod's bandwidth limit: TCP throughput on the wire

Measures traffic to the pod, from the pod, from the pod with an ifb on the host, and to a pod with
unshapedSubnets, each at three rates.
"""
import json
import os
import subprocess

from lib import stream
from lib.pods import OURS, PTP, Pods
from lib.rows import Rate

MBIT = 1000000
RATES = (10 * MBIT, 100 * MBIT, 1000 * MBIT)
BURST = 50              # the burst is the rate divided by this
WINDOWS = 3
SECONDS = 1.0           # length of a window
FULL = 200              # if BENCH_SAMPLES is smaller, the windows are shorter


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
        yield row(f"{what} from the pod, with ifb", rate, pod, host, gateway)
        host, pod, address, _ = attach(place, rate, unshapedSubnets=["192.0.2.0/24"])
        yield row(f"{what} to the pod, with unshapedSubnets", rate, host, pod, address)


def attach(place, rate, **keys):
    """Attach a pod to a new host. Returns host, pod, the pod's address, the gateway."""
    pods = Pods(place, "ptp", 1, PTP, sides=(OURS,))
    host, pod = pods.namespace(OURS, "host"), pods.namespace(OURS, 0)
    place.write(f"net.d/{host}.conflist", json.dumps({
        "cniVersion": "1.0.0", "name": host, "plugins": [{"type": "ptp", **PTP}, {
            "type": "bandwidth", "ingressRate": rate, "ingressBurst": rate // BURST,
            "egressRate": rate, "egressBurst": rate // BURST, **keys}]}))
    env = dict(os.environ, CNI_PATH=str(place.build / "cni"), NETCONFPATH=f"{place.dir}/net.d")
    result = subprocess.run(["ip", "netns", "exec", host, place.build / "bin/cnitool", "add", host,
                             f"/run/netns/{pod}"], env=env, check=True,
                            stdout=subprocess.PIPE).stdout
    ip = json.loads(result)["ips"][0]
    return host, pod, ip["address"].split("/")[0], ip["gateway"]
