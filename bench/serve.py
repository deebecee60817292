# SPDX-License-Identifier: Apache-2.0
"""a chain of plugins that hawser-plugin serve runs: loopback, bridge with ipMasq, portmap, bandwidth

bench/serve.c runs the chain, as hawser-cri does: our plugins by serve, which runs all the time, and the Go
plugins by exec. "kernel only" are the requests of all four plugins: rtnetlink, nftables, traffic control.
"""
import subprocess

from lib.chain import Chain
from lib.pods import FLOOR, GO, PATH
from lib.rows import Aim, Pair

CHAINS = 100
KERNEL = "kernel only: chain"


def rows(place):
    count = min(place.samples, CHAINS)
    chain = Chain(place, count + count // 10 + 1)
    load_rules(place, chain, count + count // 10)
    for command, times in (("add", 20), ("del", 30)):
        yield Pair(f"chain by serve, {command.upper()}", peer="Go plugins, executed", floor=KERNEL,
                   command=[place.build / "bench/bench-serve", command, "{samples}", chain.pods.name,
                            place.dir, place.build / "bin/hawser-plugin", place.build / "cni", GO,
                            chain.pods.probe()],
                   samples=count, aim=Aim(faster=times), floor_aim=Aim(ratio=2))


def load_rules(place, chain, pod):
    """Our nftables rules in the namespace of the probe's host: the ADD of one pod loads them."""
    subprocess.run(["ip", "netns", "exec", chain.host(FLOOR), "env", f"CNI_PATH={place.build}/cni",
                    f"NETCONFPATH={place.dir}/net.d", f"PATH={PATH}", place.build / "bin/cnitool", "add",
                    chain.name(FLOOR), f"/run/netns/{chain.pods.namespace(FLOOR, pod)}"],
                   check=True, stdout=subprocess.DEVNULL)
