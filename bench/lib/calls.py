# SPDX-License-Identifier: Apache-2.0
"""Calls, a row about gRPC calls of many clients: calls per second, and the 99th percentile of their times

What:  each client makes one empty call after the other. Our daemon and the peer are measured alternately.
How:   h2load logs the time of each call. A sample is one run of h2load.
"""
import dataclasses
import pathlib
import statistics
import subprocess

from lib.rows import Aim, judge, line, median_ratio, percentile, spread, times

EMPTY = bytes(5)        # gRPC frame of a message without fields
CALLS = 3000            # minimum number of calls in a run
EACH = 300              # minimum number of calls of each client


def h2load(directory, socket, method, clients):
    """Run h2load. Returns the average nanoseconds per call, and a list of each call's milliseconds."""
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
            for side in (n % 2, 1 - n % 2):     # a different side starts in each sample
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
