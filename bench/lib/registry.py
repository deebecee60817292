# SPDX-License-Identifier: Apache-2.0
"""Debian's docker-registry on loopback, and images that are made for it

What:  registry() runs one below a folder; Registry.push() puts an image there. layers_of_usr() makes the
       layers of a large one, config() the configuration of any.
How:   the layers have folders of this machine's /usr, drawn by the hash of their names, so that binaries,
       texts and small files are mixed, and compress, as in images of distributions.
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

# Of an image: per cent of its bytes, layer by layer. A distribution, packages on it, and small things.
SHARES = (30, 20, 15, 10, 8, 5, 4, 3, 2, 1, 1, 1)
FILE_MAX = 8 << 20      # a larger one would be most of a small layer
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MEDIA = "application/vnd.oci.image."
WAIT_S = 60


@dataclasses.dataclass
class Layer:
    blob: bytes
    diff_id: str
    size: int       # unpacked


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


# ---- images -------------------------------------------------------------------------------------

def files_below(top):
    """Paths of regular files and symbolic links; the folders are in an order that is random but always
    the same."""
    walk = sorted(os.walk(top), key=lambda step: hashlib.md5(os.fsencode(step[0])).digest())
    for folder, _, names in walk:
        for path in (os.path.join(folder, name) for name in sorted(names)):
            if os.path.islink(path) or os.path.isfile(path) and os.path.getsize(path) <= FILE_MAX:
                yield path


def parents(path, seen):
    """Folders above it that are not in the archive yet, from the top."""
    new = [str(p) for p in reversed(pathlib.PurePath(path).parents) if str(p) not in seen | {"/"}]
    seen.update(new)
    return new


def archive(paths, size):
    """A tar of files from the iterator, until it has so many bytes."""
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


# ---- the registry -------------------------------------------------------------------------------

class Registry:
    def __init__(self, host):
        self.host = host
        self.there = set()      # blobs, by repository and digest

    def request(self, method, path, body=b"", media="application/octet-stream", expect=201):
        connection = http.client.HTTPConnection(self.host, timeout=WAIT_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": media})
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status == expect, f"{method} {path}: {answer.status} {said}"
            return answer.headers.get("Location", "")

    def push_blob(self, repository, data):
        """Returns its digest."""
        key = repository, digest(data)
        if key not in self.there:
            place = self.request("POST", f"/v2/{repository}/blobs/uploads/", expect=202)
            place = place.partition(self.host)[2] or place
            self.request("PUT", f"{place}&digest={key[1]}", data)
            self.there.add(key)
        return key[1]

    def push(self, repository, tag, layers, settings):
        """Returns the image's name."""
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
    """A registry with its blobs below the folder."""
    host = f"127.0.0.1:{free_port()}"
    conf = directory / "registry.yml"
    conf.write_text(f"version: 0.1\nhttp: {{addr: '{host}'}}\n"
                    f"storage: {{filesystem: {{rootdirectory: {directory}/registry}}}}\n")
    process = subprocess.Popen(["docker-registry", "serve", conf], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + WAIT_S
        while not listens(host):
            assert process.poll() is None and time.monotonic() < deadline, "docker-registry is not there"
            time.sleep(0.05)
        yield Registry(host)
    finally:
        process.terminate()
        process.wait()
