# SPDX-License-Identifier: Apache-2.0
"""
test/cli/test_hawser_run.py - hawser run, with hawser-cri and with containerd
"""
import json
import os
import pathlib
import re
import urllib.request

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
import busybox
from containers import EXITED, RUNNING, SERVER
from fakeruntime import ID, fail, image, message, runtime  # noqa: F401, a fixture
from fetching import ARCHITECTURE, Image, digest, to_json
from hawsercli import hawser
from nodes import IMAGE, image_server, module_node, node  # noqa: F401, fixtures
from waiting import wait_until

LOGS = pathlib.Path("/var/log/hawser/run")
DEAF = ["/bin/sh", "-c", "echo ready; exec tail -f /dev/null"]  # as process 1 it ignores SIGTERM


# ---- the command line --------------------------------------------------------------------------

@pytest.mark.parametrize("words, expected", [
    ([], "missing argument"),
    (["--rm", "-d", "a"], "--rm conflicts with --detach"),
    (["--name", "Web", "a"], 'invalid value "Web" for --name: want at most 63 lowercase letters'),
    (["--name", "../x", "a"], 'invalid value "../x" for --name'),
    (["--name", "a-", "a"], 'invalid value "a-" for --name'),
    (["--name", "", "a"], 'invalid value "" for --name'),
    (["-e", "=x", "a"], 'invalid value "=x" for --env: want KEY=VALUE or KEY'),
    (["-v", "data:/data", "a"], 'invalid value "data:/data" for --volume: want two absolute paths'),
    (["-v", "/data", "a"], 'invalid value "/data" for --volume'),
    (["-v", "/data:/data:rx", "a"], 'invalid value "/data:/data:rx" for --volume'),
    (["-p", "80", "a"], 'invalid value "80" for --publish: want two ports'),
    (["-p", "0:80", "a"], 'invalid value "0:80" for --publish'),
    (["-p", "80:65536", "a"], 'invalid value "80:65536" for --publish'),
    (["-p", "80:80/icmp", "a"], 'invalid value "80:80/icmp" for --publish'),
    (["-p", "80/tcp:80", "a"], 'invalid value "80/tcp:80" for --publish'),
    (["-p", "80:80", "--host-network", "a"], "--publish conflicts with --host-network"),
])
def test_invalid_options_are_refused_before_the_runtime_is_called(words, expected):
    status, text, errors = hawser("--runtime", "unix:/nowhere", "run", *words)
    assert (status, text) == (2, "") and expected in errors.splitlines()[0], errors


# ---- in the foreground -------------------------------------------------------------------------

def test_run_prints_the_output_and_ends_with_the_status_of_the_container(node):
    script = "echo out; echo err >&2; printf end; exit 42"
    assert node.hawser("run", "--rm", "--name", "job", IMAGE, "sh", "-c", script) == (42, "out\nend", "err\n")
    assert node.pods() == [] and not (LOGS / "job").exists()
    assert node.hawser("run", "--rm", IMAGE, "sh", "-c", "kill -9 $$; kill -TERM $$; exit 3")[0] == 3


def test_a_container_that_has_ended_stays_until_its_pod_is_removed(node):
    assert node.run("run", "--name", "job", IMAGE, "echo", "one") == "one\n"
    (container,) = node.cri.containers()
    assert (container.metadata.name, container.state) == ("job", EXITED)
    assert node.run("logs", "job") == "one\n" and node.run("wait", "job") == "0\n"
    status, text, errors = node.hawser("run", "--name", "job", IMAGE, "echo", "two")
    assert (status, text) == (125, "")
    assert errors == 'hawser: pod "job" exists: its ID is %s\nhint: choose another name with --name\n' % (
        node.pods()[0])
    assert node.run("rm", "job") == "job\n" and node.pods() == []  # the pod, not only its container
    assert node.run("run", "--name", "job", IMAGE, "echo", "three") == "three\n"
    assert node.run("logs", "job") == "three\n"  # the log of the pod before is not continued


def test_nothing_is_left_of_a_container_that_could_not_be_started(node):
    status, text, errors = node.hawser("run", "--name", "job", IMAGE, "/bin/none")
    assert (status, text) == (125, "") and 'container "job": ' in errors and "/bin/none" in errors
    assert node.pods() == [] and not (LOGS / "job").exists()


def test_nothing_is_left_of_a_pod_that_could_not_be_created(node):
    node.run("run", "-d", "--name", "first", "-p", "8081:80", IMAGE)
    status, text, errors = node.hawser("run", "--name", "second", "-p", "8081:80", IMAGE)
    assert (status, text) == (125, "") and 'hawser: create pod "second": ' in errors and "8081" in errors
    assert len(node.pods()) == 1 and not (LOGS / "second").exists()


def test_a_missing_volume_is_an_error_and_is_not_created(node, tmp_path):
    status, text, errors = node.hawser("run", "-v", "%s/none:/x" % tmp_path, IMAGE)
    assert (status, text, errors) == (125, "", "hawser: volume %s/none: No such file or directory\n" % tmp_path)
    assert node.pods() == [] and os.listdir(tmp_path) == []


def test_ctrl_c_stops_the_container(node):
    terminal = node.terminal("run", "--rm", "--name", "web", IMAGE, *SERVER)
    terminal.wait_for("ready")
    terminal.type("\x03")
    assert terminal.end()[0] == 0  # SERVER ends with 0 on SIGTERM
    assert node.pods() == []


def test_a_second_ctrl_c_kills_the_container(node):
    terminal = node.terminal("run", "--rm", "--name", "web", IMAGE, *DEAF)
    terminal.wait_for("ready")
    terminal.type("\x03\x03")
    assert terminal.end()[0] == 137
    assert node.pods() == []


def test_a_signal_stops_the_container_too(node):
    for signal in 15, 1:
        terminal = node.terminal("run", "--rm", "--name", "web", IMAGE, *SERVER)
        terminal.wait_for("ready")
        terminal.process.send_signal(signal)
        assert terminal.end()[0] == 0 and node.pods() == []


# ---- detached ----------------------------------------------------------------------------------

def test_a_detached_container_has_the_variables_volumes_and_name_of_the_options(node, tmp_path, monkeypatch):
    monkeypatch.setenv("PASSED", "from outside")
    monkeypatch.delenv("UNSET", raising=False)
    (tmp_path / "file").write_text("shared")
    container = node.run("run", "-d", "--name", "web", "-e", "A=b=c", "--env", "PASSED", "-e", "UNSET", "-e", "EMPTY=",
                         "-v", "%s:/data" % tmp_path, "-v", "%s:/frozen:ro" % tmp_path, IMAGE).strip()
    assert node.cri.container(container).state == RUNNING
    script = 'echo "$A|$PASSED|${UNSET-none}|$EMPTY|$(hostname)"; cat /data/file; echo x > /data/new; echo x > /frozen/y'
    status, text, errors = node.hawser("exec", "web", "sh", "-c", script)
    assert status == 1 and text == "b=c|from outside|none||web\nshared" and "Read-only" in errors
    assert sorted(os.listdir(tmp_path)) == ["file", "new"]
    assert [re.split(" +", line)[1:5] for line in node.run("ps").splitlines()[1:]] == [
        ["web", "web", IMAGE, "running"]]


def test_a_container_has_the_limits_of_an_ordinary_pod(node):
    node.run("run", "-d", "--name", "web", IMAGE)
    script = "cat /proc/kcore /proc/interrupts | head -c 1 | wc -c; echo 1 > /proc/sys/vm/overcommit_memory; mount -t tmpfs x /tmp"
    status, text, errors = node.hawser("exec", "web", "sh", "-c", script)
    assert status != 0 and text == "0\n" and "Read-only" in errors and "denied" in errors


def test_a_published_port_is_reachable(node):
    def fetch():
        try:
            with urllib.request.urlopen("http://%s:8080/cgi-bin/who" % node.gateway, timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            return None

    given = node.run("run", "-d", "--json", "--name", "web", "-p", "8080:80/tcp", IMAGE, "httpd", "-f", "-p", "80",
                     "-h", "/www")
    ids = json.loads(given)
    assert ids == {"podSandboxId": node.pods()[0], "containerId": node.cri.containers()[0].id}
    assert re.match(r"\d+\.\d+\.\d+\.\d+|[0-9a-f:.]+", wait_until(fetch, lambda: node.run("logs", "web")))


def test_a_container_may_use_the_network_of_the_host(node):
    assert node.run("run", "--rm", "--host-network", IMAGE, "readlink", "/proc/self/ns/net").strip() == os.readlink(
        "/proc/self/ns/net")
    assert node.run("run", "--rm", IMAGE, "readlink", "/proc/self/ns/net").strip() != os.readlink("/proc/self/ns/net")


# ---- images ------------------------------------------------------------------------------------

def hello():
    layer = busybox.archive(busybox.base)
    config = {"Env": ["PATH=/bin"], "Entrypoint": ["echo", "hello"], "Cmd": ["world"]}
    return Image([layer], config=to_json({"os": "linux", "architecture": ARCHITECTURE, "config": config,
                                          "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}}))


@pytest.mark.parametrize("code, hint", [
    ("UNAVAILABLE", "check that the registry and the runtime are reachable, and try again"),
    ("UNAUTHENTICATED", 'use "hawser pull --creds USER" to log in to the registry'),
    ("NOT_FOUND", 'check name and tag of the image; use "hawser pull --creds USER" if it is private'),
])
def test_the_hint_of_a_failed_pull_is_about_the_registry(runtime, code, hint):
    runtime.methods["ListPodSandbox"] = runtime.methods["ImageStatus"] = lambda request, context: b""
    runtime.methods["PullImage"] = lambda request, context: fail(context, code, "no")
    assert runtime.run("run", "app") == (125, "", 'hawser: pull "app": no\nhint: %s\n' % hint)


def test_the_hint_without_a_network_says_how_to_get_one(runtime):
    runtime.methods["ListPodSandbox"] = lambda request, context: b""
    runtime.methods["ImageStatus"] = lambda request, context: message((1, image(ID, ["app:1"])))
    runtime.methods["RunPodSandbox"] = lambda request, context: fail(
        context, "UNAVAILABLE", "the network is not ready: no file")
    assert runtime.run("run", "--name", "job", "app:1") == (
        125, "", 'hawser: create pod "job": the network is not ready: no file\n'
        "hint: configure a network, set default-network of hawser-cri, or use --host-network\n")


def test_a_missing_image_is_pulled_once_and_gives_its_name_to_the_container(node, image_server):
    image_server.add(hello())
    name = image_server.host + "/tools/hello_1:latest"
    status, text, errors = node.hawser("run", name)
    assert (status, text) == (0, "hello world\n")
    shown = re.search("[0-9a-f]{12}  (done|present)", errors)
    assert bool(shown) == (node.gateway == "10.88.0.1"), errors  # containerd reports no progress
    assert node.hawser("run", "--rm", name, "you") == (0, "hello you\n", "")
    (row,) = node.run("ps", "-a").splitlines()[1:]
    assert re.search(r"^\S+ +(hello-1-[0-9a-f]{6}) +\1 +%s +exited " % re.escape(name), row)
    assert node.hawser("rmi", name)[0] == 0


def test_an_image_that_does_not_exist_is_an_error_with_a_hint(node, image_server):
    status, text, errors = node.hawser("run", image_server.host + "/tools/none:1")
    assert (status, text) == (125, "") and errors.startswith('hawser: pull "%s/tools/none:1": ' % image_server.host)
    assert errors.endswith('\nhint: check name and tag of the image; use "hawser pull --creds USER" if it is private\n')
    assert node.pods() == []
