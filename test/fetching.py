# SPDX-License-Identifier: Apache-2.0
"""
fetching.py - generated images, a registry that serves them, and hawser-fetch: for test_fetch*.py

What:  Image is an image as bytes; Server is a registry in Python that can be made to misbehave;
       Puller is the daemon's side of src/image/protocol/job.h: it starts hawser-fetch, sends a job and
       a plan, and collects the messages.
"""
import base64
import gzip
import hashlib
import http.server
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading

from layers import END, SANITIZED, directory, member

FETCH = os.environ.get("HAWSER_BUILD", "build") + "/bin/hawser-fetch"
(JOB, PLAN, FETCH_LAYER, RESOLVED, MANIFEST, CONFIG, PROGRESS, FETCHED, LAYER, DONE, FAILED) = range(1, 12)
OCI = "application/vnd.oci.image."
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
WAIT = 60  # seconds; a test that takes longer has failed


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def to_json(value):
    return json.dumps(value).encode()


class Image:
    """Layers, a configuration and a manifest."""

    def __init__(self, archives=None, packed=gzip.compress, media="layer.v1.tar+gzip", config=None,
                 architecture=ARCHITECTURE):
        if archives is None:
            archives = [directory("etc") + member("etc/name", data=b"one") + END,
                        member("etc/more", data=b"two") + END]
        self.blobs = {}
        self.diff_ids = [digest(a) for a in archives]
        self.packed = [packed(a) for a in archives]
        self.config = config if config is not None else to_json(
            {"os": "linux", "architecture": architecture,
             "rootfs": {"type": "layers", "diff_ids": self.diff_ids}})
        self.document = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
                         "config": self.describe(self.config, OCI + "config.v1+json"),
                         "layers": [self.describe(p, OCI + media) for p in self.packed]}
        self.manifest = to_json(self.document)

    def describe(self, data, media):
        self.blobs[digest(data)] = data
        return {"mediaType": media, "digest": digest(data), "size": len(data)}


def index_of(*images_and_platforms):
    """An index as bytes."""
    return to_json({"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": [
        {"mediaType": OCI + "manifest.v1+json", "digest": digest(i.manifest), "size": len(i.manifest),
         "platform": p} for i, p in images_and_platforms]})


class Server:
    """A registry. `before` is called with the handler of each request; it returns True if it has responded."""

    def __init__(self, tls=None, address="127.0.0.1", ranges=True):
        self.before = lambda handler: False
        self.manifests, self.blobs, self.requests = {}, {}, []
        self.connections = 0
        self.ranges = ranges
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.command, self.path, dict(self.headers)))
                try:
                    if not outer.before(self):
                        outer.serve(self)
                except (ConnectionError, ssl.SSLError):
                    self.close_connection = True

            do_POST = do_GET

            def log_message(self, *_):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
            daemon_threads = True

            def get_request(self):
                accepted = super().get_request()
                outer.connections += 1
                return accepted

        self.http = Listener((address, 0), Handler)
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        self.host = ("[%s]:%d" if ":" in address else "%s:%d") % (address, self.port)
        self.url = ("https" if tls else "http") + "://" + self.host
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def add(self, image, tag="latest"):
        self.manifests[tag] = self.manifests[digest(image.manifest)] = (OCI + "manifest.v1+json", image.manifest)
        self.blobs.update(image.blobs)

    def requests_for(self, part):
        """The requests whose path contains `part`."""
        return [r for r in self.requests if part in r[1]]

    def serve(self, handler):
        kind, name = handler.path.partition("?")[0].split("/")[-2:]
        if kind == "manifests" and name in self.manifests:
            media, data = self.manifests[name]
            return self.respond(handler, 200, data, {"Content-Type": media})
        if kind == "blobs" and name in self.blobs:
            return self.respond_with_blob(handler, self.blobs[name])
        return self.respond(handler, 404, b'{"errors":[{"code":"UNKNOWN","message":"not found"}]}')

    def respond_with_blob(self, handler, data):
        wanted = handler.headers.get("Range")
        if not wanted or not self.ranges:
            return self.respond(handler, 200, data)
        first, last = wanted.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last or len(data)), len(data) - 1)
        return self.respond(handler, 206, data[first:last + 1],
                            {"Content-Range": "bytes %d-%d/%d" % (first, last, len(data))})

    @staticmethod
    def respond(handler, status, data=b"", headers=(), length=None):
        handler.send_response(status)
        for name, value in dict(headers).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data) if length is None else length))
        handler.end_headers()
        handler.wfile.write(data)
        return True


class HeadServer(Server):
    """A server that supports HEAD, which containerd uses first."""

    def __init__(self):
        super().__init__()
        handler = self.http.RequestHandlerClass
        handler.do_HEAD = handler.do_GET

    @staticmethod
    def respond(handler, status, data=b"", headers=(), length=None):
        if handler.command == "HEAD":
            data, length = b"", len(data)
        return Server.respond(handler, status, data, headers, length)


class StalledImage:
    """An image on a server that stops in the middle of the only layer: `reached` is set, and it waits for `go_on`."""

    def __init__(self, server):
        self.image = Image([member("f", data=b"x" * 100_000) + END], packed=bytes, media="layer.v1.tar")
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.name = server.host + "/app:latest"
        server.add(self.image)
        server.before = self.stall

    def stall(self, handler):
        data = self.image.packed[0]
        if not handler.path.endswith(digest(data)):
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) // 2])
        handler.wfile.flush()
        self.reached.set()
        self.go_on.wait(WAIT)
        handler.wfile.write(data[len(data) // 2:])
        return True

    def wait(self):
        """Wait until the layer is half fetched."""
        assert self.reached.wait(WAIT)


def children_of(pid):
    """The child processes of a process, oldest first."""
    done = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, check=False)
    return [int(child) for child in done.stdout.split()]


def status_of(pid):
    """The fields of /proc/PID/status."""
    text = pathlib.Path("/proc/%d/status" % pid).read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


class Failed(Exception):
    """A FAILED message; code is errno."""

    def __init__(self, message):
        super().__init__(message["message"])
        self.code = message["code"]


class Puller:
    """The daemon's side. Each pull has its own directories below `path`."""

    def __init__(self, path, **job):
        self.path = pathlib.Path(path)
        self.job = {"platform": {"os": "linux", "architecture": ARCHITECTURE}, "idle_ms": 20000, **job}
        self.count = 0

    def start(self, reference, **job):
        ours, theirs = socket.socketpair()
        ours.settimeout(WAIT)
        process = subprocess.Popen([FETCH], stdin=theirs, stdout=theirs, start_new_session=True)
        theirs.close()
        self.send(ours, JOB, {**self.job, "reference": reference, **job, "keep_open": SANITIZED})
        return ours, process

    @staticmethod
    def send(sock, kind, value):
        data = to_json(value)
        sock.sendall(struct.pack("<IB", len(data), kind) + data)

    @staticmethod
    def receive(sock):
        def exactly(n):
            data = b""
            while len(data) < n:
                more = sock.recv(n - len(data))
                if not more:
                    return None
                data += more
            return data
        head = exactly(5)
        if head is None:
            return None, None
        size, kind = struct.unpack("<IB", head)
        return kind, exactly(size)

    def plan(self, config, have):
        self.count += 1
        layers = []
        for i, diff_id in enumerate(json.loads(config)["rootfs"]["diff_ids"]):
            place = self.path / ("pull%d-%d" % (self.count, i))
            (place / "root").mkdir(parents=True)
            layers.append({"have": diff_id in have, "diff_id": diff_id,
                           "root": have.get(diff_id, str(place / "root")), "recipe": str(place / "recipe")})
        return layers

    def pull(self, reference, have=None, **job):
        """All messages of hawser-fetch, as a dict. Raises Failed."""
        sock, process = self.start(reference, **job)
        result = {"progress": [], "layers": {}}
        try:
            while True:
                kind, data = self.receive(sock)
                if kind is None:
                    raise AssertionError("hawser-fetch closed the socket without a message")
                if kind == FAILED:
                    raise Failed(json.loads(data))
                if kind == DONE:
                    break
                self.handle_message(sock, result, kind, data, have or {})
        finally:
            sock.close()
            try:
                result["status"] = process.wait(WAIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        assert result["status"] == 0
        return result

    def handle_message(self, sock, result, kind, data, have):
        if kind == RESOLVED:
            result["resolved"] = json.loads(data)
        elif kind == MANIFEST:
            result["manifest"] = data
        elif kind == CONFIG:
            result["config"] = data
            result["plan"] = self.plan(data, have)
            self.send(sock, PLAN, {"layers": result["plan"]})
        elif kind == PROGRESS:
            result["progress"].append(json.loads(data))
        elif kind == LAYER:
            step = json.loads(data)
            result["layers"][step["layer"]] = step["unpacked"]
        else:
            raise AssertionError("unexpected message of type %d" % kind)

    def file(self, result, layer, path):
        return (pathlib.Path(result["plan"][layer]["root"]) / path).read_bytes()


def basic(user, password):
    return "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()


def make_authority(path, name="127.0.0.1"):
    """Creates a directory with a certificate authority (ca.crt) and its server certificate (server.pem)."""
    path = pathlib.Path(path)
    path.mkdir(parents=True, exist_ok=True)

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=path, check=True, capture_output=True)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test authority",
            "-keyout", "ca.key", "-out", "ca.crt")
    for role in "server", "client":
        (path / "ext").write_text("subjectAltName=IP:%s" % name)
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + role, "-keyout", role + ".key", "-out", role + ".csr")
        openssl("x509", "-req", "-in", role + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", "ext", "-out", role + ".crt")
    (path / "server.pem").write_text((path / "server.key").read_text() + (path / "server.crt").read_text())
    return path


def tls_context(authority, want_client=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem")
    if want_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority / "ca.crt")
    return context


def have_program(name):
    return shutil.which(name) is not None
