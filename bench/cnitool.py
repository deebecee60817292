# SPDX-License-Identifier: Apache-2.0
"""cnitool add and del with a chain of three noop plugins

The peer starts the same eight programs, cnitool twice and noop six times, but each only prints its
version.
"""
import json
import subprocess

from lib.rows import Aim, Pair


def rows(place):
    subprocess.run(["ip", "netns", "add", "bench"], check=True)
    place.write("net.d/10-noops.conflist", json.dumps({
        "cniVersion": "1.0.0", "name": "noops", "plugins": [{"type": "noop"}] * 3}))
    version = place.write("version.json", '{"cniVersion":"1.0.0"}')
    cnitool, cni = place.build / "bin/cnitool", place.build / "cni"
    yield Pair("add + del, three noops", peer="the same eight execs only",
               ours_run=[f"env CNI_PATH={cni}", f"env NETCONFPATH={place.dir}/net.d",
                         f"run {cnitool} add noops /run/netns/bench",
                         f"run {cnitool} del noops /run/netns/bench"],
               peer_run=[*[f"run {cnitool} --version"] * 2,
                         "env CNI_COMMAND=VERSION", f"input {version}",
                         *[f"run {cni}/noop"] * 6],
               aim=Aim(ratio=1.3))
