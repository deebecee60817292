#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
test/faults/registry.py FILE: run a registry with one image of two layers until killed

Writes HOST:PORT to FILE when the registry is ready. The image is called "new".
"""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from fetching import Image, Server  # noqa: E402 pylint: disable=wrong-import-position
from layers import END, directory, member  # noqa: E402 pylint: disable=wrong-import-position


def main(path):
    server = Server()
    server.add(Image([directory("etc") + member("file", data=b"lower") + END,
                      member("etc/more", data=b"more") + member("file", data=b"upper") + END]))
    pathlib.Path(path + "~").write_text(server.host)
    os.rename(path + "~", path)
    signal.pause()


main(sys.argv[1])
