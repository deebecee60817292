# SPDX-License-Identifier: Apache-2.0
"""a pod with an address of host-local: bridge, ptp

Every plugin is run by exec, as a runtime does it, with ADD for many pods, then with DEL for them. The
kernel's own cost is that of bench/probe.c. Between the samples the kernel finishes what a DEL began.
"""
from lib.pods import BRIDGE, FLOOR, OURS, PEER, PTP, QUEUES, SIDES, Pods
from lib.rows import Aim, Memory, Pair

IN_A_ROW = 200


def rows(place):
    for plugin, conf in (("bridge", BRIDGE), ("ptp", PTP)):
        pods = Pods(place, plugin, place.samples + place.samples // 10, conf)
        yield from add_and_del(pods, plugin)
        yield least(place, plugin, conf)
    yield queues(place)
    pods = Pods(place, "bridge", IN_A_ROW, BRIDGE, sides=(OURS, PEER))
    yield many_dels(pods, min(IN_A_ROW, place.samples))
    yield memory(pods)


def add_and_del(pods, plugin):
    yield Pair(f"{plugin} + host-local, ADD", peer="Go's",
               ours_run=pods.lines(OURS, "ADD"), peer_run=pods.lines(PEER, "ADD"),
               floor="the kernel alone", floor_run=pods.lines(FLOOR, "ADD"),
               aim=Aim(faster=6), floor_aim=Aim(ratio=2.2))
    settle = ["clock off", "reap"]
    yield Pair(f"{plugin} + host-local, DEL", peer="Go's",
               ours_run=pods.lines(OURS, "DEL") + settle, peer_run=pods.lines(PEER, "DEL"),
               floor="the kernel alone", floor_run=pods.lines(FLOOR, "DEL"), aim=Aim(faster=5))
    first = {side: ["clock off", *pods.lines(side, "ADD"), "clock on"] for side in SIDES}
    yield Pair(f"{plugin} + host-local, DEL to its last process", peer="Go's",
               ours_run=first[OURS] + pods.lines(OURS, "DEL") + ["reap"],
               peer_run=first[PEER] + pods.lines(PEER, "DEL") + ["reap"],
               floor="the kernel alone", floor_run=first[FLOOR] + pods.lines(FLOOR, "DEL"))


def least(place, plugin, conf):
    """What no plugin that is started as a program can be faster than."""
    pods = Pods(place, plugin, place.samples + place.samples // 10, conf)
    return Pair(f"an empty C program and the kernel alone: {plugin}, ADD", peer="Go's ADD",
                ours_run=[*pods.lines(FLOOR, "ADD"), f"run {place.build}/bench/bench-empty"],
                peer_run=pods.lines(PEER, "ADD"),
                floor="hawser's ADD", floor_run=pods.lines(OURS, "ADD"))


def queues(place):
    """What asking for one queue saves the kernel. The other rows' floor asks for one, as we do."""
    one, many = (Pods(place, "bridge", place.samples + place.samples // 10, BRIDGE, sides=(FLOOR,))
                 .lines(FLOOR, "ADD") for _ in range(2))
    return Pair("the kernel alone: bridge, one queue", peer="the kernel's choice of queues",
                ours_run=one, peer_run=[*many[:-1], many[-1].removesuffix(f" {QUEUES}")])


def many_dels(pods, count):
    """Fails if a process is left behind."""
    def lines(side):
        add = [line for i in range(count) for line in pods.lines(side, "ADD", pod=i)]
        dels = [line for i in range(count) for line in pods.lines(side, "DEL", pod=i)]
        return ["clock off", *add, "clock on", *dels, "reap"]

    return Pair(f"each of {count} DELs in a row, to the last process", peer="Go's",
                ours_run=lines(OURS), peer_run=lines(PEER), samples=max(1, pods.place.samples // 40),
                each=count)


def memory(pods):
    def lines(side):
        return [*pods.lines(side, "ADD", pod=0), "clock off", *pods.lines(side, "DEL", pod=0), "reap"]

    return Memory("bridge + host-local, ADD: resident memory", peer="Go's", ours_run=lines(OURS),
                  peer_run=lines(PEER), aim=Aim(kib=5 * 1000 * 1000 // 1024))
