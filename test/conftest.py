# SPDX-License-Identifier: Apache-2.0
"""
conftest.py - fixtures that several pytest files share

pytest adds the folder of this file to the module path, so the tests of all areas can import its modules.
A file that needs more than a fixture here does, defines a fixture of the same name.
"""
import shutil

import pytest

from containerd import Containerd
from dockerregistry import docker_registry, need_programs
from fetching import Server
from layers import Layers


@pytest.fixture
def server():
    """A registry in Python, without images."""
    s = Server()
    yield s
    s.close()


@pytest.fixture
def registry(tmp_path):
    """Debian's docker-registry, without images. Returns its host and port."""
    need_programs()
    with docker_registry(tmp_path) as host:
        yield host


@pytest.fixture
def layers(tmp_path):
    """A directory for layers, with the programs that unpack and compare them."""
    return Layers(tmp_path)


@pytest.fixture(scope="module")
def containerd(tmp_path_factory):
    """Debian's containerd, without images."""
    if not shutil.which("containerd"):
        pytest.skip("containerd is not installed")
    c = Containerd(tmp_path_factory.mktemp("containerd"))
    yield c
    c.stop()
