# SPDX-License-Identifier: Apache-2.0
"""forty ADDs in parallel: bridge + host-local

The time of a sample is from the first start to the last exit, divided by the number of pods.
"""
from lib.pods import BRIDGE, FLOOR, OURS, PEER, Pods
from lib.rows import Aim, Pair

PARALLEL = 40


def rows(place):
    pods = Pods(place, "bridge", PARALLEL, BRIDGE)

    def lines(side):
        add, delete = ([line for i in range(PARALLEL)
                        for line in pods.lines(side, command, verb="start", pod=i)]
                       for command in ("ADD", "DEL"))
        return [*add, "clock off", *delete, "reap"]

    yield Pair(f"one of {PARALLEL} parallel ADDs", peer="Go plugin", ours_run=lines(OURS),
               peer_run=lines(PEER), floor="kernel only, with exec", floor_run=lines(FLOOR),
               aim=Aim(faster=8), samples=max(1, place.samples // 10), each=PARALLEL)
