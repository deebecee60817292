# SPDX-License-Identifier: Apache-2.0
"""
containerd.py - Debian's containerd with its own directories, for tests
"""
import os
import pathlib
import subprocess
import sys

from waiting import LONG, wait_until

sys.path.insert(0, str(pathlib.Path(os.environ["HAWSER_SRC"]) / "test/runtimes"))
import busybox  # noqa: E402

CRI_CALL = pathlib.Path(os.environ["HAWSER_BUILD"]) / "test/rpc/cri-call"
CONFIG = """
version = 2
root = "{dir}/root"
state = "{dir}/state"
[grpc]
address = "{dir}/sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{image}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{dir}/bin"
conf_dir = "{dir}/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
"""


class Containerd:
    def __init__(self, directory):
        self.dir = directory
        self.socket = str(directory / "sock")
        (directory / "config.toml").write_text(CONFIG.format(dir=directory, image=busybox.NAME))
        self.log = open(directory / "log", "wb")
        self.process = subprocess.Popen(["containerd", "--config", directory / "config.toml"],
                                        stdout=self.log, stderr=self.log)
        wait_until(lambda: self.process.poll() is not None or self.call("Version")[0] == 0, self.messages)
        assert self.process.poll() is None, self.messages()

    def messages(self):
        return (self.dir / "log").read_text()

    def call(self, method, request=b""):
        """Returns the exit status, and the response's fields or the error."""
        done = subprocess.run([CRI_CALL, self.socket, method, request.hex()],
                              stdout=subprocess.PIPE, text=True, timeout=2 * LONG)
        if done.returncode:
            return done.returncode, done.stdout.strip()
        return 0, dict(line.split(" = ", 1) for line in done.stdout.splitlines())

    def ctr(self, *words):
        return subprocess.run(["ctr", "--address", self.socket, "--namespace", "k8s.io", *words],
                              check=True, stdout=subprocess.PIPE, text=True).stdout

    def stop(self):
        self.process.terminate()
        self.process.wait(LONG)
        self.log.close()
