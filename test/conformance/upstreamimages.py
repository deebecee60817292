# SPDX-License-Identifier: Apache-2.0
"""
test/conformance/upstreamimages.py - images for upstream's tests, with the names that these have built in

What:  push_images() pushes them to a registry, mirrors() returns the flags that make the daemon pull them there.
       BUSYBOX, NGINX and HTTPD are the names of those that containers are created from.
How:   the contents are Debian's: busybox, with pgrep of procps and ipcs of util-linux, which Debian's busybox lacks,
       and nginx from build-peers (tools/unpack). The applets of busybox are hard links, because critest masks one of
       them with a mount.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

from busybox import archive, put
from lib.registry import config, layer_of

NGINX_PROGRAM = pathlib.Path(os.environ["HAWSER_SRC"]) / "build-peers/usr/sbin/nginx"
NGINX_CONF = b"""
daemon off;
user root;
pid /var/run/nginx.pid;
error_log stderr;
events {}
http { access_log off; server { listen 80; root /www; } }
"""
REGISTRIES = "gcr.io", "registry.k8s.io", "k8s.gcr.io"
TOOLS = "k8s-staging-cri-tools/test-image-"
E2E = "e2e-test-images/"
BUSYBOX, NGINX, HTTPD = ("registry.k8s.io/" + E2E + name for name in (
    "busybox:1.29-2", "nginx:1.14-2", "httpd:2.4.39-4"))
IMAGE = "gcr.io/" + TOOLS + "tag:test"
USERS = {"uid": "1002", "username": "www-data", "uid-group": "1003:users",
         "username-group": "www-data:www-data"}
# REPOSITORY:TAG of images with different contents
DIFFERENT = [TOOLS + name for name in ("latest:latest", "tag:test", "tag:all", "1:latest", "2:latest",
                                       "3:latest")] + ["pause:3.9"]


def directories(tar, *names):
    for name in names:
        put(tar, name, type=tarfile.DIRTYPE, mode=0o755)


def put_programs(tar, sources):
    """Add programs, {path in the image: file}, with the libraries that they are linked with."""
    ldd = subprocess.run(["ldd", *sources.values()], check=True, stdout=subprocess.PIPE, text=True).stdout
    libraries = {path: path for path in re.findall(r"(/\S+) \(0x", ldd)}
    for path, file in {**libraries, **sources}.items():
        put(tar, path.lstrip("/"), pathlib.Path(file).read_bytes(), mode=0o755)


def base(tar):
    directories(tar, "bin", "etc", "www")
    put(tar, "tmp", type=tarfile.DIRTYPE, mode=0o1777)
    put(tar, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n", mode=0o644)
    put(tar, "etc/group", b"root:x:0:\n", mode=0o644)
    put(tar, "www/index.html", b"it works\n", mode=0o644)
    busybox = pathlib.Path(shutil.which("busybox"))
    put(tar, "bin/busybox", busybox.read_bytes(), mode=0o755)
    for name in subprocess.run([busybox, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split():
        if name != "busybox":
            put(tar, "bin/" + name, type=tarfile.LNKTYPE, linkname="bin/busybox", mode=0o755)
    put_programs(tar, {"bin/" + name: shutil.which(name) for name in ("pgrep", "ipcs")})


def nginx(tar):
    directories(tar, "etc/nginx", "var", "var/run", "var/log", "var/log/nginx", "var/lib", "var/lib/nginx")
    put(tar, "etc/nginx/nginx.conf", NGINX_CONF, mode=0o644)
    put_programs(tar, {"usr/sbin/nginx": NGINX_PROGRAM})


def push_images(images):
    plain = layer_of(archive(base))

    def push(name, *more, **settings):
        layers = [plain, *more]
        images.push(*name.split(":"), layers, config(layers, **settings))

    for name in DIFFERENT:
        push(name, layer_of(archive(lambda tar: put(tar, "which", name.encode()))))
    for name, user in USERS.items():
        push(f"{TOOLS}user-{name}:latest", User=user)
    for tag in "123":
        push(f"{TOOLS}tags:{tag}", Labels={"is": "the same"})
    push(E2E + "busybox:1.29-2")
    push(E2E + "nginx:1.14-2", layer_of(archive(nginx)), Cmd=["/usr/sbin/nginx"])
    push(E2E + "httpd:2.4.39-4", Cmd=["sh", "-c", "echo httpd; exec httpd -f -p 80 -h /www"])


def mirrors(host):
    return [word for registry in REGISTRIES for word in ("--registry-mirror", f"{registry}=http://{host}")]
