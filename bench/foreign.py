# SPDX-License-Identifier: Apache-2.0
"""a host whose netfilter has 20,000 chains and 50,000 rules of somebody else

They are in the nat table of iptables, as kube-proxy has them there. We read none of them; but the kernel
itself looks at every chain at the end of each change: how long, says the first row.
"""
import subprocess

from lib.chain import MASQ, Chain
from lib.pods import OURS, PEER, Pods
from lib.rows import Aim, Pair

CHAINS, RULES = 20000, 50000
SAMPLES = 60
GO_SAMPLES = 1          # it takes many seconds
FULL = 200              # samples; with fewer there are fewer rules, too


def rows(place):
    share = min(place.samples, FULL) / FULL
    rules = foreign(max(10, int(CHAINS * share)), max(10, int(RULES * share)))
    samples = min(place.samples, SAMPLES)
    yield from bridge(place, rules, samples)
    yield chain(place, rules, samples)


def bridge(place, rules, samples):
    count = samples + samples // 10
    quiet = Pods(place, "bridge", count, MASQ, sides=(OURS,))
    crowded = Pods(place, "bridge", count, MASQ, sides=(OURS, PEER))
    for side in (OURS, PEER):
        load(crowded.namespace(side, "host"), rules)
    yield Pair("the kernel alone: any change of nftables", peer="with no foreign rules",
               ours_run=transaction(place, crowded), peer_run=transaction(place, quiet),
               samples=samples)
    for command, settle in ("ADD", []), ("DEL", ["clock off", "reap"]):
        yield Pair(f"bridge with ipMasq, {command} among foreign rules", peer="with none",
                   ours_run=crowded.lines(OURS, command) + settle,
                   peer_run=quiet.lines(OURS, command) + settle, aim=Aim(ratio=1.1),
                   samples=samples)
    yield Pair("bridge with ipMasq, ADD among foreign rules", peer="Go's",
               ours_run=crowded.lines(OURS, "ADD"), peer_run=crowded.lines(PEER, "ADD"),
               samples=GO_SAMPLES)


def transaction(place, pods):
    return [f"netns /run/netns/{pods.namespace(OURS, 'host')}",
            f"says {place.build}/bench/bench-transaction"]


def chain(place, rules, samples):
    quiet, crowded = (Chain(place, samples + samples // 10, sides=(OURS,)) for _ in range(2))
    load(crowded.host(OURS), rules)
    return Pair("the chain, ADD among foreign rules", peer="with none",
                ours_run=crowded.lines(OURS, "ADD"), peer_run=quiet.lines(OURS, "ADD"),
                aim=Aim(ratio=1.1), samples=samples)


def foreign(chains, rules):
    """In the form of iptables-restore"""
    lines = ["*nat", *(f":KUBE-SVC-{i:016X} -" for i in range(chains))]
    lines += [f"-A KUBE-SVC-{i % chains:016X} -s 10.{i >> 16}.{i >> 8 & 255}.{i & 255}/32 -p tcp"
              f" -m tcp --dport {i % 60000 + 1} -j RETURN" for i in range(rules)]
    return "\n".join(lines + ["COMMIT", ""])


def load(host, rules):
    subprocess.run(["ip", "netns", "exec", host, "iptables-restore", "--noflush"], input=rules,
                   text=True, check=True)
