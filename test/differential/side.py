# SPDX-License-Identifier: Apache-2.0
"""
test/differential/side.py - one side of one case

What:  on a host of its own (mount and network namespace, empty /run, /etc/cni and /var/lib/cni)
       make the pods, run the case's verbs, and tell what was answered and what could be seen.
How:   in a forked child, whose namespaces go when it ends; its answer is JSON through a pipe.
       ADD and CHECK with the plugins in the folder ADDER, DEL with those in DELETER: the same
       folder for a side, two for cleaning up after one another, where only what is left counts.
       A chain is run as libcni does it: prevResult handed on, DEL backwards with the last
       result, from 0.4.0 on.
"""
import ctypes
import json
import os
import subprocess
import traceback

import state

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000


class Side:
    def __init__(self, case, adder, deleter):
        self.case, self.adder, self.deleter = case, adder, deleter
        self.results = {}
        self.steps = {}

    def call(self, conf, verb, pod):
        """One plugin. Returns (result, error), either of them None."""
        path = self.deleter if verb == "DEL" else self.adder
        n = self.case.pods.index(pod)
        env = dict(os.environ, CNI_COMMAND=verb, CNI_CONTAINERID="container-" + pod,
                   CNI_NETNS="/run/netns/" + pod, CNI_IFNAME=self.case.ifname, CNI_PATH=path,
                   CNI_ARGS=self.case.args[min(n, len(self.case.args) - 1)])
        done = subprocess.run([os.path.join(path, conf["type"])], input=json.dumps(conf), text=True,
                              env=env, capture_output=True, timeout=60, check=False)
        try:
            said = json.loads(done.stdout) if done.stdout.strip() else None
        except ValueError:
            return None, {"exit": done.returncode, "garbage": done.stdout}
        if done.returncode == 0:
            return said, None
        said = said or {"msg": done.stderr.strip()}
        msg = said.get("msg", "").replace(path, "$CNI_PATH")
        return None, {"code": said.get("code"), "msg": msg}

    def attach(self, verb, pod):
        """A verb for a whole chain."""
        prev = None if verb == "ADD" else self.results.get(pod)
        hand_over = self.case.version not in ("0.1.0", "0.2.0", "0.3.0", "0.3.1")
        for conf in reversed(self.case.chain) if verb == "DEL" else self.case.chain:
            conf = dict(conf)
            if prev and (verb == "ADD" or hand_over):
                conf["prevResult"] = prev
            result, error = self.call(conf, verb, pod)
            if error:
                return {"error": error}
            if verb == "ADD":
                prev = result
        if verb == "ADD":
            self.results[pod] = prev
            return {"result": prev}
        return {"result": None}

    def run(self):
        out = {"steps": self.steps}
        for n, verb in enumerate(self.case.verbs):
            if verb == "DEL" and "state" not in out:
                self.look(out)
            for pod in self.case.pods:
                if verb == "CHECK" and pod not in self.results:
                    continue
                self.steps["%d %s %s" % (n + 1, verb, pod)] = self.attach(verb, pod)
        if "state" not in out:
            self.look(out)
        out["left"] = state.snapshot(self.case.pods)
        return out

    def look(self, out):
        if self.adder != self.deleter:
            return
        state.settle([None] + self.case.pods)
        out["state"] = state.snapshot(self.case.pods)
        out["reach"] = state.reach(out["state"], self.case.outside)


def new_host():
    """From here on this process is on a host of its own."""
    libc = ctypes.CDLL(None, use_errno=True)

    def must(result):
        if result < 0:
            raise OSError(ctypes.get_errno(), "a host of its own")

    must(libc.unshare(CLONE_NEWNS | CLONE_NEWNET))
    must(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    for place in (b"/run", b"/etc/cni", b"/var/lib/cni"):
        os.makedirs(place, exist_ok=True)
        must(libc.mount(b"host", place, b"tmpfs", 0, b"mode=755"))
    must(libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def play(case, adder, deleter):
    new_host()
    for pod in case.pods:
        subprocess.run(["ip", "netns", "add", pod], check=True)
    if case.outside:
        state.make_outside()
    for command in case.setup:
        subprocess.run(["bash", "-ec", command], check=True, env=dict(os.environ, CNI_PATH=adder))
    return Side(case, adder, deleter).run()


def run(case, adder, deleter):
    """What play() returns, from a child; what goes wrong there is a RuntimeError here."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = json.dumps(play(case, adder, deleter))
        except BaseException:  # whatever it is, the parent tells it
            text = json.dumps({"broken": traceback.format_exc()})
        with os.fdopen(writer, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        out = json.load(pipe)
    os.waitpid(pid, 0)
    if "broken" in out:
        raise RuntimeError(out["broken"])
    return out
