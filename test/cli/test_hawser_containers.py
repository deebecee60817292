# SPDX-License-Identifier: Apache-2.0
"""
test/cli/test_hawser_containers.py - hawser ps, exec, stop, start, kill and wait, with hawser-cri and with containerd
"""
import json
import re
import subprocess

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import EXITED, FOREVER, RUNNING
from fakeruntime import runtime  # noqa: F401, a fixture
from hawsercli import HAWSER, LONG, message
from nodes import IMAGE, image_server, module_node, node  # noqa: F401, fixtures


def rows(text):
    """The rows of a table without its heading, as lists of cells."""
    return [re.split(r"  +", line.strip()) for line in text.splitlines()[1:]]


# ---- ps ----------------------------------------------------------------------------------------

def test_ps_lists_running_containers_the_newest_first(node):
    pod = node.cri.pod("shop")
    web, db = (node.cri.run_container(pod, name=n) for n in ("web", "db"))
    done = node.cri.run_to_end(pod, ["/bin/true"], name="done").id
    created = node.cri.create(pod, name="created")
    text = node.run("ps")
    assert text.split("\n")[0].split() == ["ID", "NAME", "POD", "IMAGE", "STATE", "AGE"]
    assert [row[:5] for row in rows(text)] == [[db[:12], "db", "shop", IMAGE, "running"],
                                               [web[:12], "web", "shop", IMAGE, "running"]]
    assert all(re.fullmatch(r"\d+[sm]", row[5]) for row in rows(text))
    assert [(row[1], row[4]) for row in rows(node.run("ps", "-a"))] == [
        ("created", "created"), ("done", "exited"), ("db", "running"), ("web", "running")]
    assert node.run("ps", "-q") == "%s\n%s\n" % (db, web)
    assert node.run("ps", "-qa") == "".join(i + "\n" for i in (created, done, db, web))
    listed = json.loads(node.run("ps", "--json"))["containers"]
    assert [(c["id"], c["state"], c["metadata"]["name"]) for c in listed] == [
        (db, "CONTAINER_RUNNING", "db"), (web, "CONTAINER_RUNNING", "web")]


def test_ps_shows_the_name_of_an_image_that_a_kubelet_gave_by_id(node):
    image_id = node.cri.call("ImageStatus", image={"image": IMAGE}).image.id
    node.cri.run_container(node.cri.pod("shop"), image=image_id)
    assert rows(node.run("ps"))[0][3] == IMAGE


def test_ps_without_containers_prints_only_the_heading(node):
    assert len(node.run("ps", "-a").splitlines()) == 1
    assert node.run("ps", "-q") == ""
    assert json.loads(node.run("ps", "--json")) == {"containers": []}


# ---- exec --------------------------------------------------------------------------------------

def test_exec_prints_both_streams_and_ends_with_the_status_of_the_command(node):
    container = node.cri.run_container(node.cri.pod("shop"), name="web")
    script = "echo out; echo err >&2; printf '\\033[1mraw'; exit 7"
    for word in (container, container[:10], "web", "shop/web"):
        assert node.hawser("exec", word, "sh", "-c", script) == (7, "out\n\x1b[1mraw", "err\n")
    assert node.hawser("exec", "web", "true") == (0, "", "")
    status, text, _ = node.hawser("--json", "exec", "web", "sh", "-c", "echo out; exit 3")
    assert status == 3 and json.loads(text) == {"stdout": "b3V0Cg==", "stderr": "", "exitCode": 3}


def test_options_after_the_container_belong_to_the_command(node):
    node.cri.run_container(node.cri.pod("shop"), name="web")
    assert node.run("exec", "web", "echo", "--json", "-h", "--") == "--json -h --\n"
    assert node.run("exec", "web", "--", "echo", "--", "-q") == "-- -q\n"


def test_exec_ends_with_125_if_the_command_did_not_run(node):
    container = node.cri.create(node.cri.pod("shop"), name="web")
    status, text, errors = node.hawser("exec", "none", "true")
    assert (status, text) == (125, "") and errors.startswith('hawser: container "none": not found\nhint: ')
    status, text, errors = node.hawser("exec", "web", "true")
    assert (status, text) == (125, "") and errors.startswith('hawser: run true in container "web": ')
    assert errors.endswith('\nhint: run "hawser ps" for a list of the containers that run\n'), errors
    assert node.hawser("exec", "web")[0] == 2
    assert node.cri.container(container).state != EXITED


def test_exec_with_a_timeout_ends_the_command(node):
    node.cri.run_container(node.cri.pod("shop"), name="web")
    status, _, errors = node.hawser("exec", "--timeout", "1", "web", "sleep", "100001")
    assert status == 125 and 'run sleep in container "web": ' in errors and "hint: " in errors
    found = node.run("exec", "web", "sh", "-c", "ps -o args | grep -c '[s]leep 100001' || true")
    assert found == "0\n"


# ---- stop, kill, start, wait -------------------------------------------------------------------

def test_stop_lets_a_container_end_and_kill_does_not(node):
    pod = node.cri.pod("shop")
    polite, deaf = node.cri.run_server(pod, name="polite"), node.cri.run_container(pod, FOREVER, name="deaf")
    killed = node.cri.run_server(pod, name="killed")
    assert node.run("stop", "polite") == "polite\n"
    assert node.cri.container(polite).exit_code == 0
    assert node.run("stop", "--time", "1", "deaf") == "deaf\n"
    assert node.cri.container(deaf).exit_code == 137
    assert node.run("kill", "killed") == "killed\n"
    assert node.cri.container(killed).exit_code == 137
    assert node.run("stop", "polite", "killed") == "polite\nkilled\n"  # ended already
    assert json.loads(node.run("kill", "--json", "deaf")) == {"killed": [deaf]}


@pytest.mark.parametrize("words, at_least, at_most", [
    (["stop", "web"], 60, 70), (["stop", "--time", "1000", "web"], 1000, 1060), (["kill", "web"], 50, 60),
    (["--timeout", "5", "stop", "--time", "1000", "web"], 1, 5),
])
def test_the_default_timeout_of_stop_is_longer_than_its_grace(runtime, words, at_least, at_most):
    deadlines = []

    def stop(request, context):
        deadlines.append(context.time_remaining())
        return b""

    runtime.methods["ListContainers"] = lambda request, context: message(
        (1, message((1, "a1" * 32), (3, message((1, "web"))))))
    runtime.methods["StopContainer"] = stop
    assert runtime.run(*words)[0] == 0
    assert len(deadlines) == 1 and at_least < deadlines[0] <= at_most


def test_a_kill_ends_a_stop_that_waits(node):
    container = node.cri.run_container(node.cri.pod("shop"), FOREVER, name="deaf")
    status, _, errors = node.hawser("--timeout", "1", "stop", "--time", "1000", "deaf")
    assert status == 1 and 'stop container "deaf": ' in errors and "use --timeout" in errors
    with subprocess.Popen([HAWSER, *node.words, "stop", "--time", "1000", "deaf"]) as stop:
        assert node.run("kill", "deaf") == "deaf\n"
        assert stop.wait(LONG) == 0
    assert node.cri.container(container).exit_code == 137


def test_start_runs_a_created_container_once(node):
    container = node.cri.create(node.cri.pod("shop"), FOREVER, name="web")
    assert node.run("start", "web") == "web\n"
    assert node.cri.container(container).state == RUNNING
    node.run("kill", "web")
    status, _, errors = node.hawser("start", "web")
    assert status == 1 and errors.startswith('hawser: start container "web": ')
    assert errors.endswith("\nhint: a container runs only once: remove it, and create another one\n"), errors


def test_wait_prints_exit_codes_in_the_order_of_the_arguments(node):
    pod = node.cri.pod("shop")
    first = node.cri.run_container(pod, FOREVER, name="first")
    node.cri.run_to_end(pod, ["/bin/sh", "-c", "exit 9"], name="second")
    with subprocess.Popen([HAWSER, *node.words, "wait", "first", "second"], stdout=subprocess.PIPE,
                          text=True) as wait:
        node.cri.stop_container(first)
        assert wait.communicate(timeout=LONG)[0] == "137\n9\n" and wait.returncode == 0
    status, text, errors = node.hawser("wait", "none", "second")
    assert (status, text) == (1, "9\n") and 'container "none": not found' in errors
    assert json.loads(node.run("wait", "--json", "second")) == {"exitCodes": [9]}
