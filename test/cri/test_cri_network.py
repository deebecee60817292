# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_network.py - the network of hawser-cri: readiness, STATUS of its plugins, the pod CIDR
"""
import json
import os
import pathlib

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from program import CONFLIST, cidr, make, with_status  # noqa: F401, a fixture
from waiting import LONG, wait_until


def served(d):
    """The processes of hawser-plugin serve that use the daemon's state directory."""
    lock = str(d.state / "plugins.lock")
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"hawser-plugin\0serve\0" in (path / "cmdline").read_bytes() and \
                    lock in [os.readlink(fd) for fd in (path / "fd").iterdir()]:
                found.append(path.name)
        except OSError:
            pass
    return found


TEMPLATE = """{"cniVersion": "1.0.0", "name": "rendered", "plugins": [{"type": "bridge",
"ipam": {"type": "host-local", "ranges": [{{range $i, $r := .PodCIDRRanges}}{{if $i}}, {{end}}
[{"subnet": "{{$r}}"}]{{end}}], "routes": [{{range $i, $r := .Routes}}{{if $i}}, {{end}}
{"dst": "{{$r}}"}{{end}}]}}]}"""


def test_the_network_becomes_ready_and_then_not_ready_again(make):
    d = make().start()
    assert d.network() == (False, "Network plugin returns error: no net configurations found in "
                           "%s" % d.net)
    (d.net / "10-net.conflist").write_text(CONFLIST % "first")
    d.logged("not found in")
    assert d.network() == (False, 'Network plugin returns error: %s: plugin "bridge" not found in %s'
                           % (d.net / "10-net.conflist", d.bin))
    d.add_plugin()
    wait_until(lambda: d.network() == (True, ""))
    (d.net / "05-broken.conflist").write_text("{")
    (d.net / "07-net.conflist").write_text(CONFLIST % "second")
    d.logged("network ready network=second")
    for file in d.net.iterdir():
        file.unlink()
    wait_until(lambda: not d.network()[0])


def test_a_network_directory_that_was_renamed_and_created_again_is_read(make):
    d = make().start()
    d.add_plugin()
    d.net.rename(d.dir / "away")
    d.net.mkdir()
    (d.net / "10-net.conflist").write_text(CONFLIST % "back")
    wait_until(lambda: d.network()[0])
    d.net.rename(d.dir / "away2")
    wait_until(lambda: not d.network()[0])
    d.net.mkdir()
    (d.net / "10-net.conflist").write_text(CONFLIST % "again")
    d.logged("network=again")


def test_the_network_is_ready_only_while_status_of_its_plugins_succeeds(make):
    d = make()
    (d.dir / "away").touch()
    with_status(d)
    d.start()
    wait_until(lambda: "the controller is away" in d.network()[1])
    ready, message = d.network()
    assert not ready and message.startswith('Network plugin returns error: %s: network "polled": ' % (
        d.net / "10-net.conflist"))
    (d.dir / "away").unlink()
    wait_until(lambda: d.network() == (True, ""))
    (d.dir / "away").touch()
    wait_until(lambda: not d.network()[0])
    (d.net / "10-net.conflist").write_text(CONFLIST % "not polled")
    wait_until(lambda: d.network() == (True, ""))
    assert d.stop() == 0


def test_a_plugin_that_hangs_does_not_block_the_daemon(make):
    d = make()
    (d.dir / "hang").touch()
    with_status(d)
    d.start()
    wait_until(lambda: (d.dir / "pid").exists() and (d.dir / "pid").read_text().strip())
    assert d.network() == (False, "Network plugin returns error: plugins have not answered STATUS yet")
    assert d.stop() == 0
    wait_until(lambda: not os.path.exists("/proc/" + (d.dir / "pid").read_text().strip()))


def test_a_plugin_ends_with_a_killed_daemon(make):
    d = make()
    (d.dir / "hang").touch()
    with_status(d)
    d.start()
    wait_until(lambda: (d.dir / "pid").exists() and (d.dir / "pid").read_text().strip())
    pid = (d.dir / "pid").read_text().strip()
    assert served(d)
    d.process.kill()
    d.process.wait(LONG)
    (d.dir / "hang").unlink()
    d.start()
    wait_until(lambda: d.network() == (True, ""))
    assert not os.path.exists("/proc/" + pid)
    assert d.stop() == 0
    wait_until(lambda: not served(d))


def test_a_template_is_rendered_to_a_network_configuration(make):
    d = make()
    (d.dir / "template").write_text(TEMPLATE)
    d.command += ["--cni-conf-template", d.dir / "template"]
    d.add_plugin()
    d.start()
    assert d.call("UpdateRuntimeConfig", b"") == (0, {})
    assert not d.network()[0]
    assert d.call("UpdateRuntimeConfig", cidr("10.7.0.0/24,fd07::/64")) == (0, {})
    wait_until(lambda: d.network()[0])
    file = d.net / "10-hawser.conflist"
    ipam = json.loads(file.read_text())["plugins"][0]["ipam"]
    assert ipam["ranges"] == [[{"subnet": "10.7.0.0/24"}], [{"subnet": "fd07::/64"}]]
    assert ipam["routes"] == [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
    # another CIDR, then a restart after the file was deleted
    assert d.call("UpdateRuntimeConfig", cidr("10.8.0.0/24")) == (0, {})
    assert "10.8.0.0/24" in file.read_text()
    assert (d.state / "pod-cidr").read_text() == "10.8.0.0/24"
    assert d.stop() == 0
    file.unlink()
    d.start()
    wait_until(lambda: d.network()[0])
    assert "10.8.0.0/24" in file.read_text()
    # another network takes precedence
    (d.net / "00-other.conflist").write_text(CONFLIST % "other")
    d.logged("network=other")
    assert d.call("UpdateRuntimeConfig", cidr("10.9.0.0/24")) == (0, {})
    assert "10.8.0.0/24" in file.read_text()


def test_an_invalid_template_or_cidr_is_refused(make):
    d = make()
    (d.dir / "template").write_text("{{.Nothing}}")
    d.command += ["--cni-conf-template", d.dir / "template"]
    d.start()
    status, text = d.call("UpdateRuntimeConfig", cidr("10.7.0.0"))
    assert status == 1 and text.startswith('INVALID_ARGUMENT pod_cidr "10.7.0.0": ')
    status, text = d.call("UpdateRuntimeConfig", cidr("10.7.0.0/24"))
    assert (status, text) == (1, "INVALID_ARGUMENT render the network template: %s: line 1: "
                              "{{.Nothing}}: unknown value" % (d.dir / "template"))
    assert list(d.net.iterdir()) == []
