# SPDX-License-Identifier: Apache-2.0
"""ADD and DEL of a pod: bridge and ptp with host-local

Every plugin is executed as a program, as a runtime does, with ADD for many pods and then with DEL. The
kernel's share is measured with bench/probe.c. The background process of a DEL exits between samples.
"""
from lib.pods import BRIDGE, FLOOR, OURS, PEER, PTP, QUEUES, SIDES, Pods
from lib.rows import Aim, Memory, Pair

SEQUENCE = 200      # DELs one after the other


def rows(place):
    for plugin, conf in (("bridge", BRIDGE), ("ptp", PTP)):
        pods = Pods(place, plugin, place.samples + place.samples // 10, conf)
        yield from add_and_del(pods, plugin)
        yield lower_bound(place, plugin, conf)
    yield queues(place)
    pods = Pods(place, "bridge", SEQUENCE, BRIDGE, sides=(OURS, PEER))
    yield many_dels(pods, min(SEQUENCE, place.samples))
    yield memory(pods)


def add_and_del(pods, plugin):
    yield Pair(f"{plugin} + host-local, ADD", peer="Go plugin",
               ours_run=pods.lines(OURS, "ADD"), peer_run=pods.lines(PEER, "ADD"),
               floor="kernel only", floor_run=pods.lines(FLOOR, "ADD"),
               aim=Aim(faster=6), floor_aim=Aim(ratio=2.2))
    settle = ["clock off", "reap"]
    yield Pair(f"{plugin} + host-local, DEL", peer="Go plugin",
               ours_run=pods.lines(OURS, "DEL") + settle, peer_run=pods.lines(PEER, "DEL"),
               floor="kernel only", floor_run=pods.lines(FLOOR, "DEL"), aim=Aim(faster=5))
    first = {side: ["clock off", *pods.lines(side, "ADD"), "clock on"] for side in SIDES}
    yield Pair(f"{plugin} + host-local, DEL with background process", peer="Go plugin",
               ours_run=first[OURS] + pods.lines(OURS, "DEL") + ["reap"],
               peer_run=first[PEER] + pods.lines(PEER, "DEL") + ["reap"],
               floor="kernel only", floor_run=first[FLOOR] + pods.lines(FLOOR, "DEL"))


def lower_bound(place, plugin, conf):
    """An empty program and the kernel's share: no plugin that is started as a program can be faster."""
    pods = Pods(place, plugin, place.samples + place.samples // 10, conf, sides=(OURS, FLOOR))
    return Pair(f"{plugin} + host-local, ADD", peer="empty C program + kernel only",
                ours_run=pods.lines(OURS, "ADD"),
                peer_run=[*pods.lines(FLOOR, "ADD"), f"run {place.build}/bench/bench-empty"],
                aim=Aim(ratio=1.5))


def queues(place):
    """The time that the kernel saves if a veth has one queue instead of the default number. In the other
    rows the probe also uses one queue."""
    one, many = (Pods(place, "bridge", place.samples + place.samples // 10, BRIDGE, sides=(FLOOR,))
                 .lines(FLOOR, "ADD") for _ in range(2))
    return Pair("kernel only: bridge, one queue", peer="default number of queues",
                ours_run=one, peer_run=[*many[:-1], many[-1].removesuffix(f" {QUEUES}")])


def many_dels(pods, count):
    """Time of many DELs including their background processes, all of which must exit."""
    def lines(side):
        add = [line for i in range(count) for line in pods.lines(side, "ADD", pod=i)]
        dels = [line for i in range(count) for line in pods.lines(side, "DEL", pod=i)]
        return ["clock off", *add, "clock on", *dels, "reap"]

    return Pair(f"one of {count} sequential DELs", peer="Go plugin",
                ours_run=lines(OURS), peer_run=lines(PEER), samples=max(1, pods.place.samples // 40),
                each=count)


def memory(pods):
    def lines(side):
        return [*pods.lines(side, "ADD", pod=0), "clock off", *pods.lines(side, "DEL", pod=0), "reap"]

    return Memory("bridge + host-local, ADD: resident memory", peer="Go plugin", ours_run=lines(OURS),
                  peer_run=lines(PEER), aim=Aim(kib=5 * 1000 * 1000 // 1024))
