# SPDX-License-Identifier: Apache-2.0
"""
test/cli/test_hawser_pods.py - hawser pods and rm with hawser-cri: failed stops, lost pods and containers
"""
import json
import os
import re
import signal

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import IMAGE, containers  # noqa: F401, a fixture
from hawsercli import hawser
from poddaemon import NETNS, pods, refused  # noqa: F401, pods is a fixture
from waiting import wait_until

FAILURE = 'pod %s: network "pods": plugin type="control" failed (delete): the switch is away'
LOST_POD = 'pod %s is not in the database of hawser-cri; it is kept with its containers: run "hawser rm --force %s"'
LOST_CONTAINER = 'container %s (%s) is not in the database of hawser-cri: run "hawser rm --force %s"'


def command(d, *words):
    return hawser("--runtime", "unix:" + d.socket, *words)


def listed(d):
    """The pods that are listed, by ID."""
    return {pod["id"]: pod for pod in json.loads(command(d, "pods", "--json")[1])["items"]}


def table(d):
    """The rows of the table as lists of columns, and the notes below it."""
    status, text, errors = command(d, "pods")
    assert (status, errors) == (0, "")
    rows, _, notes = text.partition("\n\n")
    return [re.split(r"  +", line) for line in rows.splitlines()[1:]], notes.splitlines()


def fail_stop(d, name="web"):
    """Creates a pod whose DEL fails, and stops it. Returns its ID."""
    pod = d.cri.run(name)
    d.direct("DEL.fail", "the switch is away")
    assert refused(d.cri.stop, pod)
    return pod


def lose_database(d):
    d.kill()
    for file in (d.dir / "root").glob("pods.db*"):
        file.unlink()
    d.start()


# ---- pods ------------------------------------------------------------------------------------------

def test_pods_are_listed_with_the_newest_first(pods):
    d = pods()
    first, second = d.cri.run("web"), d.cri.run("host", network=2)
    address = d.cri.address(first)
    rows, notes = table(d)
    assert [row[:4] for row in rows] == [[second[:12], "host", "default", "ready"],
                                         [first[:12], "web", "default", "ready"]]
    assert rows[1][4] == address and re.fullmatch(r"\d+s", rows[1][5]) and notes == []
    assert command(d, "pods", "-q") == (0, "%s\n%s\n" % (second, first), "")
    d.cri.stop(first)
    assert table(d)[0][1][3] == "stopped"
    pod = listed(d)[first]
    assert (pod["metadata"]["name"], pod["state"]) == ("web", "SANDBOX_NOTREADY")
    assert pod["network"]["ip"] == address and pod["details"] == {"id": first, "state": "STOPPED", "message": ""}


def test_a_failed_stop_is_shown_with_its_message(pods):
    d = pods()
    pod = fail_stop(d)
    rows, notes = table(d)
    assert rows[0][3] == "stopping" and notes[0] == FAILURE % pod
    assert len(notes) == 2 and '"hawser rm --force POD"' in notes[1]
    assert listed(d)[pod]["details"] == {"id": pod, "state": "STOPPING", "message": FAILURE % pod}
    d.undirect()
    wait_until(lambda: table(d)[1] == [])


def test_lost_pods_are_listed_with_the_remedy(pods):
    d = pods()
    lost = d.cri.run("lost")
    lose_database(d)
    pod = d.cri.run("web")
    rows, notes = table(d)
    assert [row[0] for row in rows] == [pod[:12], lost[:12]]
    assert rows[1][1:] == ["-", "-", "lost", "-", "-"]
    assert notes == [LOST_POD % (lost[:12], lost[:12])]
    assert listed(d)[lost] == {"id": lost, "details": {"id": lost, "state": "LOST", "message": ""}}
    assert command(d, "pods", "-q")[1].split() == [pod, lost]
    assert command(d, "rm", "-f", lost)[0] == 0


# ---- rm --------------------------------------------------------------------------------------------

def test_a_failed_del_is_abandoned_only_with_force(pods):
    d = pods()
    pod = fail_stop(d)
    status, text, errors = command(d, "rm", "web")
    assert (status, text) == (1, "") and errors == 'hawser: remove pod "web": %s\n' % (FAILURE % pod)
    assert pod in listed(d) and d.leased()
    assert command(d, "rm", "--force", "web") == (0, "web\n", "")
    assert listed(d) == {} and not (NETNS / ("hawser-" + pod)).exists()
    d.logged("network not cleaned up")
    d.undirect()
    assert d.leased()  # abandoned: the plugin after it has not run
    assert command(d, "network", "gc", "pods") == (0, "collected pods\n", "") and d.leased() == []


def test_a_lost_pod_is_removed_only_with_force(pods):
    d = pods()
    lost = d.cri.run("lost", pid=0)
    lose_database(d)
    status, text, errors = command(d, "rm", lost[:12])
    assert (status, text) == (1, "") and "was lost from the database" in errors and "hawser rm --force" in errors
    assert d.leased() and command(d, "rm", "web")[0] == 1
    assert command(d, "rm", "--json", "--force", lost[:12])[1].split() == ["{", '"removed":', "[", '"%s"' % lost, "]", "}"]
    assert listed(d) == {} and not d.leftovers()


def test_a_lost_container_is_listed_and_removed_only_with_force(containers):
    d = containers()
    pod = d.cri.pod()
    container = d.cri.run_container(pod)
    pid = json.loads(d.cri.call("ContainerStatus", container_id=container, verbose=True).info["info"])["pid"]
    lose_database(d)
    what = '"main" of pod "default/a", image "%s"' % IMAGE
    lost = {"id": container, "name": "main", "podId": pod, "pod": "a", "namespace": "default", "image": IMAGE}
    _, notes = table(d)
    assert notes == [LOST_POD % (pod[:12], pod[:12]),
                     LOST_CONTAINER % (container[:12], "%s, process %d" % (what, pid), container[:12])]
    assert json.loads(command(d, "pods", "--json")[1])["lostContainers"] == [{**lost, "pid": pid}]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: json.loads(command(d, "pods", "--json")[1])["lostContainers"] == [{**lost, "pid": 0}])
    assert table(d)[1][1] == LOST_CONTAINER % (container[:12], what, container[:12])
    (d.state / "containers" / container / "config.json").write_text("{")
    assert table(d)[1][1] == (LOST_CONTAINER % (container[:12], "", container[:12])).replace(" ()", "")
    status, text, errors = command(d, "rm", container)
    assert (status, text) == (1, "") and "was lost from the database" in errors
    assert command(d, "rm", "--force", container[:12]) == (0, container[:12] + "\n", "")
    assert table(d)[1] == [LOST_POD % (pod[:12], pod[:12])]
    assert command(d, "rm", "--force", pod[:12])[0] == 0
    assert table(d) == ([], []) and not d.leftovers()


def test_a_lost_pod_is_removed_with_its_containers(containers):
    d = containers()
    pod = d.cri.pod(network=0)
    d.cri.run_container(pod)
    lose_database(d)
    assert command(d, "rm", "--force", pod[:12])[0] == 0
    assert table(d) == ([], []) and not d.leftovers()


def test_what_is_lost_cannot_be_inspected(pods):
    d = pods()
    lost = d.cri.run("lost")
    lose_database(d)
    assert command(d, "inspect", lost) == (
        1, "", 'hawser: pod "%s": it is not in the database of hawser-cri: "hawser rm --force" removes it\n' % lost)
    assert command(d, "rm", "-f", lost)[0] == 0
