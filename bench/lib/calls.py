# SPDX-License-Identifier: Apache-2.0
"""A row about many calls at a time: how many a second, and how long the slowest took

What:  Calls: each of so many clients makes one empty call after the other, to ours and to a peer in turns.
How:   h2load, which is neither's, writes down how long each call took. A sample is one run of it.
"""
import dataclasses
import pathlib
import statistics
import subprocess

from lib.rows import Aim, judge, line, median_ratio, percentile, spread, times

EMPTY = bytes(5)        # gRPC's frame of a message without fields
CALLS = 3000            # of a run, at least
EACH = 300              # of a client, at least


def h2load(directory, socket, method, clients):
    """Nanoseconds that a run took for each call, and the milliseconds of each call."""
    request, log = directory / "request", directory / "calls"
    request.write_bytes(EMPTY)
    log.unlink(missing_ok=True)
    calls = max(CALLS, EACH * clients)
    out = subprocess.run(
        ["h2load", f"--requests={calls}", f"--clients={clients}", "--max-concurrent-streams=1",
         f"--data={request}", "--header=content-type: application/grpc", "--header=te: trailers",
         f"--base-uri=unix:{socket}", f"--log-file={log}", f"http://localhost{method}"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    assert f" {calls} succeeded," in out, out
    rows = [[int(word) for word in row.split("\t")] for row in log.read_text().splitlines()]
    began, ended = min(at for at, _, _ in rows), max(at + took for at, _, took in rows)
    return (ended - began) * 1000 // calls, [took / 1000 for _, _, took in rows]


@dataclasses.dataclass
class Calls:
    what: str
    peer: str
    clients: int
    method: str
    ours: pathlib.Path          # sockets
    theirs: pathlib.Path
    aim: Aim = None
    samples: int = None

    def measure(self, place):
        numbers, took = [], ([], [])
        for n in range(self.samples or place.samples):
            sample = [0, 0]
            for side in (n % 2, 1 - n % 2):     # who goes first changes
                ns, each = h2load(place.dir, (self.ours, self.theirs)[side], self.method, self.clients)
                sample[side] = ns / 1e6
                took[side].extend(each)
            numbers.append(tuple(sample))
        ratio = spread(numbers, median_ratio(0, 1))
        sides = [{"rate": 1000 / statistics.median(column), "p99": percentile(each, 0.99)}
                 for column, each in zip(zip(*numbers), took)]
        aim, met = judge(self.aim, None, None, ratio)
        return {"kind": "calls", "what": self.what, "peer": self.peer, "ours": sides[0],
                "theirs": sides[1], "ratio": ratio, "aim": aim, "met": met, "samples": numbers}

    @staticmethod
    def lines(figures):
        def side(name):
            return f'{figures[name]["rate"]:>9.0f} /s p99{figures[name]["p99"]:>7.3f} ms'
        yield line(figures["what"], side("ours"))
        yield line("  " + figures["peer"], side("theirs"), times(figures["ratio"], figures["aim"]),
                   figures)
