# SPDX-License-Identifier: Apache-2.0
"""Runtimes to measure: hawser-cri and containerd, each with its own directories

What:  hawser_cri() and containerd() run a daemon in a directory, wait until it accepts calls, and yield
       a Runtime; serving() does the same for any program with a gRPC socket.
"""
import contextlib
import dataclasses
import pathlib
import subprocess
import sys
import time

WAIT_S = 60
CONTAINERD = """
version = 2
root = "{dir}/root"
state = "{dir}/state"
[grpc]
address = "{socket}"
"""


@dataclasses.dataclass
class Runtime:
    socket: pathlib.Path
    pid: int
    build: pathlib.Path

    def hawser(self, *words):
        """A hawser command line for this runtime."""
        return [str(w) for w in (self.build / "bin/hawser", "--runtime", f"unix:{self.socket}", *words)]

    def run(self, *words):
        return subprocess.run(self.hawser(*words), check=True, stdout=subprocess.PIPE, text=True).stdout


@contextlib.contextmanager
def serving(build, socket, *command):
    """Run a program; the body of the context starts when the program accepts calls at its socket."""
    call = [build / "test/rpc/rpc-call", socket, "/none.None/None", "60000", ""]
    log = socket.with_suffix(".log")
    with open(log, "wb") as out:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + WAIT_S
        while b"UNIMPLEMENTED" not in subprocess.run(call, stdout=subprocess.PIPE).stdout:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield Runtime(socket, process.pid, build)
    finally:
        if process.poll() is not None:
            sys.stderr.write(f"{command[0]} has ended with status {process.returncode}:\n{log.read_text()[-4000:]}")
        process.terminate()
        process.wait()


def hawser_cri(build, directory, *flags):
    directory.mkdir()
    socket = directory / "sock"
    return serving(build, socket, build / "bin/hawser-cri", "--root", directory / "root", "--state",
                   directory / "state", "--listen", f"unix:{socket}", "--cni-conf-dir", directory,
                   "--cni-cache-dir", directory / "cache", *flags)


def containerd(build, directory):
    directory.mkdir()
    socket, conf = directory / "sock", directory / "config.toml"
    conf.write_text(CONTAINERD.format(dir=directory, socket=socket))
    return serving(build, socket, "containerd", "--config", conf)
