# SPDX-License-Identifier: Apache-2.0
"""
test/system/test_serve.py - a chain that hawser-plugin serve runs, with many calls at once and with kills

What:  test/served.c is a daemon that runs a chain for pods: bridge with ipMasq, portmap, bandwidth; or
       Debian's Go plugins. serve, a process of a call, or the daemon are killed at random instants.
Rules: after the DELs nothing is left: no process, interface, lease, record or nftables element.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest

from waiting import LONG, wait_until

BUILD = pathlib.Path(os.environ["HAWSER_BUILD"])
PROGRAM = BUILD / "bin/hawser-plugin"
GO = pathlib.Path("/usr/lib/cni")
for program in ("ip", "nft", "tc"):
    if not shutil.which(program):
        pytest.skip(program + " is not installed", allow_module_level=True)

PODS = 120      # calls at once
VICTIMS = 8     # calls at once while something is killed
ROUNDS = 12
KILL_WITHIN = 0.02  # seconds


def chain(leases):
    return {"cniVersion": "1.0.0", "name": "served", "plugins": [
        {"type": "bridge", "bridge": "br-served", "isDefaultGateway": True, "ipMasq": True, "ipam": {
            "type": "host-local", "dataDir": str(leases), "ranges": [[{"subnet": "10.1.0.0/16"}]]}},
        {"type": "portmap", "capabilities": {"portMappings": True}},
        {"type": "bandwidth", "ingressRate": 8000000, "ingressBurst": 800000}]}


class Daemon:
    def __init__(self, directory, plugins=BUILD / "cni"):
        self.dir, self.plugins = directory, plugins
        self.leases = directory / "leases"
        (directory / "conflist").write_text(json.dumps(chain(self.leases)))
        self.start()

    def start(self):
        # The leak detector of ASan forks at the end of a process, and waits forever if that fork is killed.
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        self.process = subprocess.Popen([BUILD / "test/served", self.dir, self.plugins, PROGRAM], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, *lines):
        self.process.stdin.write("".join(line + "\n" for line in lines))
        self.process.stdin.flush()

    def join(self):
        """{pod: "" or error}, in the order of the calls"""
        self.send("join")
        answers = {}
        for line in iter(self.process.stdout.readline, "end\n"):
            assert line, "the daemon has exited"
            pod, what, *error = line.rstrip("\n").split(" ", 2)
            answers[int(pod)] = error[0] if what == "error" else ""
        return answers

    def run(self, verb, pods):
        self.send(*("%s %d" % (verb, pod) for pod in pods))
        return self.join()

    def served(self):
        """The processes of serve, with serve first."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (path / "cmdline").read_bytes().split(b"\0")[:2] == [bytes(PROGRAM), b"serve"]:
                    found.append(int(path.name))
            except OSError:
                pass
        return sorted(found)

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(LONG) == 0

    def left(self):
        links = [link["ifname"] for link in json.loads(subprocess.run(
            ["ip", "-j", "link", "show", "type", "veth"], check=True, capture_output=True).stdout)]
        leases = [path.name for path in self.leases.glob("served/*")
                  if path.is_file() and path.name != "lock" and not path.name.startswith("last_reserved_ip")]
        records = [str(path) for path in (self.dir / "state/attachments").rglob("*") if path.is_file()]
        cache = [path.name for path in (self.dir / "cache").rglob("*") if path.is_file()]
        rules = [rule for rule in json.loads(subprocess.run(
            [PROGRAM, "rules", "--json"], check=True, capture_output=True,
            env={**os.environ, "HAWSER_STATE": str(self.dir / "state")}).stdout) if "owner" in rule]
        return links + leases + records + cache + rules

    def assert_nothing_left(self):
        wait_until(lambda: not self.left(), lambda: str(self.left()))


@pytest.fixture(params=[BUILD / "cni"], ids=["ours"])
def daemon(request, tmp_path):
    d = Daemon(tmp_path, request.param)
    yield d
    if d.process.poll() is None:
        d.stop()
    wait_until(lambda: not d.served())
    subprocess.run(["ip", "link", "del", "br-served"], check=False)
    subprocess.run(["ip", "-all", "netns", "delete"], check=True)


def create_pods(count):
    batch = "".join("netns add p%d\n" % pod for pod in range(count))
    subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)


def test_many_calls_at_once_succeed_and_leave_nothing(daemon):
    create_pods(PODS)
    assert set(daemon.run("add", range(PODS)).values()) == {""}
    assert len(list(daemon.leases.glob("served/10.1.*"))) == PODS
    wait_until(lambda: len(daemon.served()) == 2)  # serve, and the process that waits for the next call
    assert set(daemon.run("del", range(PODS)).values()) == {""}
    daemon.assert_nothing_left()


@pytest.mark.skipif(not (GO / "bridge").exists(), reason="containernetworking-plugins is not installed")
@pytest.mark.parametrize("daemon", [GO], ids=["go"], indirect=True)
def test_plugins_of_other_projects_are_served(daemon):
    create_pods(4)
    for verb in ("add", "del"):
        for pod in range(4):  # one at a time: the Go plugins fail if others change the same chains of iptables
            assert daemon.run(verb, [pod]) == {pod: ""}
    daemon.assert_nothing_left()


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_serve(daemon):
    kill(daemon.served()[0])


def kill_a_call(daemon):
    processes = daemon.served()
    if len(processes) > 1:
        kill(random.choice(processes[1:]))


@pytest.mark.parametrize("kill_something", [kill_serve, kill_a_call])
def test_killed_processes_leave_nothing_after_del(daemon, kill_something):
    create_pods(VICTIMS)
    daemon.run("add", [0])
    daemon.run("del", [0])
    for n in range(ROUNDS):
        random.seed(n)
        for verb in ("add", "del"):
            daemon.send(*("%s %d" % (verb, pod) for pod in range(VICTIMS)))
            time.sleep(random.uniform(0, KILL_WITHIN))  # the interval of random instants
            kill_something(daemon)
            answers = daemon.join()
            if kill_something == kill_serve:
                assert set(answers.values()) == {""}
        assert set(daemon.run("del", range(VICTIMS)).values()) == {""}
        daemon.assert_nothing_left()


def test_an_add_of_a_killed_daemon_does_not_finish_after_the_del_of_the_next_one(daemon):
    create_pods(VICTIMS)
    for n in range(ROUNDS):
        random.seed(n)
        daemon.send(*("add %d" % pod for pod in range(VICTIMS)))
        time.sleep(random.uniform(0, KILL_WITHIN))  # the interval of random instants
        daemon.process.kill()
        daemon.process.wait(LONG)
        daemon.start()
        assert set(daemon.run("del", range(VICTIMS)).values()) == {""}
        daemon.assert_nothing_left()


def test_cancelled_calls_leave_nothing_after_del(daemon):
    create_pods(VICTIMS)
    for n in range(ROUNDS // 2):
        random.seed(n)
        daemon.send(*("add %d" % pod for pod in range(VICTIMS)))
        time.sleep(random.uniform(0, KILL_WITHIN))  # the interval of random instants
        daemon.send("cancel")
        for error in daemon.join().values():
            assert not error or "cancelled" in error
        daemon.stop()
        daemon.start()
        assert set(daemon.run("del", range(VICTIMS)).values()) == {""}
        daemon.assert_nothing_left()
