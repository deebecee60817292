# SPDX-License-Identifier: Apache-2.0
"""a typical pod: bridge with ipMasq; the chain loopback, bridge, portmap, bandwidth

The bridge plugin is executed directly, as in attach.py. The chain is run by our cnitool for both
sides. "kernel only" is the kernel's share of the bridge plugin, without nftables and traffic control.
"""
from lib.chain import MASQ, Chain
from lib.pods import FLOOR, OURS, PEER, Pods
from lib.rows import Aim, Growth, Memory, Pair

CHAINS = 60     # number of samples; only a few, because the chain of Go plugins takes a third of a second
MASQS = 100
PODS = 1000
FULL = 200      # if BENCH_SAMPLES is smaller, there are fewer pods
KERNEL = "kernel only: bridge"


def rows(place):
    count = min(place.samples, MASQS)
    pods = Pods(place, "bridge", count + count // 10, MASQ)
    yield from add_and_del("bridge with ipMasq", pods, count, faster=(10, 12))
    count = min(place.samples, CHAINS)
    chain = Chain(place, count + count // 10)
    yield from add_and_del("chain", chain, count, faster=(12, 15))
    yield memory(Chain(place, 1, sides=(OURS, PEER)))
    yield growth(place, max(10, PODS * min(place.samples, FULL) // FULL))


def add_and_del(what, pods, count, faster):
    for command, times in zip(("ADD", "DEL"), faster):
        settle = ["clock off", "reap"] if command == "DEL" else []
        yield Pair(f"{what}, {command}", peer="Go plugin",
                   ours_run=pods.lines(OURS, command) + settle,
                   peer_run=pods.lines(PEER, command), floor=KERNEL,
                   floor_run=pods.lines(FLOOR, command), aim=Aim(faster=times), samples=count)


def memory(chain):
    """Largest memory of cnitool and its plugins, including the first ADD, which loads our nftables rules."""
    def lines(side):
        return [*chain.lines(side, "ADD", pod=0), "clock off", *chain.lines(side, "DEL", pod=0), "reap"]

    return Memory("chain, ADD: largest resident memory", peer="Go plugin", ours_run=lines(OURS),
                  peer_run=lines(PEER), aim=Aim(kib=6 * 1000 * 1000 // 1024),
                  samples=max(1, chain.place.samples // 20))


def growth(place, count):
    chain = Chain(place, count, sides=(OURS, FLOOR))
    return Growth(f"chain, ADD of the last of {count} pods", ours_run=chain.lines(OURS, "ADD"),
                  peers={KERNEL: chain.lines(FLOOR, "ADD")}, floor=KERNEL, samples=count,
                  aim=Aim(growth=1.3))
