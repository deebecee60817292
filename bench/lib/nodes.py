# SPDX-License-Identifier: Apache-2.0
"""Nodes to compare: hawser-cri with our plugins, and containerd with runc and the Go plugins

What:  nodes(place, NAME) runs both on hosts of their own, with a pod network and an image. bench/cri.c performs
       operations on them. restarts() and crowd() make rows that pods and containers share.
How:   a host is a network namespace. The network is a bridge with ipMasq, and portmap. The image is that of
       test/runtimes/busybox.py; containerd uses it for its pause processes, too. A third host is that of the
       lower bounds: the same network without a runtime.
Env:   HAWSER_CONTAINERD: a directory with another containerd
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time

from lib import memory
from lib.pods import GO, create_namespaces
from lib.rows import Aim, Growth, Memory, Pair, run_program
from lib.runtimes import Runtime, serving

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/runtimes"))
import busybox  # noqa: E402

if "HAWSER_CONTAINERD" in os.environ:
    os.environ["PATH"] = os.environ["HAWSER_CONTAINERD"] + ":" + os.environ["PATH"]

CONTAINERD = """
version = 2
root = "{dir}/root"
state = "{dir}/state"
[grpc]
address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{go}"
    conf_dir = "{dir}/net.d"
"""


# what ListContainerStats reads
V1_FILES = [("cpuacct", "cpuacct.usage"), ("memory", "memory.usage_in_bytes"), ("memory", "memory.stat"), ("pids", "pids.current")]
V2_FILES = [("", name) for name in (
    "cpu.stat", "memory.current", "memory.max", "memory.stat", "memory.swap.current", "memory.swap.max", "pids.current",
    "cpu.pressure", "memory.pressure", "io.pressure")]
KERNEL = "kernel only: network"
CLIENTS = 8     # that create pods at once
FULL = 200      # if BENCH_SAMPLES is smaller, there are fewer pods
READY_S = 120   # timeout for a daemon to list its pods
SETTLE_S = 1    # seconds until the daemons have finished work in the background


def scaled(place, number):
    return max(5, number * min(place.samples, FULL) // FULL)


def network(name, leases):
    return {"cniVersion": "1.0.0", "name": name, "plugins": [
        {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": {
            "type": "host-local", "dataDir": str(leases), "ranges": [[{"subnet": "10.88.0.0/16"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}},
        {"type": "portmap", "capabilities": {"portMappings": True}}]}


@dataclasses.dataclass
class Node:
    """A runtime that can be started again: its pods outlive it."""
    dir: pathlib.Path
    host: str
    socket: pathlib.Path
    command: list
    build: pathlib.Path
    runtime: Runtime = None

    @contextlib.contextmanager
    def running(self):
        with serving(self.build, self.socket, *self.command) as self.runtime:
            self.wait_until_ready()
            yield self

    def wait_until_ready(self):
        """After a restart, containerd accepts calls before it can serve them."""
        call, deadline = [self.build / "test/rpc/cri-call", self.socket, "ListPodSandbox"], time.monotonic() + READY_S
        while subprocess.run(call, stdout=subprocess.DEVNULL).returncode:
            assert time.monotonic() < deadline, f"{self.socket} is not ready"
            time.sleep(0.05)

    def side(self):
        return f"cri:{self.socket}:{self.dir}/logs"


def on_host(name, *command):
    return ["nsenter", f"--net=/run/netns/{name}", *command]


def create_host(name):
    create_namespaces([name])
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)


def make_directory(place, name, conf=None):
    directory = place.dir / name
    for sub in ("net.d", "logs"):
        (directory / sub).mkdir(parents=True)
    (directory / "net.d/10-pods.conflist").write_text(json.dumps(conf or network("pods", directory / "leases")))
    create_host(name)
    return directory


def make_node(place, name, directory, command):
    return Node(directory, name, directory / "sock", on_host(name, *command), place.build)


def hawser_node(place, name, conf=None, plugins=None):
    """conf: another network, with plugins in the directory `plugins`"""
    directory = make_directory(place, name, conf)
    return make_node(place, name, directory, [
        place.build / "bin/hawser-cri", "--root", directory / "root", "--state", directory / "state",
        "--listen", f"unix:{directory}/sock", "--cni-conf-dir", directory / "net.d", "--cni-cache-dir",
        directory / "cache", "--cni-bin-dir", plugins or place.build / "cni", "--disk-reserve", "0"])


def containerd_node(place, name):
    directory = make_directory(place, name)
    conf = directory / "config.toml"
    conf.write_text(CONTAINERD.format(dir=directory, socket=directory / "sock", image=busybox.NAME, go=GO))
    return make_node(place, name, directory, ["containerd", "--config", conf])


def load_images(ours, theirs):
    archive = ours.dir / "image.tar"
    busybox.write_image(archive)
    ours.runtime.run("load", archive)
    subprocess.run(["ctr", "--address", theirs.socket, "--namespace", "k8s.io", "images", "import", archive],
                   check=True, stdout=subprocess.DEVNULL)


# ---- operations ---------------------------------------------------------------------------------

def bench_cri(place, steps, cleanup, sides, *options, samples):
    return [str(word) for word in (place.build / "bench/bench-cri", *options, samples, steps, cleanup, *sides)]


@contextlib.contextmanager
def held(node, steps, cleanup, count, clients=CLIENTS):
    """Perform operations on a node. The cleanup follows when the standard input of the process, which this yields,
    is closed, or when the context ends."""
    command = bench_cri(node, steps, cleanup, [node.side()], "--clients", clients, "--hold", samples=count)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "hold\n", command
        yield process
        process.stdin.close()
        process.stdout.read()
    assert process.returncode == 0, command


@dataclasses.dataclass
class Nodes:
    """ours and theirs: Node; floor: the host of the lower bounds"""
    place: object
    ours: Node
    theirs: Node
    floor: str

    def sides(self):
        return [self.ours.side(), self.theirs.side()]

    def serve(self):
        """The network of a pod, by hawser-plugin serve."""
        return f"serve:{self.place.build}:{self.place.dir}/{self.floor}"

    def probe(self):
        """The kernel's share of it."""
        return f"probe:{self.place.build}/bench/bench-probe:{self.place.dir}/{self.floor}"

    def command(self, steps, cleanup, sides, *options, samples="{samples}"):
        """The command line of bench-cri."""
        return on_host(self.floor, *bench_cri(self.place, steps, cleanup, sides, *options, samples=samples))

    @contextlib.contextmanager
    def crun(self):
        """crun without a runtime, for a container that hawser-cri has created and that exists meanwhile."""
        with held(self.ours, "run create start", "stop-container stop remove", 1):
            config = next(self.ours.dir.glob("state/containers/*/config.json"))
            yield f"crun:{config}:{self.place.dir}/{self.floor}"

    def files(self, containers):
        """The files of the cgroups of these containers of hawser-cri, which ListContainerStats reads."""
        top = pathlib.Path("/sys/fs/cgroup")
        names = V2_FILES if (top / "cgroup.controllers").exists() else V1_FILES
        paths = [top / controller / "bench" / container / name for container in containers for controller, name in names]
        listed = self.place.dir / self.floor / "files"
        listed.write_text("\n".join(str(p) for p in paths if p.exists()))
        return f"files:{listed}:{self.place.dir}/{self.floor}"

    def crowd(self, steps, cleanup, sides, count):
        """Operations of many clients. Returns the total nanoseconds of each side, and a list of those of each
        operation."""
        total, *each = run_program(self.command(steps, cleanup, sides, "--clients", CLIENTS, samples=count))
        return total, each

    def idle_memory(self, limit):
        time.sleep(SETTLE_S)
        return Memory("idle daemon with an image: resident", peer="containerd", aim=Aim(kib=limit // 1024),
                      found=[[memory.resident(node.runtime.pid) for node in (self.ours, self.theirs)]])

    def memory(self, steps, cleanup, count, measure):
        """What many operations use, on both nodes: KiB of an operation outside the daemon, and resident KiB of the
        daemon."""
        daemons = [self.ours.runtime.pid, self.theirs.runtime.pid]

        def used(node, operations):
            with held(node, steps, cleanup, operations) as client:
                time.sleep(SETTLE_S)
                return memory.of_others([*daemons, client.pid], measure), memory.resident(node.runtime.pid)

        def grown(node):
            one, _ = used(node, 1)      # includes what all operations share
            many, resident = used(node, count)
            return max(0, round((many - one) / (count - 1))), resident
        return zip(*(grown(node) for node in (self.ours, self.theirs)))


@contextlib.contextmanager
def nodes(place, name):
    ours, theirs = hawser_node(place, f"{name}-ours"), containerd_node(place, f"{name}-containerd")
    floor = f"{name}-floor"
    make_directory(place, floor)
    subprocess.run(on_host(floor, place.build / "bench/bench-probe", "setup"), check=True)
    with ours.running(), theirs.running():
        load_images(ours, theirs)
        yield Nodes(place, ours, theirs, floor)


# ---- rows ---------------------------------------------------------------------------------------

def restarts(place, name, what, steps, cleanup, count, containers):
    """A row: the start of a daemon with many pods, until it lists them. what: {} is replaced by their number.
    name: of the hosts"""
    clients = contextlib.ExitStack()
    with nodes(place, name) as both:
        daemons = (both.ours, both.theirs)
        for node in daemons:
            clients.enter_context(held(node, steps, cleanup, count))
    # The daemons have ended, and their pods are left.
    found = [[run_program([place.build / "bench/bench-first-answer", node.socket, count, containers,
                           *node.command])[0][0] for node in daemons]
             for _ in range(max(1, place.samples // 10))]
    with both.ours.running(), both.theirs.running():
        clients.close()
    return Pair(what.format(count), peer="containerd", found=found, aim=Aim(ratio=1))


def crowd(both, what, steps, cleanup, count, rounds, aim):
    """Two rows. Each round performs `count` operations on each side, one side after the other. what: the
    description, in which {} is replaced by the count. The growth leaves out the first operation of each client: they
    all start at once, on a host where nothing runs yet."""
    totals, each = [], []
    for n in range(rounds):
        # The order of the sides changes, because a side may leave work in the background.
        order = 1 if n % 2 == 0 else -1
        total, one = both.crowd(steps, cleanup, [*both.sides(), both.probe()][::order], count)
        totals.append(total[::order][:2])
        each.append([sample[::order] for sample in one[CLIENTS:] or one])
    yield Pair("total " + what.format(count), peer="containerd", found=totals, aim=aim)
    # The first operations of all rounds, then the second ones ...
    yield Growth("last tenth " + what.format(count), found=[one for same in zip(*each) for one in same],
                 peers=dict.fromkeys(["containerd", KERNEL]), floor=KERNEL, aim=Aim(ratio=1.3))
