# SPDX-License-Identifier: Apache-2.0
"""
test/conformance/upstreamimages.py - images for upstream's tests, with the names that these have built in

What:  push_images() pushes them to a registry, mirrors() returns the flags that make the daemon pull them there.
       BUSYBOX, NGINX and HTTPD are the names of those that containers are created from.
How:   the contents are Debian's: busybox, with pgrep of procps and ipcs of util-linux, which Debian's busybox lacks,
       and nginx. busybox and nginx are those of build-peers (tools/unpack). The applets of busybox are hard links,
       because critest masks ls with a mount; the shell of busybox-static has a built-in ls, which a mount cannot mask.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

from busybox import ARCHITECTURE, archive, put
from lib.registry import config, layer_of

PEERS = pathlib.Path(os.environ["HAWSER_SRC"]) / "build-peers"
NGINX_CONF = """
daemon off;
user root;
pid /var/run/nginx.pid;
error_log stderr;
events {}
http { access_log off; server { listen PORT; root /www; } }
"""
MASTER = pathlib.Path("/usr/share/base-passwd")
PASSWD = (MASTER / "passwd.master").read_bytes() + b"default-user:x:1000:1000::/:/bin/sh\n"
GROUP = (MASTER / "group.master").read_bytes() + b"group-defined-in-image:x:50000:default-user\n"
EFFECTIVE_UID = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) { return printf("Effective uid: %d\n", (int)geteuid()) < 0; }
"""
REGISTRIES = "gcr.io", "registry.k8s.io", "k8s.gcr.io"
TOOLS = "k8s-staging-cri-tools/test-image-"
E2E = "e2e-test-images/"
BUSYBOX, NGINX, HTTPD = ("registry.k8s.io/" + E2E + name for name in (
    "busybox:1.29-2", "nginx:1.14-2", "httpd:2.4.39-4"))
HOST_NGINX = "k8s-staging-cri-tools/hostnet-nginx-" + ARCHITECTURE
SANDBOX = "registry.k8s.io/" + E2E + "sandbox:1"    # for the pause processes of containerd
IMAGE = "gcr.io/" + TOOLS + "tag:test"
USERS = {"user-uid": "1002", "user-username": "www-data", "user-uid-group": "1003:users",
         "user-username-group": "www-data:www-data", "predefined-group": "1000"}
# REPOSITORY:TAG of images with different contents
DIFFERENT = [TOOLS + name for name in ("latest:latest", "tag:test", "tag:all", "1:latest", "2:latest",
                                       "3:latest")] + ["pause:3.9"]


def directories(tar, *names):
    for name in names:
        put(tar, name, type=tarfile.DIRTYPE, mode=0o755)


def put_program(tar, name, file, mode=0o755):
    """Add a program with the libraries that it is linked with."""
    ldd = subprocess.run(["ldd", file], check=True, stdout=subprocess.PIPE, text=True).stdout
    libraries = re.findall(r"(/\S+) \(0x", ldd)
    for path, source in {**dict(zip(libraries, libraries)), name: file}.items():
        put(tar, path.lstrip("/"), pathlib.Path(source).read_bytes(), mode=mode if path == name else 0o755)


def base(tar):
    directories(tar, "bin", "etc", "www")
    put(tar, "tmp", type=tarfile.DIRTYPE, mode=0o1777)
    put(tar, "etc/passwd", PASSWD, mode=0o644)
    put(tar, "etc/group", GROUP, mode=0o644)
    put(tar, "www/index.html", b"it works\n", mode=0o644)
    busybox = PEERS / "bin/busybox"
    put_program(tar, "bin/busybox", busybox)
    for name in subprocess.run([busybox, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split():
        if name != "busybox":
            put(tar, "bin/" + name, type=tarfile.LNKTYPE, linkname="bin/busybox", mode=0o755)
    for name in "pgrep", "ipcs":
        put_program(tar, "bin/" + name, shutil.which(name))


def nginx(tar, port):
    directories(tar, "etc/nginx", "var", "var/run", "var/log", "var/log/nginx", "var/lib", "var/lib/nginx")
    put(tar, "etc/nginx/nginx.conf", NGINX_CONF.replace("PORT", str(port)).encode(), mode=0o644)
    put_program(tar, "usr/sbin/nginx", PEERS / "usr/sbin/nginx")


def setuid_program(tar):
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory) / "nnp"
        subprocess.run(["cc", "-x", "c", "-o", program, "-"], input=EFFECTIVE_UID, text=True, check=True)
        put_program(tar, "bin/nnp", program, mode=0o4755)


def push_images(images):
    plain = layer_of(archive(base))

    def push(name, *more, **settings):
        layers = [plain, *more]
        images.push(*name.split(":"), layers, config(layers, **settings))

    for name in DIFFERENT:
        push(name, layer_of(archive(lambda tar: put(tar, "which", name.encode()))))
    for name, user in USERS.items():
        push(f"{TOOLS}{name}:latest", User=user)
    for tag in "123":
        push(f"{TOOLS}tags:{tag}", Labels={"is": "the same"})
    push(E2E + "busybox:1.29-2")
    push(E2E + "httpd:2.4.39-4", Cmd=["sh", "-c", "echo httpd; exec httpd -f -p 80 -h /www"])
    push(E2E + "nonewprivs:1.3", layer_of(archive(setuid_program)), Cmd=["/bin/nnp"])
    for name, port in (E2E + "nginx:1.14-2", 80), (HOST_NGINX + ":latest", 12003):
        push(name, layer_of(archive(lambda tar: nginx(tar, port))), Cmd=["/usr/sbin/nginx"])
    push(SANDBOX.removeprefix("registry.k8s.io/"), Cmd=["/bin/tail", "-f", "/dev/null"])     # critest looks for sleep


def mirrors(host):
    return [word for registry in REGISTRIES for word in ("--registry-mirror", f"{registry}=http://{host}")]
