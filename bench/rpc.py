# SPDX-License-Identifier: Apache-2.0
"""an empty gRPC call: our server and containerd's

Ours is the sample service of src/rpc, called with nothing, by a method that answers on the loop and by
one that does on a thread of the pool; containerd's is Version. All are called by our client.
"""
import contextlib
import subprocess
import time

from lib.rows import Aim, Pair

NOW, ECHO = "/sample.Sample/Now", "/sample.Sample/Echo"
VERSION = "/runtime.v1.RuntimeService/Version"
CONFIG = """
version = 2
root = "{dir}/root"
state = "{dir}/state"
[grpc]
address = "{dir}/containerd"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
"""


@contextlib.contextmanager
def running(place, socket, *command):
    """The program, from when it can be called."""
    call = [place.build / "test/rpc/rpc-call", socket, "/none.None/None", "60000", ""]
    with open(place.dir / "log", "ab") as log:
        server = subprocess.Popen([str(c) for c in command], stdout=log, stderr=log)
    try:
        while b"UNIMPLEMENTED" not in subprocess.run(call, stdout=subprocess.PIPE).stdout:
            assert server.poll() is None, (place.dir / "log").read_text()
            time.sleep(0.05)
        yield socket
    finally:
        server.terminate()
        server.wait()


def rows(place):
    config = place.write("config.toml", CONFIG.format(dir=place.dir))
    serve = place.build / "test/rpc/rpc-serve"
    ours, crowded, theirs = (place.dir / name for name in ("ours", "crowded", "containerd"))
    with running(place, ours, serve, ours), running(place, crowded, serve, crowded), \
            running(place, theirs, "containerd", "--config", config):
        program = [place.build / "bench/bench-rpc", "{samples}"]
        for clients in (1, 64):
            for where, method in (("loop", NOW), ("pool", ECHO)):
                yield Pair(f"an empty call on the {where}, of {clients}", peer="containerd's",
                           command=[*program, clients, 0, ours, method, theirs, VERSION],
                           aim=Aim(faster=2), samples=5 * place.samples)
        yield Pair("with 200 calls asleep and 50 hanging", peer="with none",
                   command=[*program, 1, 200, crowded, ECHO, ours, ECHO],
                   aim=Aim(more_ms=10), samples=5 * place.samples)
