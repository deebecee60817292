# SPDX-License-Identifier: Apache-2.0
"""containers: hawser-cri with crun and conmon, and containerd with runc

One client (bench/cri.c) drives both. The pods are those of bench/pods.py. A container is a shell that ends on
SIGTERM; its image has one layer. "crun alone" are crun's commands for a container of the same configuration,
whose root is mounted already.
"""
import contextlib

from lib import memory
from lib.nodes import CLIENTS, crowd, held, nodes, restarts, scaled
from lib.rows import Aim, Memory, Pair, run_program

PODS = 100
MANY = 500              # containers at the start of a daemon, and in a list of statistics
RUN, REMOVE = "create start", "stop-container remove-container"


def rows(place):
    with nodes(place, "containers") as both:
        yield from used(both, scaled(place, PODS))
        yield from one_by_one(both)
        yield statistics(both, scaled(place, MANY))
        yield from crowd(both, f"of {{}} pods with a container, {CLIENTS} clients", "+run +create +start",
                         "stop-container stop remove", scaled(place, PODS), rounds=max(1, place.samples // 40),
                         aim=Aim(faster=4))
    yield restarts(place, "containers-restart", "start with {} containers, until they are listed", "run create start",
                   "stop-container stop remove", scaled(place, MANY), scaled(place, MANY))


def used(both, count):
    yield both.idle_memory(8_000_000)
    helpers, resident = both.memory("run create start", "stop-container stop remove", count, memory.proportional)
    yield Memory("a pod with a container, without the daemon: PSS", peer="containerd", aim=Aim(kib=1024),
                 found=[helpers])
    yield Memory(f"daemon with {count} pods with a container: resident", peer="containerd",
                 aim=Aim(kib=12_000_000 // 1024), found=[resident])


def statistics(both, count):
    with contextlib.ExitStack() as stack:
        for node in (both.ours, both.theirs):
            stack.enter_context(held(node, "run create start", "stop-container stop remove", count))
        containers = [path.name for path in both.ours.dir.glob("state/containers/*")]
        command = both.command("+stats", "settle", [*both.sides(), both.files(containers)],
                               samples=max(3, both.place.samples // 2))
        return Pair(f"ListContainerStats of {count} containers", peer="containerd", floor="files in a loop",
                    found=run_program(command), aim=Aim(faster=3), floor_aim=Aim(ratio=1.5))


def one_by_one(both):
    samples = max(3, both.place.samples // 2)

    def pair(what, steps, cleanup, sides, **more):
        return Pair(what, peer="containerd", samples=samples,
                    command=both.command(steps, cleanup, sides, "--shared-pod"), **more)
    with both.crun() as crun:
        sides = [*both.sides(), crun]
        yield pair("CreateContainer + StartContainer", "+create +start", f"ready {REMOVE} settle", sides,
                   floor="crun alone", aim=Aim(faster=2.5), floor_aim=Aim(ratio=1.5))
        yield pair("StopContainer + RemoveContainer", "create start ready +stop-container +remove-container",
                   "settle", sides[:2], aim=Aim(faster=3))
        yield pair("ExecSync of true", "create start ready +exec", f"{REMOVE} settle", sides, floor="crun alone",
                   aim=Aim(faster=3))
        yield pair("a printed line, until it is in the log", "create-printer start ready +line",
                   f"{REMOVE} settle", sides[:2], aim=Aim(ratio=1))
