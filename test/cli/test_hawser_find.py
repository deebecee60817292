# SPDX-License-Identifier: Apache-2.0
# Needs: no root
"""
test/cli/test_hawser_find.py - how the program hawser finds containers and pods by name and ID

How:   the runtime is a fake in Python that lists what a test needs. hawser stop shows which container was found.
"""
import json

import pytest

from fakeruntime import runtime  # noqa: F401, a fixture
from hawsercli import fields, message
from test_hawser_cli import complete

ONE, TWO, THREE = "aa11" + "0" * 60, "aa22" + "0" * 60, "bb33" + "0" * 60
POD, OTHER = "cc44" + "0" * 60, "dd55" + "0" * 60


def container(container_id, name, pod=POD, attempt=0):
    return message((1, container_id), (2, pod), (3, message((1, name), (2, attempt))))


def pod(pod_id, name, space="default", uid="1", attempt=0):
    return message((1, pod_id), (2, message((1, name), (2, uid), (3, space), (4, attempt))))


def serve(runtime, containers, pods=()):
    """Returns the list of the containers that have been stopped."""
    stopped = []

    def stop(request, context):
        stopped.append(dict(fields(request))[1].decode())
        return b""

    runtime.methods["ListContainers"] = lambda request, context: message(*((1, c) for c in containers))
    runtime.methods["ListPodSandbox"] = lambda request, context: message(*((1, p) for p in pods))
    runtime.methods["StopContainer"] = stop
    return stopped


@pytest.mark.parametrize("word, expected", [
    (ONE, ONE), ("web", ONE), ("aa1", ONE), ("b", THREE), ("aa22", THREE),  # its name is the prefix of another's ID
    ("shop/web", ONE), ("default/shop/web", ONE), ("cc4/web", ONE), (POD + "/web", ONE),
])
def test_a_container_is_found_by_id_name_prefix_or_pod_and_name(runtime, word, expected):
    stopped = serve(runtime, [container(ONE, "web"), container(TWO, "db"), container(THREE, "aa22")],
                    [pod(POD, "shop")])
    assert runtime.run("stop", word) == (0, word + "\n", "")
    assert stopped == [expected]


@pytest.mark.parametrize("word, error, hint", [
    ("none", 'container "none": not found', 'run "hawser ps -a" for a list of containers'),
    ("", 'container "": not found', 'run "hawser ps -a" for a list of containers'),
    ("test/shop/none", 'container "test/shop/none": not found', 'run "hawser ps -a" for a list of containers'),
    ("none/web", 'container "none/web": pod "none": not found', 'run "hawser pods" for a list of pods'),
    ("aa", 'container "aa": ambiguous: it matches aa1100000000, aa2200000000',
     "use more of the ID, NAMESPACE/POD for a pod, or POD/NAME for a container"),
    ("db", 'container "db": ambiguous: it matches aa2200000000, bb3300000000',
     "use more of the ID, NAMESPACE/POD for a pod, or POD/NAME for a container"),
    ("shop/db", 'container "shop/db": pod "shop": ambiguous: it matches cc4400000000, dd5500000000',
     "use more of the ID, NAMESPACE/POD for a pod, or POD/NAME for a container"),
])
def test_a_word_that_matches_no_container_or_several_is_refused(runtime, word, error, hint):
    stopped = serve(runtime, [container(ONE, "web"), container(TWO, "db"), container(THREE, "db", OTHER)],
                    [pod(POD, "shop"), pod(OTHER, "shop", "test")])
    assert runtime.run("stop", word) == (1, "", "hawser: %s\nhint: %s\n" % (error, hint))
    assert stopped == []


def test_an_ambiguous_name_lists_at_most_four_ids(runtime):
    serve(runtime, [container("%064x" % i, "web", "pod%d" % i) for i in range(9)])
    assert "it matches %s and 5 more\n" % ", ".join(["0" * 12] * 4) in runtime.run("stop", "web")[2]


def test_a_name_with_a_pod_is_not_ambiguous(runtime):
    stopped = serve(runtime, [container(ONE, "db"), container(TWO, "db", OTHER)],
                    [pod(POD, "shop"), pod(OTHER, "shop", "test")])
    words = ["default/shop/db", "test/shop/db", "dd/db"]
    assert runtime.run("stop", *words) == (0, "".join(w + "\n" for w in words), "")
    assert stopped == [ONE, TWO, TWO]


def test_a_name_means_the_latest_attempt_of_a_container_and_of_a_pod(runtime):
    stopped = serve(runtime,
                    [container(ONE, "web", attempt=1), container(TWO, "web", attempt=3),
                     container(THREE, "web", OTHER, attempt=2)],
                    [pod(POD, "shop", attempt=7), pod(OTHER, "shop", attempt=6)])
    status, _, errors = runtime.run("stop", "web")
    assert status == 1 and "it matches aa2200000000, bb3300000000\n" in errors
    assert runtime.run("stop", "shop/web", ONE[:4])[0] == 0
    assert stopped == [TWO, ONE]


def test_the_other_containers_are_stopped_after_an_error(runtime):
    stopped = serve(runtime, [container(ONE, "web"), container(TWO, "db")])
    status, text, errors = runtime.run("stop", "web", "none", "db")
    assert (status, text) == (1, "web\ndb\n") and 'hawser: container "none": not found\n' in errors
    assert stopped == [ONE, TWO]
    status, text, _ = runtime.run("--json", "stop", "web", "none")
    assert status == 1 and json.loads(text) == {"stopped": [ONE]}


def test_control_characters_of_names_and_ids_are_not_printed(runtime):
    serve(runtime, [container("\x1b[2Jaa", "web"), container("\x1b[2Jbb", "web", OTHER)])
    status, text, errors = runtime.run("stop", "web", "\x1b[1m")
    assert status == 1 and "\x1b" not in text + errors


def test_names_are_completed_and_ids_where_names_are_ambiguous(runtime):
    serve(runtime, [container(ONE, "web", attempt=1), container(TWO, "db"), container(THREE, "db", OTHER),
                    container("ee" * 32, "web")])
    given = ["--runtime", "unix:" + runtime.path]
    assert complete(*given, "stop", "") == ["web", TWO, THREE]
    assert complete(*given, "stop", "web", "bb") == [THREE]
    assert complete(*given, "exec", "w") == ["web"]
    assert complete(*given, "exec", "web", "") == complete(*given, "exec", "web", "-") == []
