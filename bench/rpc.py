# SPDX-License-Identifier: Apache-2.0
"""the daemon beside containerd: memory when idle, empty calls, calls in a crowd

The empty call is Version, made by h2load. In the crowd it is one of the sample service of src/rpc, on a
thread of the pool, while other calls of it sleep on threads of their own and clients hang that have asked
for more than they ever read; made by our own client.
"""
import time

from lib import memory
from lib.calls import Calls
from lib.rows import Aim, Memory, Pair
from lib.runtimes import containerd, hawser_cri, serving

VERSION, ECHO = "/runtime.v1.RuntimeService/Version", "/sample.Sample/Echo"
SETTLE_S = 2    # until what a daemon does at its start is done


def idle(ours, theirs):
    time.sleep(SETTLE_S)
    for what, of, limit in (("resident", memory.resident, 6_000_000), ("private", memory.private, 2_000_000)):
        yield Memory(f"the idle daemon: {what} memory", peer="containerd's",
                     found=[(of(ours.pid), of(theirs.pid))], aim=Aim(kib=limit // 1024))


def crowd(place):
    serve, sockets = place.build / "test/rpc/rpc-serve", (place.dir / "crowded", place.dir / "alone")
    with serving(place.build, sockets[0], serve, sockets[0]), \
            serving(place.build, sockets[1], serve, sockets[1]):
        yield Pair("a call with 200 asleep and 50 hanging", peer="with none",
                   command=[place.build / "bench/bench-rpc", "{samples}", 1, 200, sockets[0], ECHO,
                            sockets[1], ECHO],
                   aim=Aim(more_ms=10), samples=5 * place.samples)


def rows(place):
    with hawser_cri(place.build, place.dir / "ours") as ours, \
            containerd(place.build, place.dir / "containerd") as theirs:
        yield from idle(ours, theirs)
        for clients in (1, 64):
            yield Calls(f"an empty call, of {clients}", peer="containerd's", clients=clients,
                        method=VERSION, ours=ours.socket, theirs=theirs.socket, aim=Aim(faster=2),
                        samples=max(1, place.samples // 10))
    yield from crowd(place)
