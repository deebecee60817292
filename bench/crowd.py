# SPDX-License-Identifier: Apache-2.0
"""growth with the number of pods: on one bridge, in one pool of addresses"""
import json

from lib.pods import BRIDGE, FLOOR, GO, IPAM, OURS, PEER, Pods
from lib.rows import Aim, Growth, Pair

PODS = 1000
LEASES = 60000
FULL = 200      # if BENCH_SAMPLES is smaller, there are fewer pods and leases


def rows(place):
    pods, leases = (max(1, n * min(place.samples, FULL) // FULL) for n in (PODS, LEASES))
    yield on_a_bridge(place, pods)
    ours = place.build / "cni"
    yield Pair(f"host-local, ADD with {leases} leases", peer="without leases",
               ours_run=lease(place, ours, "crowded", leases), peer_run=lease(place, ours, "empty"),
               aim=Aim(ratio=1.3))
    yield Pair(f"host-local, ADD with {leases} leases", peer="Go plugin",
               ours_run=lease(place, ours, "crowded-ours", leases),
               peer_run=lease(place, GO, "crowded-go", leases), samples=max(1, place.samples // 10))


def on_a_bridge(place, count):
    pods = Pods(place, "bridge", count, BRIDGE)
    kernel = "kernel only"
    return Growth(f"ADD of the last of {count} pods on a bridge", ours_run=pods.lines(OURS, "ADD"),
                  peers={"Go plugin": pods.lines(PEER, "ADD"), kernel: pods.lines(FLOOR, "ADD")},
                  floor=kernel, samples=count, aim=Aim(growth=1.3))


def address(i):
    return f"10.88.{(i + 2) // 256}.{(i + 2) % 256}"


def lease(place, cni, name, leases=0):
    """Create a pool of addresses with this number of leases. Returns the lines that add another lease;
    host-local ignores CNI_NETNS."""
    pool = place.dir / "pools" / name
    pool.mkdir(parents=True)
    for i in range(leases):
        (pool / address(i)).write_text(f"other{i}\r\neth0")
    if leases:
        (pool / "last_reserved_ip.0").write_text(address(leases - 1))
    conf = place.write(f"{name}.json", json.dumps(
        {"cniVersion": "1.0.0", "name": name, "type": "bridge",
         "ipam": {**IPAM, "dataDir": str(place.dir / "pools")}}))
    return [f"env CNI_PATH={cni}", "env CNI_COMMAND=ADD", "env CNI_CONTAINERID=pod{n}",
            "env CNI_NETNS=/run/netns/none", "env CNI_IFNAME=eth0", f"input {conf}",
            f"run {cni}/host-local"]
