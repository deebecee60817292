# SPDX-License-Identifier: Apache-2.0
"""Debian's docker-registry on loopback, and images for it

What:  registry() runs a registry in a directory; Registry.push() pushes an image. layers_of_usr()
       builds the layers of a large image, config() the configuration of any image.
How:   the layers contain directories of this machine's /usr, ordered by the hash of their names. So
       binaries, texts and small files are mixed, and compress as well as in images of distributions.
"""
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import http.client
import io
import json
import os
import pathlib
import platform
import socket
import subprocess
import tarfile
import time
import zlib

# Sizes of an image's layers in per cent: a distribution, packages, and small layers.
SHARES = (30, 20, 15, 10, 8, 5, 4, 3, 2, 1, 1, 1)
FILE_MAX = 8 << 20      # larger files are left out: one could fill most of a small layer
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MEDIA = "application/vnd.oci.image."
WAIT_S = 60


@dataclasses.dataclass
class Layer:
    blob: bytes
    diff_id: str
    size: int       # bytes when unpacked


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


# ---- images -------------------------------------------------------------------------------------

def files_below(top):
    """Yield paths of regular files and symbolic links; the directories are in a random but fixed order."""
    walk = sorted(os.walk(top), key=lambda step: hashlib.md5(os.fsencode(step[0])).digest())
    for directory, _, names in walk:
        for path in (os.path.join(directory, name) for name in sorted(names)):
            if os.path.islink(path) or os.path.isfile(path) and os.path.getsize(path) <= FILE_MAX:
                yield path


def parents(path, seen):
    """Parent directories that are not in the archive yet, the topmost first."""
    new = [str(p) for p in reversed(pathlib.PurePath(path).parents) if str(p) not in seen | {"/"}]
    seen.update(new)
    return new


def archive(paths, size):
    """A tar archive of at least size bytes, of files from the iterator."""
    out, seen = io.BytesIO(), set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        while out.tell() < size and (path := next(paths, None)):
            for name in (*parents(path, seen), path):
                tar.add(name, recursive=False)
    return out.getvalue()


def gzipped(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def layer_of(tar):
    return Layer(gzipped(tar), digest(tar), len(tar))


def layers_of_usr(size):
    paths = files_below("/usr")
    tars = [archive(paths, size * share // 100) for share in SHARES]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(layer_of, tars))


def config(layers, **more):
    machine = platform.machine()
    return json.dumps({"architecture": ARCHITECTURES.get(machine, machine), "os": "linux",
                       "config": {"Cmd": ["/bin/sh"], "Env": ["PATH=/usr/bin:/bin"], **more},
                       "rootfs": {"type": "layers", "diff_ids": [l.diff_id for l in layers]}}).encode()


# ---- registry -----------------------------------------------------------------------------------

class Registry:
    def __init__(self, host):
        self.host = host
        self.pushed = set()     # (repository, digest) of blobs

    def request(self, method, path, body=b"", media="application/octet-stream", expect=201):
        connection = http.client.HTTPConnection(self.host, timeout=WAIT_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": media})
            response = connection.getresponse()
            text = response.read()
            assert response.status == expect, f"{method} {path}: {response.status} {text}"
            return response.headers.get("Location", "")

    def push_blob(self, repository, data):
        """Push a blob. Returns its digest."""
        key = repository, digest(data)
        if key not in self.pushed:
            location = self.request("POST", f"/v2/{repository}/blobs/uploads/", expect=202)
            location = location.partition(self.host)[2] or location
            self.request("PUT", f"{location}&digest={key[1]}", data)
            self.pushed.add(key)
        return key[1]

    def push(self, repository, tag, layers, settings):
        """Push an image. Returns its name."""
        def describe(data, media):
            return {"mediaType": MEDIA + media, "size": len(data),
                    "digest": self.push_blob(repository, data)}
        manifest = {"schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json",
                    "config": describe(settings, "config.v1+json"),
                    "layers": [describe(l.blob, "layer.v1.tar+gzip") for l in layers]}
        self.request("PUT", f"/v2/{repository}/manifests/{tag}", json.dumps(manifest).encode(),
                     manifest["mediaType"])
        return f"{self.host}/{repository}:{tag}"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(host):
    with socket.socket() as s:
        return s.connect_ex((host.partition(":")[0], int(host.partition(":")[2]))) == 0


@contextlib.contextmanager
def registry(directory):
    """Runs a registry that stores its blobs in the directory."""
    host = f"127.0.0.1:{free_port()}"
    conf = directory / "registry.yml"
    conf.write_text(f"version: 0.1\nhttp: {{addr: '{host}'}}\n"
                    f"storage: {{filesystem: {{rootdirectory: {directory}/registry}}}}\n")
    process = subprocess.Popen(["docker-registry", "serve", conf], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + WAIT_S
        while not listens(host):
            assert process.poll() is None and time.monotonic() < deadline, "docker-registry did not start"
            time.sleep(0.05)
        yield Registry(host)
    finally:
        process.terminate()
        process.wait()
