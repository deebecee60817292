# SPDX-License-Identifier: Apache-2.0
"""
test/differential/side.py - run one side of one case

What:  on a separate host (mount and network namespaces; empty /run, /etc/cni and /var/lib/cni),
       create the pods, run the case's verbs, and report the results and the state.
How:   in a forked child, whose namespaces disappear when it ends. It sends its report as JSON
       through a pipe. ADD and CHECK use the plugins in directory ADDER, DEL those in DELETER. They
       are the same directory to run one side. They are two directories to test that one side's
       DEL cleans up after the other side's ADD; then only the leftovers are compared.
       A chain runs as in libcni: each plugin gets the result of the plugin before it as
       prevResult; DEL runs backwards, with the last result if the version is 0.4.0 or later.
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
        """Run one plugin. Returns (result, error), one of which is None."""
        path = self.deleter if verb == "DEL" else self.adder
        n = self.case.pods.index(pod)
        env = dict(os.environ, CNI_COMMAND=verb, CNI_CONTAINERID="container-" + pod,
                   CNI_NETNS="/run/netns/" + pod, CNI_IFNAME=self.case.ifname, CNI_PATH=path,
                   CNI_ARGS=self.case.args[min(n, len(self.case.args) - 1)])
        done = subprocess.run([os.path.join(path, conf["type"])], input=json.dumps(conf), text=True,
                              env=env, capture_output=True, timeout=60, check=False)
        try:
            answer = json.loads(done.stdout) if done.stdout.strip() else None
        except ValueError:
            return None, {"exit": done.returncode, "malformed output": done.stdout}
        if done.returncode == 0:
            return answer, None
        answer = answer or {"msg": done.stderr.strip()}
        msg = answer.get("msg", "").replace(path, "$CNI_PATH")
        return None, {"code": answer.get("code"), "msg": msg}

    def attach(self, verb, pod):
        """Run a verb of the whole chain."""
        prev = None if verb == "ADD" else self.results.get(pod)
        del_gets_result = self.case.version not in ("0.1.0", "0.2.0", "0.3.0", "0.3.1")
        for conf in reversed(self.case.chain) if verb == "DEL" else self.case.chain:
            conf = dict(conf)
            if prev and (verb == "ADD" or del_gets_result):
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
                self.add_state(out)
            for pod in self.case.pods:
                if verb == "CHECK" and pod not in self.results:
                    continue
                self.steps["%d %s %s" % (n + 1, verb, pod)] = self.attach(verb, pod)
        if "state" not in out:
            self.add_state(out)
        out["left"] = state.snapshot(self.case.pods)
        return out

    def add_state(self, out):
        if self.adder != self.deleter:
            return
        state.settle([None] + self.case.pods)
        out["state"] = state.snapshot(self.case.pods)
        out["reach"] = state.reach(out["state"], self.case.outside)


def new_host():
    """Move this process to a new host: new namespaces and empty directories."""
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result, call):
        if result < 0:
            raise OSError(ctypes.get_errno(), call)

    check(libc.unshare(CLONE_NEWNS | CLONE_NEWNET), "unshare")
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
    for directory in (b"/run", b"/etc/cni", b"/var/lib/cni"):
        os.makedirs(directory, exist_ok=True)
        check(libc.mount(b"host", directory, b"tmpfs", 0, b"mode=755"), "mount tmpfs")
    check(libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None), "mount /sys")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def run_on_new_host(case, adder, deleter):
    new_host()
    for pod in case.pods:
        subprocess.run(["ip", "netns", "add", pod], check=True)
    if case.outside:
        state.create_outside()
    for command in case.setup:
        subprocess.run(["bash", "-ec", command], check=True, env=dict(os.environ, CNI_PATH=adder))
    return Side(case, adder, deleter).run()


def run(case, adder, deleter):
    """Run run_on_new_host() in a child process; its errors become a RuntimeError."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = json.dumps(run_on_new_host(case, adder, deleter))
        except BaseException:  # the parent reports every exception
            text = json.dumps({"exception": traceback.format_exc()})
        with os.fdopen(writer, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        out = json.load(pipe)
    os.waitpid(pid, 0)
    if "exception" in out:
        raise RuntimeError(out["exception"])
    return out
