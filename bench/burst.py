# SPDX-License-Identifier: Apache-2.0
"""forty pods at once: bridge + host-local

The time of a sample is from the first start to the last end, divided by the number of pods.
"""
from lib.pods import BRIDGE, FLOOR, OURS, PEER, Pods
from lib.rows import Aim, Pair

AT_ONCE = 40


def rows(place):
    pods = Pods(place, "bridge", AT_ONCE, BRIDGE)

    def lines(side):
        add, delete = ([line for i in range(AT_ONCE)
                        for line in pods.lines(side, command, how="start", pod=i)]
                       for command in ("ADD", "DEL"))
        return [*add, "clock off", *delete, "reap"]

    yield Pair(f"each of {AT_ONCE} ADDs at once", peer="Go's", ours_run=lines(OURS),
               peer_run=lines(PEER), floor="the probe, each with its exec", floor_run=lines(FLOOR),
               aim=Aim(faster=8), samples=max(1, place.samples // 10), each=AT_ONCE)
