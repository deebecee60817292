# SPDX-License-Identifier: Apache-2.0
"""pull of an image from a registry: hawser-cri, containerd and podman

Each runtime pulls the same image from one docker-registry on loopback into its own store. Removing the
image is not timed. `hawser pull` is the client of hawser-cri and containerd. Each row is measured twice:
with the stores in memory, where only processor time counts, and with the stores on a disk, where the
amount of data that a runtime writes before it responds counts, too.
"""
import contextlib
import subprocess

from lib import disk, memory
from lib.registry import config, layers_of_usr, registry
from lib.rows import Aim, Memory, Pair
from lib.runtimes import containerd, hawser_cri

SIZE = 400_000_000      # bytes of the unpacked image
FULL = 200              # if BENCH_SAMPLES is smaller, the image is smaller
AIMS = {"containerd": Aim(faster=1.5), "podman": Aim(faster=2)}
AIM_PRESENT = Aim(faster=2)     # for pulls of an image that is already in the store
AIM_COLD = Aim(ratio=1.3)       # for the same, if hawser-fetch has to be started first
REMOVE_S = 600          # timeout for removing an image; long enough for a slow disk
PAUSE = ["clock off", "run /bin/sleep 0.05", "clock on"]    # daemons still work after their response


class Podman:
    """Commands for podman, which has no daemon."""

    def __init__(self, directory):
        self.words = ["/usr/bin/podman", "--root", directory / "root", "--runroot", directory / "run",
                      "--storage-driver", "overlay"]

    def pull(self, name):
        return [*self.words, "pull", "--quiet", "--tls-verify=false", name]

    def remove(self, name):
        return [*self.words, "rmi", name]


class Cri:
    """Commands that use the client hawser with a runtime."""

    def __init__(self, runtime):
        self.runtime = runtime

    def pull(self, name):
        return self.runtime.hawser("pull", "--quiet", name)

    def remove(self, name):
        return self.runtime.hawser("rmi", "--timeout", REMOVE_S, name)


def run_line(command):
    return "run " + " ".join(str(word) for word in command)


def environment(place):
    return ["env PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"env HOME={place.dir}", f"env TMPDIR={place.dir}"]


def series(place, client, name, present):
    """The lines of a series that pulls an image. present: the image stays in the store between pulls;
    otherwise it is removed after each pull."""
    if present:
        return [*environment(place), run_line(client.pull(name)), *PAUSE]
    return [*environment(place), run_line(client.pull(name)), "clock off", run_line(client.remove(name)),
            "run /bin/sync", "clock on"]


def cold(place, client, name):
    """The lines of a series that pulls a present image; for each pull the daemon has to start
    hawser-fetch first."""
    kill = place.write("kill-ready", "#!/bin/sh\nuntil pkill -KILL -x hawser-fetch; do sleep 0.01; done\n"
                       "while pgrep -x hawser-fetch; do sleep 0.01; done\n")
    kill.chmod(0o755)
    return [*environment(place), "clock off", run_line([kill]), "clock on", run_line(client.pull(name)),
            *PAUSE]


def pairs(place, what, name, ours, peers, present=False):
    for peer, client in peers.items():
        yield Pair(what, peer=peer, ours_run=series(place, ours, name, present),
                   peer_run=series(place, client, name, present),
                   aim=AIM_PRESENT if present else AIMS[peer],
                   samples=place.samples if present else max(1, place.samples // 20))


def peaks(runtimes, name):
    """The peak memory of each runtime during a pull; the image is removed afterwards."""
    for runtime in runtimes:
        yield memory.peak(runtime.pid, runtime.hawser("pull", "--quiet", name))
        runtime.run("rmi", "--timeout", REMOVE_S, name)


def in_store(place, where, directory, registry_host, name, size):
    directory.mkdir()
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(hawser_cri(place.build, directory / "ours", "--plain-http",
                                              registry_host, "--disk-reserve", "0"))
        theirs = stack.enter_context(containerd(place.build, directory / "containerd"))
        clients = {"containerd": Cri(theirs), "podman": Podman(directory / "podman")}
        yield from pairs(place, f"pull of {size}, {where}", name, Cri(ours), clients)
        found = [tuple(peaks((ours, theirs), name)) for _ in range(max(1, place.samples // 40))]
        yield Memory(f"peak memory of daemon and children, {where}", peer="containerd", found=found,
                     aim=Aim(kib=32_000_000 // 1024))
        for client in (Cri(ours), *clients.values()):
            subprocess.run(client.pull(name), check=True, stdout=subprocess.DEVNULL)
        yield from pairs(place, f"pull of a present image, {where}", name, Cri(ours), clients,
                         present=True)
        yield Pair(f"pull of a present image, cold start, {where}", peer="containerd",
                   ours_run=cold(place, Cri(ours), name),
                   peer_run=series(place, clients["containerd"], name, present=True), aim=AIM_COLD)


def rows(place):
    layers = layers_of_usr(SIZE * min(place.samples, FULL) // FULL)
    size = f"{len(layers)} layers, {sum(l.size for l in layers) / 1e6:.0f} MB"
    with registry(place.dir) as images:
        name = images.push("made", "1", layers, config(layers))
        yield from in_store(place, "store in memory", place.dir / "memory", images.host, name, size)
        if disk.is_possible():
            with disk.ext4(place.build, place.dir / "disk") as directory:
                yield from in_store(place, "store on disk", directory / "stores", images.host, name,
                                    size)
        else:
            print("  not measured with the store on disk: /dev/loop-control does not exist")
