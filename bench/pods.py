# SPDX-License-Identifier: Apache-2.0
"""pods: hawser-cri with our plugins, and containerd with runc and the Go plugins

One client (bench/cri.c) drives both. The network is a bridge with ipMasq, and portmap; the pods have no host
ports. "its network by serve" is that network for a namespace that exists: hw_add() and hw_del() with the
plugins that hawser-plugin serve runs.
"""
import contextlib
import os
import time

from lib import memory
from lib.nodes import CLIENTS, crowd, hawser_node, held, nodes, restarts, scaled
from lib.rows import Aim, Memory, Pair

PODS = 100
MANY = 500              # pods at the start of a daemon
STOPS = 200
STOPS_S = 120           # timeout until all of them wait
LIST = "/runtime.v1.RuntimeService/ListPodSandbox"

# A plugin whose DEL waits for a writer of the fifo "gate", if that exists.
HANGING = """#!/bin/sh
cd {dir}
case $CNI_COMMAND in
ADD) echo '{{"cniVersion": "1.0.0", "ips": [{{"address": "10.1.1.1/24"}}]}}' ;;
DEL) [ ! -e gate ] || {{ echo >>waiting; cat <gate; }} ;;
esac
"""


def rows(place):
    with nodes(place, "pods") as both:
        yield from used(both, scaled(place, PODS))
        yield from one_by_one(both)
        yield from crowd(both, f"of {{}} pods, {CLIENTS} clients", "+run", "stop remove", scaled(place, PODS),
                         rounds=max(1, place.samples // 40), aim=Aim(faster=6))
    yield from list_beside_stops(place, scaled(place, STOPS))
    yield restarts(place, "pods-restart", "start with {} pods, until they are listed", "run", "stop remove", scaled(place, MANY), 0)


def one_by_one(both):
    sides = [*both.sides(), both.serve()]
    samples = max(3, both.place.samples // 2)
    for what, step, times in (("RunPodSandbox", "run", 12), ("RunPodSandbox with pause", "run-pause", 10)):
        yield Pair(what, peer="containerd", floor="its network by serve", samples=samples,
                   command=both.command(f"+{step}", "stop remove settle", sides),
                   aim=Aim(faster=times), floor_aim=Aim(more_ms=2))
    yield Pair("StopPodSandbox + RemovePodSandbox", peer="containerd", floor="its network by serve",
               command=both.command("run +stop +remove", "settle", sides), samples=samples, aim=Aim(faster=8))


def used(both, count):
    """Memory of the daemons, and of the processes of pods."""
    yield both.idle_memory(7_000_000)
    for words, steps, kib in (("a pod", "run", 0), ("a pod with pause", "run-pause", 100_000 // 1024)):
        helpers, resident = both.memory(steps, "stop remove", count, memory.private)
        yield Memory(f"{words}, without the daemon: private", peer="containerd", aim=Aim(kib=kib), found=[helpers])
        if steps == "run":
            yield Memory(f"daemon with {count} pods: resident", peer="containerd",
                         aim=Aim(kib=10_000_000 // 1024), found=[resident])


# ---- lists --------------------------------------------------------------------------------------

def lines_of(path):
    return path.read_text().count("\n") if path.exists() else 0


@contextlib.contextmanager
def stops(node, directory, count):
    """While all pods of a node are being stopped, and the plugin of each waits."""
    gate, deadline = directory / "gate", time.monotonic() + STOPS_S
    with held(node, "run", "stop", count, clients=count) as client:
        os.mkfifo(gate)
        client.stdin.close()
        try:
            while lines_of(directory / "waiting") < count:
                assert time.monotonic() < deadline, "not all plugins were called"
                time.sleep(0.1)
            yield
        finally:
            writer = os.open(gate, os.O_RDWR)
            gate.unlink()
            os.close(writer)    # ends the wait of all plugins


def list_beside_stops(place, count):
    plugins = place.dir / "plugins"
    place.write("plugins/hanging", HANGING.format(dir=plugins)).chmod(0o755)
    conf = {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "hanging"}]}
    busy, idle = (hawser_node(place, name, conf, plugins) for name in ("busy", "idle"))
    gate, waiting = plugins / "gate", plugins / "waiting"
    with busy.running(), idle.running(), held(idle, "run", "stop", count), stops(busy, plugins, count):
        yield Pair(f"list of {count} pods, plugins hang in stops of all", peer="without stops",
                   command=[place.build / "bench/bench-rpc", "{samples}", 1, 0, busy.socket, LIST, idle.socket,
                            LIST], aim=Aim(ms=10))
