# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_pods_concurrent.py - many clients at once: the same pods, their containers, lists, events and metrics
"""
import random
import socket
import threading

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import POD, containers  # noqa: F401, a fixture
from deadmount import dead  # noqa: F401, a fixture
from poddaemon import in_threads, pods  # noqa: F401, a fixture
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame, request_headers
from program import UnixHTTP, get
from test_cri_slots import long_calls
from waiting import LONG, wait_until

CLIENTS = 8
# What an operation may answer if another client stops or removes the same pod meanwhile
ALLOWED = {"RunPodSandbox": {"ALREADY_EXISTS", "CANCELLED"}, "PodSandboxStatus": {"NOT_FOUND"},
           "CreateContainer": {"NOT_FOUND", "FAILED_PRECONDITION", "CANCELLED", "ALREADY_EXISTS"},
           "StartContainer": {"NOT_FOUND", "FAILED_PRECONDITION", "INTERNAL"},
           "ContainerStatus": {"NOT_FOUND"}, "ExecSync": {"NOT_FOUND", "FAILED_PRECONDITION", "INTERNAL"}}


def attempt(method, call, *words, **more):
    """The answer of a call; None if it fails with a status that is allowed."""
    try:
        return call(*words, **more)
    except grpc.RpcError as e:
        assert e.code().name in ALLOWED[method], "%s: %s" % (method, e.details())
        assert "reserved" not in e.details()
        return None


class Readers:
    """Threads that read everything until the block ends: lists, verbose status, events, metrics."""

    def __init__(self, daemon, metrics):
        self.daemon, self.metrics = daemon, metrics
        self.ended = threading.Event()
        self.errors, self.rounds = [], 0

    def read(self):
        client = self.daemon.client()
        try:
            while not self.ended.is_set():
                for pod in client.list():
                    status = attempt("PodSandboxStatus", client.call, "PodSandboxStatus", pod_sandbox_id=pod.id,
                                     verbose=True)
                    assert not status or status.status.metadata.name
                client.call("ListContainers")
                assert client.call("Status").status.conditions[0].status
                assert get(UnixHTTP(self.metrics))[0] == 200
                self.rounds += 1
        except Exception as e:
            self.errors.append(e)

    def follow(self, events):
        try:
            for _ in events:
                pass
        except grpc.RpcError:
            pass

    def __enter__(self):
        client = self.daemon.client()
        follow = client.channel.unary_stream("/runtime.v1.RuntimeService/GetContainerEvents")
        self.events = follow(b"")
        self.threads = [threading.Thread(target=self.follow, args=(self.events,))]
        self.threads += [threading.Thread(target=self.read) for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def __exit__(self, *error):
        self.ended.set()
        self.events.cancel()
        for thread in self.threads:
            thread.join()
        assert not self.errors and self.rounds > 0, self.errors


def test_clients_create_and_remove_the_same_pods(pods, tmp_path):
    d = pods("--metrics-address", "unix:%s" % (tmp_path / "metrics"))

    def work(seed):
        client, choose = d.client(), random.Random(seed)
        for _ in range(6):
            name = "p%d" % choose.randrange(3)
            made = attempt("RunPodSandbox", client.run, name, pid=POD if choose.random() < 0.5 else 1)
            for pod in client.list():
                if made == pod.id or choose.random() < 0.3:
                    attempt("StopPodSandbox", client.stop, pod.id)
                    client.remove(pod.id)

    with Readers(d, str(tmp_path / "metrics")):
        in_threads(*[lambda n=n: work(n) for n in range(CLIENTS)])


def test_clients_use_containers_of_pods_that_others_stop(containers, tmp_path):
    d = containers("--metrics-address", "unix:%s" % (tmp_path / "metrics"))
    made = []

    def work(seed):
        client, choose = d.client(), random.Random(seed)
        for i in range(3):
            pod = attempt("RunPodSandbox", client.pod, "p%d" % choose.randrange(2))
            if not pod:
                continue
            container = attempt("CreateContainer", client.create, pod, name="c%d" % choose.randrange(2))
            if container:
                made.append(container)
                attempt("StartContainer", client.start_container, container)
                attempt("ExecSync", client.exec_sync, container, "/bin/true")
                attempt("ContainerStatus", client.container, container)
                client.stop_container(container)
                client.remove_container(container)
            if choose.random() < 0.5:
                client.stop(pod)
                client.remove(pod)

    with Readers(d, str(tmp_path / "metrics")):
        in_threads(*[lambda n=n: work(n) for n in range(CLIENTS)])
    assert made


def test_streams_that_are_not_read_delay_no_list(pods):
    d = pods()
    # the response has two messages, the first of which is larger than what the daemon keeps for a client
    ids = [d.cri.run("p%d" % i, network=2, ipc=2, annotations={"a": "x" * 4096}) for i in range(201)]
    streams = range(1, 17, 2)  # more than the daemon has threads for short calls
    headers = request_headers("/runtime.v1.RuntimeService/StreamPodSandboxes")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(d.socket)
        client.sendall(PREFACE + frame(SETTINGS, 0, 0, b"") + b"".join(
            frame(HEADERS, END_HEADERS, n, headers) + frame(DATA, END_STREAM, n, bytes(5)) for n in streams))
        wait_until(lambda: long_calls(d) == len(streams))
        assert sorted(d.cri.ids()) == sorted(ids) and list(d.cri.call("ListContainers").containers) == []


@pytest.mark.parametrize("method,in_use", [("hawser.v1.Networks/List", True),
                                           ("runtime.v1.RuntimeService/UpdateRuntimeConfig", False)])
def test_calls_that_wait_for_a_file_system_delay_no_list(pods, dead, method, in_use):
    d = pods(network=in_use, start=False)
    d.command += ["--cni-bin-dir", "%s:%s" % (d.bin, dead.path), "--cni-conf-template", dead.path / "template"]
    if in_use:  # else the template would be ignored
        d.write_network({"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "none"}]}, "50-other.conflist")
    d.start()
    request = d.cri.request("UpdateRuntimeConfig", runtime_config={"network_config": {"pod_cidr": "10.7.0.0/24"}})
    call = d.cri.channel.unary_unary("/" + method)
    calls = [call.future(b"" if in_use else request.SerializeToString(), timeout=LONG) for _ in range(8)]
    wait_until(lambda: dead.waiting and long_calls(d) == len(calls))
    assert d.cri.ids() == [] and d.cri.call("Status").status.conditions[0].status
    dead.end()
    for call in calls:
        call.exception()  # waits for its end
