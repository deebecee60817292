# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_events.py - GetContainerEvents: what happens to pods and containers, in order
"""
import queue
import re
import threading
import time

import grpc
import pytest

pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CREATED, EXITED, NODE, RUNNING, containers  # noqa: F401, a fixture
from poddaemon import NOTREADY, READY, in_threads, pods, refused  # noqa: F401, a fixture
from hawsercli import hawser
from waiting import LONG, wait_until

import cri

CREATED_EVENT, STARTED, STOPPED, DELETED = range(4)
RING = 4096
LARGE = {"x": "x" * 16384}  # makes events so large that few of them are on the way to a reader


class Reader:
    """Reads events on a connection of its own. read: whether it takes them from the connection."""

    def __init__(self, daemon, read=True):
        self.client = daemon.client()
        decode = cri.classes()["ContainerEventResponse"].FromString
        self.stream = self.client.channel.unary_stream("/runtime.v1.RuntimeService/GetContainerEvents",
                                                       response_deserializer=decode)(b"")
        self.events = queue.Queue()
        self.error = None
        self.thread = threading.Thread(target=self.follow)
        if read:
            self.thread.start()

    def follow(self):
        try:
            for event in self.stream:
                self.events.put(event)
        except grpc.RpcError as e:
            self.error = e

    def next(self, n=1):
        return [self.events.get(timeout=LONG) for _ in range(n)]

    def close(self):
        self.stream.cancel()
        if self.thread.ident:
            self.thread.join()


def reading(d):
    """The number of readers that get events."""
    return int(re.search(r"long calls\s+(\d+),", hawser("--runtime", "unix:" + d.socket, "info")[1])[1])


@pytest.fixture
def follow():
    """A function that creates a reader. It returns when the reader gets all later events."""
    readers = []

    def make(d, **more):
        before = reading(d)
        readers.append(Reader(d, **more))
        wait_until(lambda: reading(d) == before + 1, d.log)
        return readers[-1]
    yield make
    for reader in readers:
        reader.close()


def names(events):
    return [(e.container_id, e.container_event_type) for e in events]


def test_each_change_is_one_event_with_the_statuses_after_it(containers, follow):
    d = containers()
    reader = follow(d)
    pod = d.cri.pod(labels={"a": "b"})
    container = d.cri.run_container(pod)
    d.cri.stop_container(container)
    d.cri.remove_container(container)
    d.cri.stop(pod)
    d.cri.remove(pod)
    events = reader.next(8)
    assert names(events) == [(pod, CREATED_EVENT), (pod, STARTED), (container, CREATED_EVENT), (container, STARTED),
                             (container, STOPPED), (container, DELETED), (pod, STOPPED), (pod, DELETED)]
    for event in events:
        status = event.pod_sandbox_status
        assert (status.id, status.metadata.name, dict(status.labels)) == (pod, "a", {"a": "b"})
    assert [e.pod_sandbox_status.state for e in events] == [READY] * 6 + [NOTREADY] * 2
    assert [[(s.id, s.state) for s in e.containers_statuses] for e in events] == [
        [], [], [(container, CREATED)], [(container, RUNNING)], [(container, EXITED)], [], [], []]
    assert events[4].containers_statuses[0].exit_code == 137
    times = [e.created_at for e in events]
    assert times == sorted(times) and abs(times[0] / 1e9 - time.time()) < LONG
    assert reader.events.empty()


def test_a_container_that_ends_by_itself_and_a_pod_that_is_removed_while_ready_have_all_events(containers, follow):
    d = containers()
    pod = d.cri.pod()
    reader = follow(d)
    ended = d.cri.run_to_end(pod, ["/bin/true"]).id
    assert names(reader.next(3)) == [(ended, CREATED_EVENT), (ended, STARTED), (ended, STOPPED)]
    running = d.cri.run_container(pod, name="b")
    assert names(reader.next(2)) == [(running, CREATED_EVENT), (running, STARTED)]
    d.cri.remove(pod)
    events = names(reader.next(5))
    assert events[:2] == [(running, STOPPED), (pod, STOPPED)] and events[4] == (pod, DELETED)
    assert sorted(events[2:4]) == sorted([(ended, DELETED), (running, DELETED)])


def test_a_container_that_is_removed_before_its_start_has_no_started_event(containers, follow):
    d = containers()
    pod = d.cri.pod()
    reader = follow(d)
    container = d.cri.create(pod)
    d.cri.remove_container(container)
    assert names(reader.next(3)) == [(container, CREATED_EVENT), (container, STOPPED), (container, DELETED)]
    other = d.cri.create(pod, name="b")
    d.cri.stop(pod)
    assert names(reader.next(3)) == [(other, CREATED_EVENT), (other, STOPPED), (pod, STOPPED)]


def test_what_was_never_created_has_no_event(containers, follow):
    d = containers()
    pod = d.cri.pod()
    reader = follow(d)
    assert refused(d.cri.create, pod, ["/bin/missing"])[0] == "INVALID_ARGUMENT"
    d.direct("ADD.fail", "no")
    assert refused(d.cri.run, "b")[0] == "INTERNAL"
    last = d.cri.create(pod, name="last")
    assert names(reader.next(1)) == [(last, CREATED_EVENT)]


def test_a_reader_gets_the_events_since_it_reads_also_after_a_restart(containers, follow):
    d = containers()
    pod = d.cri.pod()
    d.restart()
    reader = follow(d)
    d.cri.remove(pod)
    assert names(reader.next(2)) == [(pod, STOPPED), (pod, DELETED)]


def churn(d, n, threads=4):
    """Causes 4 events for each of n pods."""
    def work(first):
        client = d.client()
        for i in range(first, n, threads):
            client.remove(client.run("p%d" % i, network=NODE, pid=NODE, ipc=NODE, annotations=LARGE))
    in_threads(*[lambda t=t: work(t) for t in range(threads)])


def test_only_a_reader_that_falls_behind_is_ended_with_the_number_of_missed_events(pods, follow):
    d = pods()
    slow, quick = follow(d, read=False), follow(d)
    churn(d, RING // 4 + 100)
    assert len(quick.next(RING + 400)) == RING + 400 and quick.error is None
    slow.thread.start()
    slow.thread.join(LONG)
    assert slow.error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    missed = re.fullmatch(r"(\d+) events were missed: list pods and containers again", slow.error.details())
    assert int(missed[1]) + slow.events.qsize() == RING + 400
    pod = d.cri.run(network=NODE, pid=NODE, ipc=NODE)
    assert names(quick.next(2)) == [(pod, CREATED_EVENT), (pod, STARTED)]
    assert reading(d) == 1
