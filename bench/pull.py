# SPDX-License-Identifier: Apache-2.0
"""an image from a registry: hawser-cri, containerd and podman

All get the same image from one docker-registry on loopback, into stores of their own; what they got is
removed off the clock. hawser-cri and containerd are asked by `hawser pull`. Each row is measured with the
stores in memory, where processors decide, and on a disk, where it counts, too, what a runtime has written
before it answers.
"""
import contextlib
import subprocess

from lib import disk, memory
from lib.registry import config, layers_of_usr, registry
from lib.rows import Aim, Memory, Pair
from lib.runtimes import containerd, hawser_cri

SIZE = 400_000_000      # of the image, unpacked
FULL = 200              # samples; with fewer the image is smaller, too
AIMS = {"containerd's": Aim(faster=1.5), "podman's": Aim(faster=2)}
NOTHING = Aim(faster=2)
REMOVE_S = 600          # for a slow disk
PAUSE = ["clock off", "run /bin/sleep 0.05", "clock on"]    # they go on working after they have answered


class Podman:
    """Commands of podman, which has no daemon."""

    def __init__(self, directory):
        self.words = ["/usr/bin/podman", "--root", directory / "root", "--runroot", directory / "run",
                      "--storage-driver", "overlay"]

    def pull(self, name):
        return [*self.words, "pull", "--quiet", "--tls-verify=false", name]

    def remove(self, name):
        return [*self.words, "rmi", name]


class Cri:
    """Commands of hawser for a runtime."""

    def __init__(self, runtime):
        self.runtime = runtime

    def pull(self, name):
        return self.runtime.hawser("pull", "--quiet", name)

    def remove(self, name):
        return self.runtime.hawser("rmi", "--timeout", REMOVE_S, name)


def line(command):
    return "run " + " ".join(str(word) for word in command)


def environment(place):
    return ["env PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"env HOME={place.dir}", f"env TMPDIR={place.dir}"]


def series(place, client, name, again):
    """A pull of what is not there, or, again, of what is."""
    if again:
        return [*environment(place), line(client.pull(name)), *PAUSE]
    return [*environment(place), line(client.pull(name)), "clock off", line(client.remove(name)), "run /bin/sync",
            "clock on"]


def cold(place, client, name):
    """A pull of what is there, by a hawser-fetch that has to be started."""
    kill = place.write("kill-ready", "#!/bin/sh\nuntil pkill -KILL -x hawser-fetch; do sleep 0.01; done\n"
                       "while pgrep -x hawser-fetch; do sleep 0.01; done\n")
    kill.chmod(0o755)
    return [*environment(place), "clock off", line([kill]), "clock on", line(client.pull(name)), *PAUSE]


def pairs(place, what, name, ours, peers, again=False):
    for peer, client in peers.items():
        yield Pair(what, peer=peer, ours_run=series(place, ours, name, again),
                   peer_run=series(place, client, name, again),
                   aim=NOTHING if again else AIMS[peer],
                   samples=place.samples if again else max(1, place.samples // 20))


def peaks(runtimes, name):
    """What each needs at most to pull it, and is left with."""
    for runtime in runtimes:
        yield memory.peak(runtime.pid, runtime.hawser("pull", "--quiet", name))
        runtime.run("rmi", "--timeout", REMOVE_S, name)


def in_store(place, where, directory, registry_host, name, size):
    directory.mkdir()
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(hawser_cri(place.build, directory / "ours", "--plain-http",
                                              registry_host, "--disk-reserve", "0"))
        theirs = stack.enter_context(containerd(place.build, directory / "containerd"))
        clients = {"containerd's": Cri(theirs), "podman's": Podman(directory / "podman")}
        yield from pairs(place, f"pull of {size}, {where}", name, Cri(ours), clients)
        found = [tuple(peaks((ours, theirs), name)) for _ in range(max(1, place.samples // 40))]
        yield Memory(f"peak of daemon and children, {where}", peer="containerd's", found=found,
                     aim=Aim(kib=32_000_000 // 1024))
        for client in (Cri(ours), *clients.values()):
            subprocess.run(client.pull(name), check=True, stdout=subprocess.DEVNULL)
        yield from pairs(place, f"pull of what is there, {where}", name, Cri(ours), clients, again=True)
        yield Pair(f"pull of what is there with nothing ready, {where}", peer="containerd's",
                   ours_run=cold(place, Cri(ours), name),
                   peer_run=series(place, clients["containerd's"], name, again=True))


def rows(place):
    layers = layers_of_usr(SIZE * min(place.samples, FULL) // FULL)
    size = f"{len(layers)} layers, {sum(l.size for l in layers) / 1e6:.0f} MB"
    with registry(place.dir) as images:
        name = images.push("made", "1", layers, config(layers))
        yield from in_store(place, "in memory", place.dir / "memory", images.host, name, size)
        if disk.is_possible():
            with disk.ext4(place.build, place.dir / "disk") as directory:
                yield from in_store(place, "on disk", directory / "stores", images.host, name, size)
        else:
            print("  nothing is measured on disk: there is no /dev/loop-control")
