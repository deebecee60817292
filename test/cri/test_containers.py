# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers.py - containers of hawser-cri: their life, lists and status
"""
import pathlib
import time

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import (CONTAINER, CREATED, EXITED, IMAGE, POD, RUNNING, SERVER, containers)  # noqa: F401, a fixture
from poddaemon import in_threads, refused
from waiting import wait_until

SIGKILL = 9


def is_alive(pid):
    return pathlib.Path("/proc/%d" % pid).exists()


# ---- life ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("pid", [POD, CONTAINER])
def test_a_container_is_created_started_stopped_and_removed(containers, pid):
    d = containers()
    pod = d.cri.pod(pid=pid)
    container = d.cri.create(pod, SERVER, pid=pid)
    assert len(container) == 64 and d.cri.container(container).state == CREATED
    d.cri.start_container(container)
    d.cri.wait_for_line(container, "ready")
    main = d.main(container)
    assert d.cri.container(container).state == RUNNING and is_alive(main)
    d.cri.stop_container(container, 60)
    status = d.cri.container(container)
    assert (status.state, status.exit_code, status.reason) == (EXITED, 0, "Completed") and not is_alive(main)
    d.cri.remove_container(container)
    assert d.cri.container_ids() == []
    assert refused(d.cri.container, container) == ("NOT_FOUND", "no container " + container)


def test_containers_are_removed_in_every_state(containers):
    d = containers()
    pod = d.cri.pod()
    created = d.cri.create(pod, name="created")
    running = d.cri.run_container(pod, name="running")
    exited = d.cri.run_to_end(pod, ["/bin/true"], name="exited").id
    for container in (created, running, exited):
        d.cri.remove_container(container)
        assert refused(d.cri.container, container)[0] == "NOT_FOUND"
    assert d.cri.container_ids() == [] and not d.container_rows()
    assert not list((d.state / "containers").iterdir()) and not list((d.dir / "root/containers").iterdir())


def test_stop_and_remove_may_be_repeated_and_ignore_unknown_containers(containers):
    d = containers()
    container = d.cri.run_server(d.cri.pod())
    for _ in range(2):
        d.cri.stop_container(container, 60)
    for _ in range(2):
        d.cri.remove_container(container)
        d.cri.stop_container(container)
    d.cri.stop_container("0123")
    d.cri.remove_container("0123")


def test_calls_without_an_id_or_with_an_unknown_one_are_refused(containers):
    d = containers()
    for method in ("StartContainer", "StopContainer", "RemoveContainer", "ContainerStatus", "ReopenContainerLog",
                   "ExecSync"):
        assert refused(d.cri.call, method) == ("INVALID_ARGUMENT", "container_id is missing")
    for method, more in (("StartContainer", {}), ("ContainerStatus", {}), ("ReopenContainerLog", {}),
                         ("ExecSync", {"cmd": ["true"]})):
        assert refused(d.cri.call, method, container_id="0123", **more) == ("NOT_FOUND", "no container 0123")


def test_an_id_may_be_shortened_if_it_is_unambiguous(containers):
    d = containers()
    container = d.cri.create(d.cri.pod())
    short = container[:12]
    d.cri.start_container(short)
    assert d.cri.container(short).id == container and d.cri.container_ids(id=short) == [container]
    assert d.cri.sh(short, "echo hi") == "hi\n"
    d.cri.stop_container(short)
    d.cri.remove_container(short)
    assert d.cri.container_ids() == []


def test_only_a_created_container_can_be_started(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    assert refused(d.cri.start_container, container) == (
        "FAILED_PRECONDITION", "container %s is running, not created" % container)
    d.cri.stop_container(container)
    assert refused(d.cri.start_container, container) == (
        "FAILED_PRECONDITION", "container %s is exited, not created" % container)


def test_a_stop_of_a_created_container_changes_nothing(containers):
    d = containers()
    container = d.cri.create(d.cri.pod(), SERVER)
    d.cri.stop_container(container, 5)
    assert d.cri.container(container).state == CREATED
    d.cri.start_container(container)
    assert d.cri.container(container).state == RUNNING


def test_a_stop_of_the_pod_kills_its_containers_and_a_removal_removes_them(containers):
    d = containers()
    pod, other = d.cri.pod("a"), d.cri.pod("b")
    created, running = d.cri.create(pod, name="one"), d.cri.run_container(pod, name="two")
    survivor = d.cri.run_container(other)
    d.cri.stop(pod)
    for container in (created, running):
        status = d.cri.container(container)
        assert status.state == EXITED and status.exit_code == 128 + SIGKILL
    d.cri.remove(pod)
    assert d.cri.container_ids() == [survivor] and d.cri.container(survivor).state == RUNNING


def test_a_create_needs_a_ready_pod(containers):
    d = containers()
    assert refused(d.cri.create, "0123") == ("NOT_FOUND", "no pod sandbox 0123")
    pod = d.cri.pod()
    d.cri.stop(pod)
    assert refused(d.cri.create, pod) == ("FAILED_PRECONDITION", "pod sandbox %s is not ready" % pod)


# ---- creates at the same time ----------------------------------------------------------------------

def test_equal_creates_get_the_same_container(containers):
    d = containers()
    pod = d.cri.pod()
    ids = in_threads(*[lambda c=d.client(): c.create(pod) for _ in range(8)])
    assert len(set(ids)) == 1 and d.cri.container_ids() == [ids[0]]
    d.cri.start_container(ids[0])
    assert d.cri.create(pod) == ids[0]


def test_a_different_create_with_the_same_name_is_refused(containers):
    d = containers()
    pod = d.cri.pod()
    container = d.cri.create(pod)
    code, text = refused(d.cri.create, pod, ["/bin/true"])
    assert code == "ALREADY_EXISTS" and text == (
        "container main, attempt 0 of pod %s exists with another configuration: %s" % (pod, container))
    assert d.cri.create(pod, ["/bin/true"], attempt=1) != container
    d.cri.remove_container(container)
    assert d.cri.create(pod, ["/bin/true"])


def test_a_create_whose_client_has_left_is_found_by_the_next_one(containers):
    d = containers()
    pod = d.cri.pod()
    d.client().start_create(pod).cancel()
    container = d.cri.create(pod)
    assert d.cri.container_ids() == [container]


def test_a_failed_create_leaves_nothing_and_may_be_repeated(containers):
    d = containers()
    pod = d.cri.pod()
    for _ in range(2):
        code, text = refused(d.cri.create, pod, ["/bin/missing"])
        assert code == "INVALID_ARGUMENT" and "/bin/missing" in text, (code, text)
    assert d.cri.container_ids() == [] and not list((d.state / "containers").iterdir())
    assert not list(d.logs.glob("**/*.log"))


def test_creates_during_the_stop_of_their_pod_fail_or_are_killed(containers):
    d = containers()
    for i in range(5):
        pod = d.cri.pod("p%d" % i)
        creates = [d.client().start_create(pod, name="c%d" % n) for n in range(4)]
        d.cri.stop(pod)
        for create in creates:
            if create.exception():
                assert create.code().name in ("FAILED_PRECONDITION", "ABORTED", "CANCELLED"), create.exception()
            else:
                assert d.cri.container(create.result().container_id).state == EXITED
        d.cri.remove(pod)
        assert d.cri.container_ids() == []


# ---- lists -----------------------------------------------------------------------------------------

def test_lists_are_filtered_by_id_state_pod_and_labels(containers):
    d = containers()
    pod, other = d.cri.pod("a"), d.cri.pod("b")
    one = d.cri.create(pod, name="one", labels={"app": "x", "n": "1"})
    two = d.cri.run_container(pod, name="two", labels={"app": "x", "n": "2"})
    three = d.cri.run_to_end(other, ["/bin/true"], name="three").id
    ids = lambda **f: set(d.cri.container_ids(**f))  # noqa: E731
    assert ids() == {one, two, three}
    assert ids(id=one) == ids(id=one[:10]) == {one} and ids(id="xyz") == set()
    assert ids(pod_sandbox_id=pod) == ids(pod_sandbox_id=pod[:10]) == {one, two}
    assert ids(pod_sandbox_id=other) == {three} and ids(pod_sandbox_id="xyz") == set()
    assert ids(label_selector={"app": "x"}) == {one, two} and ids(label_selector={"app": "x", "n": "2"}) == {two}
    assert [ids(state={"state": s}) for s in (CREATED, RUNNING, EXITED)] == [{one}, {two}, {three}]
    assert ids(state={"state": RUNNING}, pod_sandbox_id=other) == set()
    assert ids(id=two, label_selector={"n": "1"}) == set()


def test_a_stream_has_every_container_once(containers):
    d = containers()
    pod = d.cri.pod()
    stream = lambda **f: [[c.id for c in m.containers] for m in d.cri.method(  # noqa: E731
        "StreamContainers", stream=True)(d.cri.request("StreamContainers", **f), timeout=60)]
    assert stream() == []
    ids = [d.cri.create(pod, name="c%d" % i, labels={"n": str(i)}) for i in range(3)]
    (batch,) = stream()
    assert sorted(batch) == sorted(ids) and stream(filter={"label_selector": {"n": "1"}}) == [[ids[1]]]
    assert stream(filter={"id": "none"}) == []


def test_a_list_has_all_fields_of_a_container(containers):
    d = containers()
    pod = d.cri.pod()
    labels, annotations = {"a": "b", "": "empty key"}, {"io.kubernetes.container.hash": "x", "two": "1\n2"}
    container = d.cri.create(pod, attempt=3, labels=labels, annotations=annotations)
    image = d.cri.call("ImageStatus", image={"image": IMAGE}).image
    (seen,) = d.cri.containers()
    status = d.cri.container(container)
    for c in (seen, status):
        assert c.id == container and (c.metadata.name, c.metadata.attempt) == ("main", 3)
        assert c.image.image == IMAGE and c.image_id == image.id and c.image_ref
        assert c.state == CREATED and abs(c.created_at - time.time_ns()) < 60 * 10**9
        assert dict(c.labels) == labels and dict(c.annotations) == annotations
    assert seen.pod_sandbox_id == pod and seen.image_ref == status.image_ref
    assert image.id == seen.image_ref or seen.image_ref in image.repo_digests


def ambiguous(create):
    """Create objects until two IDs begin with the same digit. Returns the digit."""
    ids = []
    while not (same := {i[0] for i in ids if i[0] == ids[-1][0] and i != ids[-1]}):
        ids.append(create(len(ids)))
    return same.pop()


def test_an_ambiguous_prefix_of_an_id_is_refused(containers):
    d = containers()
    pod = d.cri.pod()
    digit = ambiguous(lambda n: d.cri.create(pod, name="c%d" % n))
    error = ("INVALID_ARGUMENT", "several IDs begin with " + digit)
    for call in d.cri.start_container, d.cri.stop_container, d.cri.remove_container:
        assert refused(call, digit) == error
    digit = ambiguous(lambda n: d.cri.pod("p%d" % n))
    error = ("INVALID_ARGUMENT", "several IDs begin with " + digit)
    for call in d.cri.create, d.cri.stop, d.cri.remove:
        assert refused(call, digit) == error


def test_a_removal_whose_row_could_not_be_deleted_is_finished_in_the_background(containers):
    d = containers()
    container = d.cri.run_to_end(d.cri.pod(), ["/bin/true"]).id
    with d.database() as db:
        db.execute("CREATE TRIGGER refuse BEFORE DELETE ON containers BEGIN SELECT RAISE(ABORT, 'not now'); END")
        assert "not now" in refused(d.cri.remove_container, container)[1]
        db.execute("DROP TRIGGER refuse")
    wait_until(lambda: not d.container_rows(), d.log)
    assert d.cri.container_ids() == []
