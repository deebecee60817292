# SPDX-License-Identifier: Apache-2.0
"""size and start-up time of hawser-plugin"""
from lib.rows import Aim, Pair, Size


def rows(place):
    yield Size("hawser-plugin, stripped", file=place.build / "bin/hawser-plugin",
               aim=Aim(size=600 * 1000))
    version = place.write("version.json", '{"cniVersion":"1.0.0"}')
    yield Pair("hawser-plugin, VERSION", peer="empty C program",
               ours_run=["env CNI_COMMAND=VERSION", f"input {version}",
                         f"run {place.build}/cni/loopback"],
               peer_run=[f"run {place.build}/bench/bench-empty"],
               aim=Aim(more_ms=0.2))
