# SPDX-License-Identifier: Apache-2.0
"""
test/conformance/critest.py - critest and its reports

What:  run_critest() runs the specs on a runtime, except those in LEFT_OUT; verdicts() reads the report.
How:   critest pulls images from public registries. The runtime must get them from another registry under the same
       names (upstreamimages.py). Reports are in BUILD/conformance/cri.
Rules: HAWSER_CRITEST is the program. Each runtime needs a sandbox of its own: critest uses fixed host ports.
"""
import collections
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

TIMEOUT_S = 600
# A group whose name begins with that of another one comes first.
GROUPS = ("Runtime info", "Image Manager", "Image Consistency", "Image Identifier Consistency", "PodSandbox",
          "Container Mount Propagation", "Container Mount Readonly", "Container OOM", "Container", "Networking",
          "Idempotence", "Multiple Containers", "Streaming", "Security Context", "AppArmor")
SPEC = re.compile(r"\[It\] \[k8s\.io\] (%s) (.*)" % "|".join(GROUPS))
BENCHMARK = "benchmark"     # critest runs them only with -benchmark
DIGEST = {"image with digest": "the image with this digest cannot be built from Debian's packages"}
# Specs that are not run on a runtime: {a part of the name: why}
LEFT_OUT = {
    "hawser-cri": {**DIGEST, "Streaming": "hawser-cri has no server for exec, attach and port-forward"},
    "containerd": DIGEST,
}
REPORTS = pathlib.Path(os.environ["HAWSER_BUILD"]) / "conformance/cri"

Verdict = collections.namedtuple("Verdict", "kind why output")     # kind: passed, failed, skipped


def report(runtime):
    return REPORTS / f"{runtime}.xml"


def run_critest(runtime, socket, directory):
    """Returns critest's exit status and its output."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    report(runtime).unlink(missing_ok=True)
    done = subprocess.run(
        [os.environ["HAWSER_CRITEST"], "--config", os.devnull, "--runtime-endpoint", f"unix://{socket}",
         "--image-endpoint", f"unix://{socket}", "--ginkgo.skip", "|".join([BENCHMARK, *LEFT_OUT[runtime]]),
         "--ginkgo.no-color", "--ginkgo.junit-report", report(runtime), "--ginkgo.timeout", f"{TIMEOUT_S}s"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * TIMEOUT_S, cwd=directory)
    return done.returncode, done.stdout


def skip_reason(runtime, name, case):
    for part, why in LEFT_OUT[runtime].items():
        if part in name:
            return why
    return case.find("skipped").get("message").removeprefix("skipped - ")


def verdict(runtime, name, case):
    if case.get("status") == "skipped":
        return Verdict("skipped", skip_reason(runtime, name, case), "")
    errors = [part.get("message") for part in case if part.tag in ("failure", "error")]
    return Verdict("failed" if errors else "passed", "", "\n".join(errors))


def verdicts(runtime):
    """Returns {(group, name): Verdict}, sorted."""
    found = {}
    for case in ElementTree.parse(report(runtime)).iter("testcase"):
        spec = SPEC.fullmatch(case.get("name"))
        if spec and BENCHMARK not in spec[2]:
            found[spec.groups()] = verdict(runtime, case.get("name"), case)
    return dict(sorted(found.items()))
