# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_metrics.py - the metrics of hawser-cri
"""
import http.client
import os
import re
import socket
import stat

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from program import UnixHTTP, get, make  # noqa: F401, a fixture
from waiting import LONG, wait_until


def values(text):
    """Returns {name with labels: number}; checks the format."""
    found, typed = {}, set()
    for line in text.splitlines():
        if line.startswith("#"):
            typed.add(line.split()[2])
            continue
        name, number = re.fullmatch(r'(\w+(?:\{[^}]*\})?) (\S+)', line).groups()
        assert name not in found
        assert re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", name) in typed
        found[name] = float(number)
    return found


def test_idle_connections_do_not_lock_out_a_client(make, tmp_path):
    path = str(tmp_path / "metrics")
    d = make("--metrics-address", "unix:" + path).start()
    idle = [socket.socket(socket.AF_UNIX) for _ in range(300)]
    for s in idle:
        s.connect(str(d.socket))
    assert d.call("Version")[0] == 0
    found = values(get(UnixHTTP(path))[2])
    assert found["hawser_cri_idle_connections_closed_total"] >= 45 and found["hawser_cri_connections_refused_total"] == 0
    assert d.log().count("too many connections action=") == 1
    for s in idle:
        s.close()


def test_metrics_are_served_on_a_unix_socket(make, tmp_path):
    path = str(tmp_path / "metrics")
    d = make("--metrics-address", "unix:" + path).start()
    for _ in range(3):
        d.call("Version")
    d.call("CheckpointPod")
    status, kind, text = get(UnixHTTP(path))
    assert status == 200 and kind.startswith("text/plain; version=0.0.4")
    found = values(text)
    service = 'method="runtime.v1.RuntimeService/'
    assert found["hawser_cri_calls_total{" + service + 'Version",code="OK"}'] == 3
    assert found["hawser_cri_calls_total{" + service + 'CheckpointPod",code="UNIMPLEMENTED"}'] == 1
    assert found["hawser_cri_call_seconds_count{" + service + 'Version"}'] == 3
    assert found["hawser_cri_call_seconds_bucket{" + service + 'Version",le="+Inf"}'] == 3
    assert found["hawser_images"] == 0 and found["process_threads"] >= 1
    assert found["process_resident_memory_bytes"] > 1 << 20
    # process_open_fds includes the connection of the request for the metrics
    wait_until(lambda: len(os.listdir("/proc/%d/fd" % d.process.pid)) ==
               found["process_open_fds"] - 1)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert d.stop() == 0
    assert not os.path.exists(path) and not os.path.exists(d.socket)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_metrics_are_served_on_a_port_and_invalid_requests_are_refused(make):
    port = free_port()
    d = make("--metrics-address", "127.0.0.1:%d" % port).start()

    def dial():
        return http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)

    assert get(dial())[0] == 200
    assert get(dial(), "/metrics?x=1")[0] == 200
    assert get(dial(), "/")[0] == 404
    assert get(dial(), "/metricsx")[0] == 404
    assert get(dial(), method="POST")[0] == 405
    for data in (b"nonsense\r\n\r\n", b"GET /metrics\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(data)
            assert s.makefile().readline() == "HTTP/1.1 400 Bad Request\n"
    with socket.create_connection(("127.0.0.1", port)) as s:
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                s.sendall(b"x" * 1000)
            s.recv(1)
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    assert d.call("Version")[0] == 0
    for s in crowd:
        s.close()
    wait_until(lambda: get_or_none(dial) == 200)


def get_or_none(dial):
    try:
        return get(dial())[0]
    except (ConnectionError, http.client.HTTPException):
        return None


def test_a_metrics_port_that_is_in_use_is_refused(make):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        text = make("--metrics-address", address).refused()
    assert text.startswith("serve metrics at %s: " % address) and "Address already in use" in text
