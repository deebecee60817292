# SPDX-License-Identifier: Apache-2.0
"""
dockerregistry.py - Debian's docker-registry on loopback, and an image for it

What:  docker_registry() runs it; make_layout() creates an image with umoci, push() pushes it with skopeo.
"""
import contextlib
import json
import pathlib
import socket
import subprocess

import pytest

from fetching import have_program
from waiting import wait_until


def need_programs():
    for program in "docker-registry", "skopeo", "umoci":
        if not have_program(program):
            pytest.skip(program + " is not installed")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(host):
    address, port = host.split(":")
    with socket.socket() as s:
        return s.connect_ex((address, int(port))) == 0


@contextlib.contextmanager
def docker_registry(path, auth=None, tls=None):
    """Runs a registry; the value is its HOST:PORT. auth and tls are sections of its configuration."""
    host = "127.0.0.1:%d" % free_port()
    http = {"addr": host, **({"tls": tls} if tls else {})}
    config = {"version": "0.1", "storage": {"filesystem": {"rootdirectory": str(path / "data")}},
              "http": http, **({"auth": auth} if auth else {})}
    (path / "registry.yml").write_text(json.dumps(config))  # JSON is valid YAML
    with open(path / "registry.log", "wb") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(path / "registry.yml")], stdout=log,
                                   stderr=log)
    try:
        wait_until(lambda: process.poll() is not None or listens(host), (path / "registry.log").read_text)
        assert process.poll() is None, (path / "registry.log").read_text()
        yield host
    finally:
        process.kill()
        process.wait()


def make_layout(path):
    """An OCI layout with busybox in it, created by umoci."""
    bundle = path / "bundle"

    def umoci(*args):
        subprocess.run(["umoci", *args], check=True, capture_output=True)
    umoci("init", "--layout", str(path / "oci"))
    umoci("new", "--image", "%s:one" % (path / "oci"))
    umoci("unpack", "--image", "%s:one" % (path / "oci"), str(bundle))
    (bundle / "rootfs/bin").mkdir()
    (bundle / "rootfs/bin/busybox").write_bytes(pathlib.Path("/bin/busybox").read_bytes())
    (bundle / "rootfs/bin/sh").symlink_to("busybox")
    umoci("repack", "--image", "%s:one" % (path / "oci"), str(bundle))
    return "oci:%s:one" % (path / "oci")


def push(source, name, *options):
    subprocess.run(["skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", *options, source,
                    "docker://" + name], check=True, capture_output=True)
