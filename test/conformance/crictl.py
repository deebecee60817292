# SPDX-License-Identifier: Apache-2.0
"""
test/conformance/crictl.py - crictl and its commands, as tests

What:  run_crictl() calls each command; a test is a function that is named after the command. They run in this order,
       and use the image, the pod or the container of those before.
"""
import json
import os
import pathlib
import subprocess

from upstreamimages import BUSYBOX, IMAGE

CRICTL = os.environ["HAWSER_CRICTL"]
LONG = 300  # s
SCRIPT = "trap 'exit 7' TERM; echo one; echo two >&2; tail -f /dev/null & wait"


class Crictl:
    def __init__(self, daemon, host):
        self.host = host
        self.dir = daemon.dir
        self.words = [CRICTL, "--config", os.devnull, "--runtime-endpoint", "unix://" + daemon.socket, "--image-endpoint",
                      "unix://" + daemon.socket, "--timeout", "60s"]

    def __call__(self, *words, status=0):
        done = subprocess.run([*self.words, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=LONG)
        assert done.returncode == status, f"{words}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout if status == 0 else done.stderr

    def json(self, *words):
        return json.loads(self(words[0], "--output", "json", *words[1:]))

    def images(self):
        return self.json("images")["images"]

    def pods(self):
        return {pod["id"]: pod["state"] for pod in self.json("pods")["items"]}

    def containers(self):
        return {c["id"]: c["state"] for c in self.json("ps", "--all")["containers"]}

    def file(self, name, content):
        """The path of a file with this configuration."""
        path = self.dir / f"{name}.json"
        path.write_text(json.dumps(content))
        return str(path)

    def pod_config(self):
        return self.file("pod", {
            "metadata": {"name": "pod", "uid": "pod-uid", "namespace": "default"}, "hostname": "pod",
            "log_directory": str(self.dir / "logs"), "labels": {"app": "x"}, "linux": {}})

    def container_config(self):
        return self.file("container", {
            "metadata": {"name": "main"}, "image": {"image": BUSYBOX}, "command": ["sh", "-c", SCRIPT],
            "log_path": "main.log", "linux": {}})


# ---- images ----------------------------------------------------------------------------------------

def version(crictl):
    found = dict(line.split(":") for line in crictl("version").splitlines())
    assert found["RuntimeName"].strip() == "hawser", found
    assert found["RuntimeApiVersion"].strip() == "v1", found


def info(crictl):
    conditions = {c["type"]: c["status"] for c in crictl.json("info")["status"]["conditions"]}
    assert conditions["RuntimeReady"] is True and conditions["NetworkReady"] is True, conditions


def pull(crictl):
    assert "Image is up to date for " in crictl("pull", IMAGE)


def pull_missing_image(crictl):
    error = crictl("pull", crictl.host + "/nothing:1", status=1)
    assert "code = NotFound" in error and crictl.host in error, error


def images(crictl):
    found = crictl.images()
    assert [i["repoTags"] for i in found] == [[IMAGE]], found
    assert found[0]["id"][7:20] in crictl("images"), found


def inspecti(crictl):
    status = crictl.json("inspecti", IMAGE)
    assert status["status"]["repoTags"] == [IMAGE], status
    assert status["status"]["id"] == crictl.images()[0]["id"]
    assert status["info"]["imageSpec"]["os"] == "linux", status["info"]


def imagefsinfo(crictl):
    usage = crictl.json("imagefsinfo")["status"]["imageFilesystems"][0]
    size = pathlib.Path("/bin/busybox").stat().st_size
    assert pathlib.Path(usage["fsId"]["mountpoint"]).is_dir(), usage
    assert int(usage["usedBytes"]["value"]) >= size, usage


def rmi(crictl):
    assert f"Deleted: {IMAGE}" in crictl("rmi", IMAGE)
    assert crictl.images() == []
    assert "no such image" in crictl("inspecti", IMAGE, status=1)


# ---- pods ------------------------------------------------------------------------------------------

def runp(crictl):
    crictl.pod = crictl("runp", crictl.pod_config()).strip()
    assert len(crictl.pod) == 64, crictl.pod


def pods(crictl):
    assert crictl.pods() == {crictl.pod: "SANDBOX_READY"}
    assert crictl.pod[:13] in crictl("pods", "--label", "app=x")
    assert crictl("pods", "--quiet", "--label", "app=y") == ""


def inspectp(crictl):
    found = crictl.json("inspectp", crictl.pod)
    assert found["status"]["metadata"]["name"] == "pod" and found["status"]["network"]["ip"], found
    kinds = {n["type"]: n["path"] for n in found["info"]["runtimeSpec"]["linux"]["namespaces"]}
    assert pathlib.Path(kinds["network"]).exists(), kinds


def stopp(crictl):
    assert crictl.pod in crictl("stopp", crictl.pod)
    assert crictl.pods() == {crictl.pod: "SANDBOX_NOTREADY"}


def rmp(crictl):
    assert crictl.pod in crictl("rmp", crictl.pod)
    assert crictl.pods() == {}
    assert "code = NotFound" in crictl("inspectp", crictl.pod, status=1)


# ---- containers ------------------------------------------------------------------------------------

def run(crictl):
    words = "run", "--with-pull", crictl.container_config(), crictl.pod_config()
    crictl.container = crictl(*words).strip()
    (crictl.pod,) = crictl.pods()
    assert crictl.containers() == {crictl.container: "CONTAINER_RUNNING"}


def ps(crictl):
    assert crictl.container[:13] in crictl("ps")
    assert crictl("ps", "--quiet", "--pod", crictl.pod).strip() == crictl.container


def exec_sync(crictl):
    assert crictl("exec", "--sync", crictl.container, "hostname").split() == ["pod"]
    error = crictl("exec", "--sync", crictl.container, "sh", "-c", "exit 3", status=1)
    assert "exited with 3" in error, error


def logs(crictl):
    done = subprocess.run([*crictl.words, "logs", crictl.container], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=True, timeout=LONG)
    assert (done.stdout, done.stderr) == ("one\n", "two\n"), done


def inspect(crictl):
    status = crictl.json("inspect", crictl.container)["status"]
    assert (status["state"], status["metadata"]["name"]) == ("CONTAINER_RUNNING", "main"), status
    assert status["logPath"] == str(crictl.dir / "logs/main.log"), status


def stop(crictl):
    assert crictl.container in crictl("stop", "--timeout", "60", crictl.container)
    status = crictl.json("inspect", crictl.container)["status"]
    assert (status["state"], status["exitCode"]) == ("CONTAINER_EXITED", 7), status


def rm(crictl):
    assert crictl.container in crictl("rm", crictl.container)
    assert crictl.containers() == {}
    assert "code = NotFound" in crictl("inspect", crictl.container, status=1)


COMMANDS = (version, info, pull, pull_missing_image, images, inspecti, imagefsinfo, rmi,
            runp, pods, inspectp, stopp, rmp, run, ps, exec_sync, logs, inspect, stop, rm, stopp, rmp)


def run_crictl(crictl, tap):
    for command in COMMANDS:
        tap.run("crictl: " + command.__name__.replace("_", " "), command, crictl)
