# SPDX-License-Identifier: Apache-2.0
"""ListImages with many images: hawser-cri and containerd

The images differ only in their configurations and are pulled from one docker-registry. Our own client
calls ListImages many times, so that a memory leak of the daemon would show.
"""
import concurrent.futures
import os
import subprocess

from lib import memory
from lib.registry import archive, config, files_below, layer_of, registry
from lib.rows import Aim, Memory, Pair
from lib.runtimes import containerd, hawser_cri

IMAGES = 1000
FULL = 200              # if BENCH_SAMPLES is smaller, there are fewer images
LAYER = 20_000          # size of the layer in bytes
LIST = "/runtime.v1.ImageService/ListImages"


def push(images, count):
    layers = [layer_of(archive(files_below("/usr/sbin"), LAYER))]
    return [images.push("made", str(n), layers, config(layers, Labels={"number": str(n)}))
            for n in range(count)]


def pull(runtime, names):
    def one(name):
        subprocess.run(runtime.hawser("pull", "--quiet", name), check=True, stdout=subprocess.DEVNULL)
    with concurrent.futures.ThreadPoolExecutor(2 * os.cpu_count()) as pool:
        list(pool.map(one, names))


def rows(place):
    with registry(place.dir) as images, \
            hawser_cri(place.build, place.dir / "ours", "--plain-http", images.host,
                       "--disk-reserve", "0") as ours, \
            containerd(place.build, place.dir / "containerd") as theirs:
        names = push(images, max(1, IMAGES * min(place.samples, FULL) // FULL))
        for runtime in (ours, theirs):
            pull(runtime, names)
        lists = Pair(f"list of {len(names)} images", peer="containerd",
                     command=[place.build / "bench/bench-rpc", "{samples}", 1, 0, ours.socket, LIST,
                              theirs.socket, LIST], aim=Aim(faster=3))
        yield lists
        before = memory.resident(ours.pid)
        for _ in range(5):
            lists.measure(place)
        yield Memory(f"daemon memory after {6 * place.samples} lists",
                     peer=f"after {place.samples} lists",
                     found=[(memory.resident(ours.pid), before)], aim=Aim(kib=before + before // 20))
