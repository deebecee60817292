# SPDX-License-Identifier: Apache-2.0
"""hawser-cri and containerd: idle memory, empty calls, calls under load

The empty call is Version, called by h2load. The call under load is a method of the sample service of
src/rpc: our own client calls it, and a thread of the pool serves it, while other calls sleep on their own
threads and stalled clients do not read their responses.
"""
import time

from lib import memory
from lib.calls import Calls
from lib.rows import Aim, Memory, Pair
from lib.runtimes import containerd, hawser_cri, serving

VERSION, ECHO = "/runtime.v1.RuntimeService/Version", "/sample.Sample/Echo"
SETTLE_S = 2    # seconds until the daemons have finished their start-up work


def idle(ours, theirs):
    time.sleep(SETTLE_S)
    for what, measure, limit in (("resident", memory.resident, 6_000_000),
                                 ("private", memory.private, 2_000_000)):
        yield Memory(f"idle daemon: {what} memory", peer="containerd",
                     found=[(measure(ours.pid), measure(theirs.pid))], aim=Aim(kib=limit // 1024))


def under_load(place):
    serve, sockets = place.build / "test/rpc/rpc-serve", (place.dir / "loaded", place.dir / "idle")
    with serving(place.build, sockets[0], serve, sockets[0]), \
            serving(place.build, sockets[1], serve, sockets[1]):
        yield Pair("call under load: 200 sleeping, 50 stalled", peer="no other calls",
                   command=[place.build / "bench/bench-rpc", "{samples}", 1, 200, sockets[0], ECHO,
                            sockets[1], ECHO],
                   aim=Aim(more_ms=10), samples=5 * place.samples)


def rows(place):
    with hawser_cri(place.build, place.dir / "ours") as ours, \
            containerd(place.build, place.dir / "containerd") as theirs:
        yield from idle(ours, theirs)
        for clients, words in (1, "1 client"), (64, "64 clients"):
            yield Calls(f"empty call, {words}", peer="containerd", clients=clients,
                        method=VERSION, ours=ours.socket, theirs=theirs.socket, aim=Aim(faster=2),
                        samples=max(1, place.samples // 10))
    yield from under_load(place)
