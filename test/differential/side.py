# SPDX-License-Identifier: Apache-2.0
"""
test/differential/side.py PLUGIN INDEX ADDER DELETER: one side of one case

What:  in a host of its own (mount and network namespace, empty /run, /etc/cni and /var/lib/cni)
       make the pods, run the case's verbs, and print what was answered and what could be seen.
How:   ADD and CHECK with the plugins in the folder ADDER, DEL with those in DELETER: the same
       folder for a side, two for cleaning up after one another. A chain is run as libcni does
       it: prevResult handed on, DEL backwards with the last result, from 0.4.0 on.
"""
import json
import os
import subprocess
import sys

import state
import table


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
        return None, {"code": said.get("code"), "msg": said.get("msg")}

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
        state.settle([None] + self.case.pods)
        out["state"] = state.snapshot(self.case.pods)
        out["reach"] = state.reach(out["state"])


def main():
    plugin, index, adder, deleter = sys.argv[1:]
    case = table.cases(plugin)[int(index)]
    for pod in case.pods:
        subprocess.run(["ip", "netns", "add", pod], check=True)
    for command in case.setup:
        subprocess.run(["bash", "-ec", command], check=True, env=dict(os.environ, CNI_PATH=adder))
    print(json.dumps(Side(case, adder, deleter).run()))


main()
