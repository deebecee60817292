# SPDX-License-Identifier: Apache-2.0
# Needs: no root
"""
test/cri/test_rpc.py - src/rpc against Google's gRPC (python3-grpcio), as server and as client

What:  our server is called by grpcio, then our client calls a grpcio server; then clients that send
       malformed or excessive frames to our server.
How:   messages are plain bytes on both sides, so no protobuf is involved. Our client and server are
       the programs in test/rpc. A report of a sanitizer changes the server's exit status.
"""
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest

from http2 import PREFACE, frame, request_headers
from waiting import LONG, wait_until, wait_until_steady

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")

PROGRAMS = pathlib.Path(os.environ["HAWSER_BUILD"]) / "test/rpc"
SERVICE = "/sample.Sample/"
FUZZ_SECONDS = 3


# ---- our server, grpcio clients ------------------------------------------------------------

class Server:
    def __init__(self, path, *arguments, prefix=()):
        self.path = path
        self.process = subprocess.Popen([*prefix, PROGRAMS / "rpc-serve", path, *arguments],
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def stop(self):
        """Drains the server. Returns its exit status."""
        self.process.terminate()
        status = self.process.wait(LONG)
        self.process.stdout.close()
        return status

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def processor_seconds(self):
        stat = pathlib.Path("/proc/%d/stat" % self.process.pid).read_text().rpartition(")")[2]
        return sum(map(int, stat.split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def threads(self):
        return len(os.listdir("/proc/%d/task" % self.process.pid))


@pytest.fixture
def server(tmp_path):
    s = Server(str(tmp_path / "sock"))
    yield s
    if s.process.returncode is None:
        assert s.stop() == 0


@pytest.fixture
def channel(server):
    with dial(server) as c:
        yield c


def dial(server, **options):
    given = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1),
             ("grpc.max_send_message_length", -1)]
    return grpc.insecure_channel("unix:" + server.path, options=given + list(options.items()))


def unary(channel, method, request=b"", timeout=LONG, **more):
    return channel.unary_unary(SERVICE + method)(request, timeout=timeout, **more)


def error_of(call, *arguments, **more):
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, **more)
    return caught.value.code(), caught.value.details()


def test_a_grpcio_client_gets_responses(channel):
    assert unary(channel, "Echo", b"hello \x00\xff") == b"hello \x00\xff"
    assert unary(channel, "Echo", b"") == b""
    assert unary(channel, "Sleep", b"1") == b"slept"


def test_a_grpcio_client_gets_the_code_and_text_of_an_error(channel):
    assert error_of(unary, channel, "Fail", "5 keine \"größe\" 100 %\n".encode()) == (
        grpc.StatusCode.NOT_FOUND, "keine \"größe\" 100 %\n")
    for code in grpc.StatusCode:
        number = code.value[0]
        if number:
            assert error_of(unary, channel, "Fail", b"%d x" % number) == (code, "x")


def test_a_grpcio_client_gets_unimplemented_for_an_unknown_method(channel):
    code, text = error_of(unary, channel, "Nonsense")
    assert code == grpc.StatusCode.UNIMPLEMENTED
    assert text == "unknown method /sample.Sample/Nonsense"


def test_a_grpcio_client_can_send_messages_up_to_the_limit(channel):
    large = os.urandom(16 << 20)
    assert unary(channel, "Echo", large) == large
    code, text = error_of(unary, channel, "Echo", large + b"x")
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert text == "message too large: 16777217 bytes, limit 16777216"
    assert unary(channel, "Echo", b"after") == b"after"


def test_a_grpcio_client_streams_in_both_directions(channel):
    count = channel.unary_stream(SERVICE + "Count")
    assert [len(m) for m in count(b"50 200000", timeout=LONG)] == [200000] * 50
    total = channel.stream_unary(SERVICE + "Sum")
    assert total((b"y" * 100000 for _ in range(100)), timeout=LONG) == b"100 10000000"
    chat = channel.stream_stream(SERVICE + "Chat")
    assert list(chat((b"%d" % i for i in range(100)), timeout=LONG)) == [
        b"%d" % i for i in range(100)]
    assert list(count(b"0 0", timeout=LONG)) == []


def test_a_compressed_message_of_a_grpcio_client_is_refused(server):
    """As compression.md requires: UNIMPLEMENTED, and the encodings that are supported."""
    with dial(server) as c:
        code, text = error_of(unary, c, "Echo", b"x" * 10000,
                              compression=grpc.Compression.Gzip)
        assert code == grpc.StatusCode.UNIMPLEMENTED and '"gzip"' in text
        assert unary(c, "Echo", b"x") == b"x"


def test_a_call_of_a_grpcio_client_ends_at_its_deadline(channel):
    assert error_of(unary, channel, "Sleep", b"2000000",
                    timeout=0.2)[0] == grpc.StatusCode.DEADLINE_EXCEEDED


def test_handlers_end_when_a_grpcio_client_cancels_its_calls(channel, server):
    unary(channel, "Sleep", b"1")  # TSan starts a thread of its own when the first handler starts
    before = wait_until_steady(server.threads)
    calls = [channel.unary_unary(SERVICE + "Sleep").future(b"2000000", timeout=LONG)
             for _ in range(20)]
    wait_until(lambda: server.threads() >= before + 20)
    for call in calls:
        call.cancel()
    wait_until(lambda: server.threads() <= before)
    assert unary(channel, "Echo", b"x") == b"x"


def test_many_calls_of_grpcio_client_threads_succeed(channel):
    """100 sleeping calls and 2000 short ones on the same connection."""
    asleep = [channel.unary_unary(SERVICE + "Sleep").future(b"2000000", timeout=LONG)
              for _ in range(100)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        texts = [b"%d" % i for i in range(2000)]
        assert list(pool.map(lambda t: unary(channel, "Echo", t), texts)) == texts
    for call in asleep:
        call.cancel()


def test_a_call_is_refused_while_the_maximum_number_of_long_calls_runs(tmp_path):
    s = Server(str(tmp_path / "capped"), "3")
    with dial(s) as c:
        endless = [c.unary_stream(SERVICE + "Count")(b"1000000000 1000", timeout=LONG)
                   for _ in range(3)]
        assert [len(next(answers)) for answers in endless] == [1000] * 3
        assert error_or_none(c) == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert unary(c, "Echo", b"x") == b"x"
        for answers in endless:
            answers.cancel()
        wait_until(lambda: error_or_none(c) is None)
    assert s.stop() == 0


def error_or_none(channel):
    try:
        unary(channel, "Sleep", b"0")
    except grpc.RpcError as e:
        return e.code()
    return None


def test_frequent_keepalive_pings_do_not_close_the_connection(server):
    """Frequent pings do not end the connection."""
    options = {"grpc.keepalive_time_ms": 20, "grpc.keepalive_timeout_ms": 1000 * LONG,
               "grpc.http2.max_pings_without_data": 0,
               "grpc.keepalive_permit_without_calls": 1}
    with dial(server, **options) as c:
        assert unary(c, "Sleep", b"500") == b"slept"


def test_a_call_of_a_grpcio_client_completes_during_a_drain(server, channel):
    call = channel.unary_unary(SERVICE + "Sleep").future(b"300", timeout=LONG)
    wait_until(lambda: server.threads() > 1)
    unary(channel, "Echo", b"x")
    assert server.stop() == 0
    assert call.result(LONG) == b"slept"


def test_a_server_that_ran_out_of_file_descriptors_recovers(tmp_path):
    """Connections that cannot be accepted wait, without a busy loop in the server."""
    s = Server(str(tmp_path / "poor"), prefix=["prlimit", "--nofile=20"])
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for c in crowd:
        c.connect(s.path)
    wait_until(lambda: s.descriptors() == 20)
    used = s.processor_seconds()
    time.sleep(0.5)  # the interval of the measurement
    assert s.processor_seconds() - used < 0.2
    for c in crowd:
        c.close()
    with dial(s) as channel:
        assert unary(channel, "Echo", b"x") == b"x"
    assert s.stop() == 0


@pytest.mark.skipif(not shutil.which("h2load"), reason="nghttp2-client is not installed")
@pytest.mark.parametrize("method", ["Now", "Echo"])
def test_every_call_of_h2load_completes(server, tmp_path, method):
    (tmp_path / "body").write_bytes(bytes(5))
    done = subprocess.run(["h2load", "-n", "10000", "-c", "16", "-m", "64", "-d", tmp_path / "body",
                           "-H", "content-type: application/grpc", "-H", "te: trailers",
                           "-B", "unix:" + server.path, "http://localhost" + SERVICE + method],
                          stdout=subprocess.PIPE, text=True, timeout=LONG, check=True)
    assert re.search(r"10000 succeeded, 0 failed, 0 errored, 0 timeout", done.stdout), done.stdout


# ---- grpcio server, our client -------------------------------------------------------------

class Sample(grpc.GenericRpcHandler):
    """The sample service, implemented with grpcio."""

    def service(self, details):
        kinds = {"Echo": grpc.unary_unary_rpc_method_handler(self.echo),
                 "Fail": grpc.unary_unary_rpc_method_handler(self.fail),
                 "Sleep": grpc.unary_unary_rpc_method_handler(self.sleep),
                 "Left": grpc.unary_unary_rpc_method_handler(self.left),
                 "Count": grpc.unary_stream_rpc_method_handler(self.count),
                 "Sum": grpc.stream_unary_rpc_method_handler(self.sum)}
        return kinds.get(details.method.rpartition("/")[2])

    def echo(self, request, context):
        return request

    def left(self, request, context):
        return b"%d" % round(context.time_remaining())

    def fail(self, request, context):
        code, _, text = request.decode().partition(" ")
        context.abort(next(c for c in grpc.StatusCode if c.value[0] == int(code)), text)

    def sleep(self, request, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait(LONG)
        return b""

    def count(self, request, context):
        n, size = map(int, request.split())
        for _ in range(n):
            yield b"x" * size

    def sum(self, requests, context):
        sizes = [len(r) for r in requests]
        return b"%d %d" % (len(sizes), sum(sizes))


@pytest.fixture
def their_server(tmp_path):
    path = str(tmp_path / "theirs")
    s = grpc.server(concurrent.futures.ThreadPoolExecutor(4), [Sample()],
                    options=[("grpc.max_receive_message_length", -1),
                             ("grpc.max_send_message_length", -1)])
    s.add_insecure_port("unix:" + path)
    s.start()
    yield path
    s.stop(None).wait(LONG)


def call(path, method, *messages, ms=1000 * LONG):
    done = subprocess.run([PROGRAMS / "rpc-call", path, SERVICE + method, str(ms), *messages],
                          stdout=subprocess.PIPE, text=True, timeout=2 * LONG)
    return done.returncode, done.stdout


def test_our_client_gets_responses_of_a_grpcio_server(their_server):
    assert call(their_server, "Echo", "hello") == (0, "hello\n")
    assert call(their_server, "Echo", "@16777216") == (0, "@16777216\n")


def test_our_client_gets_the_code_and_text_of_an_error(their_server):
    assert call(their_server, "Fail", "5 keine \"größe\" 100 %") == (
        1, "NOT_FOUND keine \"größe\" 100 %\n")
    status, text = call(their_server, "Nonsense", "")
    assert status == 1 and text.startswith("UNIMPLEMENTED ")


def test_our_client_streams_with_a_grpcio_server(their_server):
    assert call(their_server, "Count", "40 200000") == (0, "@200000\n" * 40)
    assert call(their_server, "Sum", *["@100000"] * 100) == (0, "100 10000000\n")
    status, text = call(their_server, "Count", "2 17000000")
    assert status == 1 and text.startswith("RESOURCE_EXHAUSTED message too large: 17000000 bytes")


def test_a_grpcio_server_receives_the_deadline_of_our_client(their_server):
    status, text = call(their_server, "Left", "", ms=1000000)
    assert status == 0 and 1000 - LONG < int(text) <= 1000
    status, text = call(their_server, "Sleep", "", ms=200)  # the error comes from the client or the server, whichever is first
    assert (status, text.lower()) == (1, "deadline_exceeded deadline exceeded\n")


def test_our_client_reports_a_missing_socket(tmp_path):
    status, text = call(str(tmp_path / "missing"), "Echo", "x")
    assert status == 1 and text.startswith("INTERNAL connect to ")


# ---- malformed and excessive frames --------------------------------------------------------

def conversation(r):
    """Frames of a client: calls, and frames that interfere with them."""
    out = [frame(4, 0, 0, b"")]
    for i in range(r.randint(1, 8)):
        stream = 2 * i + 1
        method = r.choice(["Echo", "Sleep", "Count", "Sum", "Chat", "Fail", "None"])
        text = r.choice([b"5 x", b"100 100000", b"1", b"x" * r.randint(0, 3000)])
        message = b"\0" + struct.pack(">I", len(text)) + text
        out.append(frame(1, 4, stream, request_headers(SERVICE + method)))
        out.append(frame(0, r.randint(0, 1), stream, message[:r.choice([len(message), 3, 7])]))
        out.append(r.choice([b"", frame(3, 0, stream, struct.pack(">I", 8)),
                             frame(6, 0, 0, b"p" * 8),
                             frame(8, 0, stream, struct.pack(">I", r.getrandbits(31))),
                             frame(4, 0, 0, struct.pack(">HI", r.randint(1, 6), r.getrandbits(31))),
                             frame(7, 0, 0, bytes(8)), frame(9, 4, stream, b"")]))
    return b"".join(out)


def damaged(r, data):
    data = bytearray(data)
    for _ in range(r.choice([0, 1, 1, 3, 20])):
        at = r.randrange(len(data))
        how = r.randrange(3)
        if how == 0:
            data[at] ^= 1 << r.randrange(8)
        elif how == 1:
            del data[at:at + r.randint(1, 20)]
        else:
            data[at:at] = r.randbytes(r.randint(1, 20))
        data = data or bytearray(b"x")
    return bytes(data)


def send_frames(path, data, r):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(0.02)
        try:
            s.connect(path)
            s.sendall(PREFACE + data if r.random() < 0.95 else data)
            if r.random() < 0.5:
                s.recv(1 << 16)
        except OSError:
            pass  # the server may close the connection


def test_malformed_frames_do_not_harm_other_clients(server, channel):
    """The server continues to work. The assertion message contains the seed that failed."""
    unary(channel, "Echo", b"x")
    descriptors = server.descriptors()
    end = time.monotonic() + FUZZ_SECONDS
    seed = 0
    while time.monotonic() < end:
        seed += 1
        r = random.Random(seed)
        send_frames(server.path, damaged(r, conversation(r)), r)
        assert server.process.poll() is None, "seed %d killed the server" % seed
        if seed % 50 == 0:
            assert unary(channel, "Echo", b"alive") == b"alive", seed
    wait_until(lambda: server.descriptors() == descriptors)
    assert unary(channel, "Echo", b"alive") == b"alive"
    assert seed > 20


def test_a_flood_of_resets_closes_the_connection(server, channel):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(LONG)
        s.connect(server.path)
        s.sendall(PREFACE + frame(4, 0, 0, b""))
        try:
            for i in range(5000):
                s.sendall(frame(1, 5, 2 * i + 1, request_headers(SERVICE + "Echo"))
                          + frame(3, 0, 2 * i + 1, struct.pack(">I", 8)))
            while s.recv(1 << 16):
                pass
        except ConnectionError:
            pass
    assert unary(channel, "Echo", b"x") == b"x"


def test_the_server_stops_reading_from_a_client_that_does_not_read(server, channel):
    """Responses to refused calls accumulate for such a client, so the server stops reading."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(2)
        s.connect(server.path)
        s.sendall(PREFACE + frame(4, 0, 0, b""))
        with pytest.raises(TimeoutError):
            for i in range(500000):
                s.sendall(frame(1, 5, 2 * i + 1, request_headers(SERVICE + "Sleep")))
        assert unary(channel, "Echo", b"x") == b"x"


def headers_of(s, n):
    """The flags of the next n HEADERS frames."""
    flags = []
    with s.makefile("rb") as stream:
        while len(flags) < n:
            head = stream.read(9)
            stream.read(int.from_bytes(head[:3], "big"))
            flags += [head[4]] if head[3] == 1 else []
    return flags


def test_the_server_limits_the_responses_that_it_buffers(server, channel):
    """The window of each call is closed: the server buffers responses up to its limit."""
    message = bytes(1) + struct.pack(">I", 1 << 20) + bytes(1 << 20)
    parts = [message[at:at + 16384] for at in range(0, len(message), 16384)]
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(LONG)
        s.connect(server.path)
        s.sendall(PREFACE + frame(4, 0, 0, struct.pack(">HI", 4, 0)))
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            flags = reader.submit(headers_of, s, 100)
            for stream in range(1, 200, 2):
                s.sendall(frame(1, 4, stream, request_headers(SERVICE + "Echo")) + b"".join(
                    frame(0, part is parts[-1], stream, part) for part in parts))
            refused = [f & 1 for f in flags.result(LONG)]
        assert 36 <= sum(refused) < 100
        assert unary(channel, "Echo", b"x") == b"x"
