# SPDX-License-Identifier: Apache-2.0
"""
test/conformance/node.py - hawser-cri for upstream's programs

What:  node() runs a daemon with its built-in network, which pulls the images of upstreamimages.py from a registry on
       loopback. host_leftovers() lists what pods have left behind.
"""
import contextlib
import os
import pathlib
import subprocess
import sys

SRC = pathlib.Path(os.environ["HAWSER_SRC"])
sys.path[:0] = [str(SRC / "bench"), str(SRC / "test"), str(SRC / "test/runtimes")]
sys.dont_write_bytecode = True

from cridaemon import BUILD, Daemon  # noqa: E402
from lib.registry import registry  # noqa: E402
from poddaemon import host_leftovers  # noqa: E402, F401
from upstreamimages import mirrors, push_images  # noqa: E402


@contextlib.contextmanager
def node(directory):
    """Returns the daemon and the host of the registry."""
    with registry(directory) as server:
        push_images(server)
        daemon = Daemon(directory, "--disk-reserve", "0", "--plain-http", server.host, "--default-network", "true",
                        *mirrors(server.host))
        subprocess.run([BUILD / "bin/hawser-plugin", "install", daemon.bin], check=True, stdout=subprocess.DEVNULL)
        daemon.start()
        try:
            yield daemon, server.host
        finally:
            if daemon.process:
                daemon.process.kill()
