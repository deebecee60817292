# SPDX-License-Identifier: Apache-2.0
"""
test/runtimes/busybox.py - container images with the static busybox of this machine

What:  write_image() writes an image in the format of `docker save`. It has every applet of busybox. It sleeps by
       default, and can run a web server for www/: its only page, /cgi-bin/who, prints the client's address.
"""
import hashlib
import io
import json
import pathlib
import platform
import shutil
import subprocess
import tarfile

NAME = "hawser.test/busybox:1"
WHO = pathlib.Path(__file__).parent / "www/cgi-bin/who"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


def put(tar, name, data=b"", **attributes):
    """Add an entry: a file with data, or another type."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in attributes.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


def archive(write):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        write(tar)
    return out.getvalue()


def base(tar):
    busybox = pathlib.Path(shutil.which("busybox"))
    applets = subprocess.run([busybox, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    for name in ("bin", "dev", "etc", "proc", "sys", "tmp", "www", "www/cgi-bin"):
        put(tar, name, type=tarfile.DIRTYPE, mode=0o755)
    put(tar, "bin/busybox", busybox.read_bytes(), mode=0o755)
    for name in applets:
        if name != "busybox":
            put(tar, "bin/" + name, type=tarfile.SYMTYPE, linkname="busybox")
    put(tar, "www/cgi-bin/who", WHO.read_bytes(), mode=0o755)


def write_image(path, name=NAME, files=(), **config):
    """files: triples (name, data, attributes) of a second layer; config: of the image, such as User."""
    layers = [archive(base)]
    if files:
        layers.append(archive(lambda tar: [put(tar, n, data, **attributes) for n, data, attributes in files]))
    config = json.dumps({
        "architecture": ARCHITECTURE, "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "100000"], "Env": ["PATH=/bin"], **config},
        "rootfs": {"type": "layers",
                   "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers]},
    }).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    names = ["layer%d.tar" % i for i in range(len(layers))]
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": names}]
    with tarfile.open(path, "w") as tar:
        for layer_name, layer in zip(names, layers):
            put(tar, layer_name, layer)
        put(tar, config_name, config)
        put(tar, "manifest.json", json.dumps(manifest).encode())
