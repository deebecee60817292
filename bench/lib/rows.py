# SPDX-License-Identifier: Apache-2.0
"""The kinds of rows that a benchmark can measure

What:  each row has measure(place), which returns a dict with its figures and all its samples, and
       lines(figures), which returns the text to print.
How:   bench/spawn.c runs the timed commands, the sides of a row alternately. A ratio is the ratio of
       two medians. Its 95 % confidence interval is computed by the bootstrap method: the samples of
       all sides are resampled together a thousand times.
"""
import dataclasses
import pathlib
import random
import statistics
import subprocess

BOOTSTRAP = 1000
LEAST_MS = 0.001    # a floor that does not grow counts as one that grows by a microsecond
KIB = 1024


@dataclasses.dataclass
class Aim:
    """One aim: exactly one member is set. ratio, growth (how many times the floor's growth in milliseconds),
    ms (our median in milliseconds), more_ms (how many more than the peer's), size (bytes) and kib are maximums; faster (how many
    times faster than the peer) is a minimum."""
    ratio: float = None
    growth: float = None
    ms: float = None
    more_ms: float = None
    size: int = None
    kib: int = None
    faster: float = None


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def summary(values):
    return {"median": statistics.median(values), "p95": percentile(values, 0.95)}


def spread(samples, figure):
    """figure(samples), and its 95 % confidence interval, computed from resampled samples."""
    draw = random.Random(1)
    resampled = [figure(draw.choices(samples, k=len(samples))) for _ in range(BOOTSTRAP)]
    return {"value": figure(samples), "low": percentile(resampled, 0.025),
            "high": percentile(resampled, 0.975)}


def median_ratio(over, under):
    """Return a function that computes the ratio of the medians of two columns of samples."""
    return lambda samples: (statistics.median(s[over] for s in samples) /
                            statistics.median(s[under] for s in samples))


def run_series(place, sides, samples, *options):
    """Run bench/spawn.c. Returns a tuple for each sample, with a number for each side."""
    files = [place.write(f"series-{i}", "".join(line + "\n" for line in lines))
             for i, lines in enumerate(sides)]
    command = [place.build / "bench/bench-spawn", *options, samples, *files]
    return run_program(command)


def run_program(command):
    command = [str(word) for word in command]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [tuple(int(word) for word in line.split()) for line in out.splitlines()]


def judge(aim, ours, theirs, ratio):
    """(text of the aim, True if it is met); (None, None) without an aim"""
    if aim and aim.ratio:
        return f"at most {aim.ratio}x", ratio["value"] <= aim.ratio
    if aim and aim.faster:
        return f"at least {aim.faster}x faster", ratio["value"] <= 1 / aim.faster
    if aim and aim.ms is not None:
        return f"at most {aim.ms} ms", ours["median"] <= aim.ms
    if aim and aim.more_ms is not None:
        more = ours["median"] - theirs["median"]
        return f"{more:+.3f} ms, at most {aim.more_ms:+} ms", more <= aim.more_ms
    return None, None


def verdict(figures):
    if figures["met"] is None:
        return ""
    return f'{figures["aim"]}: {"met" if figures["met"] else "missed"}'


def line(label, numbers, ratio="", figures=None):
    text = f"  {label:<42} {numbers:<26} {ratio:<26} {verdict(figures) if figures else ''}"
    return text.rstrip()


def ms(side):
    return f'{side["median"]:>9.3f} ms {side["p95"]:>9.3f} ms'


def times(ratio, aim):
    """A ratio as text: "0.15x", or "6.67x faster" if the aim is a number of times faster."""
    if "faster" in (aim or ""):
        return f'{1 / ratio["value"]:.2f}x faster ({1 / ratio["high"]:.2f}-{1 / ratio["low"]:.2f})'
    return f'{ratio["value"]:.2f}x ({ratio["low"]:.2f}-{ratio["high"]:.2f})'


@dataclasses.dataclass
class Pair:
    """Times of hawser, a peer and optionally a floor (a lower bound). Each side is a series of commands,
    written as lines for bench/spawn.c; or `command` is a program that times hawser and the peer; or `found` has
    the nanoseconds of each sample."""
    what: str
    peer: str
    ours_run: list = None
    peer_run: list = None
    floor: str = None
    floor_run: list = None
    command: list = None
    found: list = None
    aim: Aim = None
    floor_aim: Aim = None
    samples: int = None
    each: int = 1               # number of operations in a series; times are divided by it

    def sides(self):
        return [side for side in (self.ours_run, self.peer_run, self.floor_run) if side]

    def run(self, place):
        samples = self.samples or place.samples
        if self.found:
            return self.found
        if self.command:
            return run_program([str(word).format(samples=samples) for word in self.command])
        return run_series(place, self.sides(), samples)

    def measure(self, place):
        numbers = [tuple(ns / 1e6 / self.each for ns in sample) for sample in self.run(place)]
        columns = [summary(column) for column in zip(*numbers)]
        ratio = spread(numbers, median_ratio(0, 1))
        aim, met = judge(self.aim, columns[0], columns[1], ratio)
        figures = {"kind": "pair", "what": self.what, "peer": self.peer, "ours": columns[0],
                   "theirs": columns[1], "ratio": ratio, "aim": aim, "met": met,
                   "samples": numbers}
        if self.floor:
            figures["floor"] = self.against_floor(numbers, columns)
        return figures

    def against_floor(self, numbers, columns):
        ratio = spread(numbers, median_ratio(0, 2))
        aim, met = judge(self.floor_aim, columns[0], columns[2], ratio)
        return {"what": self.floor, "theirs": columns[2], "ratio": ratio, "aim": aim, "met": met}

    @staticmethod
    def lines(figures):
        yield line(figures["what"], ms(figures["ours"]))
        yield line("  " + figures["peer"], ms(figures["theirs"]),
                   times(figures["ratio"], figures["aim"]), figures)
        if "floor" in figures:
            floor = figures["floor"]
            yield line("  " + floor["what"], ms(floor["theirs"]),
                       times(floor["ratio"], floor["aim"]), floor)


@dataclasses.dataclass
class Growth:
    """The time of the last tenth of many operations against the first tenth, for each side. Our growth is how many
    milliseconds longer an operation of the last tenth takes. It is compared with the floor's growth; with Aim(ratio=...),
    our last tenth without the floor's growth is compared with our first tenth. Each side is a label and its series; or
    `found` has the nanoseconds of each operation, with a number for hawser and for each peer."""
    what: str
    peers: dict
    floor: str
    ours_run: list = None
    found: list = None
    samples: int = None
    aim: Aim = None

    def measure(self, place):
        sides = {"hawser": self.ours_run, **self.peers}
        numbers = self.found or run_series(place, sides.values(), self.samples, "--cold")
        tenth = max(1, len(numbers) // 10)
        numbers = [tuple(ns / 1e6 for ns in sample) for sample in numbers]
        # First and last operations are resampled as pairs, although not measured at the same time.
        ends = list(zip(numbers[:tenth], numbers[-tenth:]))
        growths = {label: self.side(ends, i) for i, label in enumerate(sides)}
        floor = list(sides).index(self.floor)
        if self.aim.growth:
            compared, aim = f"growth, relative to {self.floor}", f"at most {self.aim.growth}x"
            ratio = spread(ends, lambda e: self.growth(e, 0) / max(self.growth(e, floor), LEAST_MS))
        else:
            compared, aim = f"less the growth of {self.floor}", f"at most {self.aim.ratio}x the first tenth"
            ratio = spread(ends, lambda e: 1 + (self.growth(e, 0) - self.growth(e, floor)) / self.first(e, 0))
        return {"kind": "growth", "what": self.what, "sides": growths, "compared": compared, "ratio": ratio,
                "aim": aim, "met": ratio["value"] <= (self.aim.growth or self.aim.ratio), "samples": numbers}

    @staticmethod
    def first(ends, column):
        return statistics.median(first[column] for first, _ in ends)

    @classmethod
    def growth(cls, ends, column):
        return statistics.median(last[column] for _, last in ends) - cls.first(ends, column)

    def side(self, ends, column):
        return {"first": summary([first[column] for first, _ in ends]),
                "last": summary([last[column] for _, last in ends]),
                "growth": spread(ends, lambda resampled: self.growth(resampled, column))}

    @staticmethod
    def lines(figures):
        yield line(figures["what"], "")
        for label, side in figures["sides"].items():
            more = side["growth"]
            yield line("  " + label, f'{side["first"]["median"]:>9.3f} -> {side["last"]["median"]:.3f} ms',
                       f'{more["value"]:+.3f} ms ({more["low"]:+.3f} to {more["high"]:+.3f})')
        yield line("  " + figures["compared"], "", times(figures["ratio"], figures["aim"]), figures)


@dataclasses.dataclass
class Memory:
    """The largest resident memory of a series' timed commands, or the largest value in `found`."""
    what: str
    peer: str
    ours_run: list = None
    peer_run: list = None
    found: list = None          # (ours, theirs) in KiB
    aim: Aim = None
    samples: int = None

    def measure(self, place):
        numbers = self.found or run_series(place, [self.ours_run, self.peer_run],
                                           self.samples or place.samples, "--rss")
        ours, theirs = (max(column) for column in zip(*numbers))
        return {"kind": "memory", "what": self.what, "peer": self.peer, "ours": ours,
                "theirs": theirs, "aim": self.aim and f"at most {self.aim.kib} KiB",
                "met": ours <= self.aim.kib if self.aim else None, "samples": numbers}

    @staticmethod
    def lines(figures):
        yield line(figures["what"], f'{figures["ours"]:>9} KiB')
        yield line("  " + figures["peer"], f'{figures["theirs"]:>9} KiB',
                   f'{figures["ours"] / figures["theirs"]:.2f}x' if figures["theirs"] else "", figures)


@dataclasses.dataclass
class Size:
    """The size of a stripped program."""
    what: str
    file: pathlib.Path
    aim: Aim = None

    def measure(self, place):
        stripped = place.dir / "stripped"
        subprocess.run(["strip", "-o", stripped, self.file], check=True)
        size = stripped.stat().st_size
        return {"kind": "size", "what": self.what, "size": size,
                "aim": self.aim and f"at most {self.aim.size} bytes",
                "met": size <= self.aim.size if self.aim else None}

    @staticmethod
    def lines(figures):
        yield line(figures["what"], f'{figures["size"]:>9} bytes', "", figures)


@dataclasses.dataclass
class Rate:
    """Throughput against the configured limit, in bits per second."""
    what: str
    asked: float
    samples: list
    within: float = 0.05

    def measure(self, _):
        found = statistics.median(self.samples)
        return {"kind": "rate", "what": self.what, "asked": self.asked, "found": found,
                "ratio": found / self.asked, "aim": f"within {self.within * 100:g} %",
                "met": abs(found / self.asked - 1) <= self.within, "samples": self.samples}

    @staticmethod
    def lines(figures):
        yield line(figures["what"], f'{figures["found"] / 1e6:>9.2f} Mbit/s',
                   f'{figures["ratio"]:.3f}x', figures)
