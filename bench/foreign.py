# SPDX-License-Identifier: Apache-2.0
"""a host with 20,000 chains and 50,000 rules of kube-proxy

The rules are in the tables nat and filter of iptables, as kube-proxy creates them. FORWARD jumps to the
chains in filter; it is the only foreign chain that our plugins read. But the kernel visits every chain
at the end of each transaction: the first row measures the time of that.
"""
import json
import subprocess

from lib.chain import MASQ, Chain
from lib.pods import OURS, PEER, Pods
from lib.rows import Aim, Pair

CHAINS, RULES = 20000, 50000
SAMPLES = 60
GO_SAMPLES = 1          # a sample takes many seconds
FULL = 200              # if BENCH_SAMPLES is smaller, there are fewer rules


def rows(place):
    share = min(place.samples, FULL) / FULL
    rules = foreign(max(10, int(CHAINS * share)), max(10, int(RULES * share)))
    samples = min(place.samples, SAMPLES)
    yield from bridge(place, rules, samples)
    yield chain(place, rules, samples)
    yield from firewall(place, rules, samples)


def bridge(place, rules, samples):
    count = samples + samples // 10
    quiet = Pods(place, "bridge", count, MASQ, sides=(OURS,))
    crowded = Pods(place, "bridge", count, MASQ, sides=(OURS, PEER))
    for side in (OURS, PEER):
        load(crowded.namespace(side, "host"), rules)
    yield Pair("kernel only: nftables transaction with foreign rules", peer="without foreign rules",
               ours_run=transaction(place, crowded), peer_run=transaction(place, quiet),
               samples=samples)
    for command, settle in ("ADD", []), ("DEL", ["clock off", "reap"]):
        yield Pair(f"bridge with ipMasq, {command} with foreign rules", peer="without foreign rules",
                   ours_run=crowded.lines(OURS, command) + settle,
                   peer_run=quiet.lines(OURS, command) + settle, aim=Aim(ratio=1.1),
                   samples=samples)
    yield Pair("bridge with ipMasq, ADD with foreign rules", peer="Go plugin",
               ours_run=crowded.lines(OURS, "ADD"), peer_run=crowded.lines(PEER, "ADD"),
               samples=GO_SAMPLES)


def transaction(place, pods):
    return [f"netns /run/netns/{pods.namespace(OURS, 'host')}",
            f"selftimed {place.build}/bench/bench-transaction"]


def chain(place, rules, samples):
    quiet, crowded = (Chain(place, samples + samples // 10, sides=(OURS,)) for _ in range(2))
    load(crowded.host(OURS), rules)
    return Pair("chain, ADD with foreign rules", peer="without foreign rules",
                ours_run=crowded.lines(OURS, "ADD"), peer_run=quiet.lines(OURS, "ADD"),
                aim=Aim(ratio=1.1), samples=samples)


def firewall(place, rules, samples):
    """The firewall plugin needs a prevResult with the pod's address."""
    quiet, crowded = (Firewall(place, samples + samples // 10, sides) for sides in
                      ((OURS,), (OURS, PEER)))
    for side in (OURS, PEER):
        load(crowded.host(side), rules)
    load(quiet.host(OURS), foreign(0, 0))
    for command, settle in ("ADD", []), ("DEL", ["clock off", "reap"]):
        yield Pair(f"firewall, {command} with foreign rules", peer="without foreign rules",
                   ours_run=crowded.lines(OURS, command) + settle,
                   peer_run=quiet.lines(OURS, command) + settle, aim=Aim(ratio=1.1),
                   samples=samples)
    yield Pair("firewall, ADD with foreign rules", peer="Go plugin",
               ours_run=crowded.lines(OURS, "ADD"), peer_run=crowded.lines(PEER, "ADD"),
               samples=GO_SAMPLES)


class Firewall:
    def __init__(self, place, count, sides):
        self.pods = Pods(place, "firewall", count, {}, sides=sides)
        for side in sides:
            conf = json.loads(self.pods.conf[side].read_text())
            for n in range(count):
                result = {"cniVersion": "1.0.0", "ips": [{"address": f"10.88.{n >> 8}.{n & 255}/16"}]}
                place.write(f"{self.pods.name}-{side}-{n}.json",
                            json.dumps({**conf, "backend": "iptables", "prevResult": result}))

    def host(self, side):
        return self.pods.namespace(side, "host")

    def lines(self, side, command):
        conf = self.pods.conf[side]
        return [line.replace(str(conf), f"{conf.with_suffix('')}-{{n}}.json")
                for line in self.pods.lines(side, command)]


def foreign(chains, rules):
    """Input of iptables-restore: half of the rules in nat, half in filter"""
    return (table("nat", "KUBE-SVC", chains // 2, rules // 2) +
            table("filter", "KUBE-FW", chains // 2, rules // 2, [
                ":FORWARD DROP", ":KUBE-FORWARD -", ":KUBE-SERVICES -",
                "-A FORWARD -m comment --comment kubernetes -j KUBE-FORWARD",
                "-A FORWARD -m conntrack --ctstate NEW -j KUBE-SERVICES",
                "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
                "-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT"]))


def table(name, prefix, chains, rules, extra=()):
    lines = [f"*{name}", *(line for line in extra if line.startswith(":")),
             *(f":{prefix}-{i:016X} -" for i in range(chains)),
             *(line for line in extra if line.startswith("-"))]
    if extra:
        lines += [f"-A KUBE-SERVICES -d 10.96.{i >> 8 & 255}.{i & 255}/32 -j {prefix}-{i:016X}"
                  for i in range(chains)]
        rules -= chains
    lines += [f"-A {prefix}-{i % chains:016X} -s 10.{i >> 16}.{i >> 8 & 255}.{i & 255}/32 -p tcp"
              f" -m tcp --dport {i % 60000 + 1} -j RETURN" for i in range(rules)]
    return "\n".join(lines + ["COMMIT", ""])


def load(host, rules):
    subprocess.run(["ip", "netns", "exec", host, "iptables-restore", "--noflush"], input=rules,
                   text=True, check=True)
