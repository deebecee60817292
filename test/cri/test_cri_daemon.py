# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_daemon.py - the program hawser-cri: starting, status, reloading, stopping

What:  one daemon per test, in its own directories, called with Google's gRPC (python3-grpcio) and
       with cri-call.
Not:   pulling images: test_cri_pull.py.
"""
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import time

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import DAEMON, Daemon, field, fields_of
from waiting import LONG, wait_until

SOURCE = pathlib.Path(os.environ["HAWSER_SRC"])
CONFLIST = '{"cniVersion": "1.0.0", "name": "%s", "plugins": [{"type": "bridge"}]}'
TEMPLATE = """{"cniVersion": "1.0.0", "name": "rendered", "plugins": [{"type": "bridge",
"ipam": {"type": "host-local", "ranges": [{{range $i, $r := .PodCIDRRanges}}{{if $i}}, {{end}}
[{"subnet": "{{$r}}"}]{{end}}], "routes": [{{range $i, $r := .Routes}}{{if $i}}, {{end}}
{"dst": "{{$r}}"}{{end}}]}}]}"""


@pytest.fixture
def make(tmp_path):
    daemons = []

    def make_one(*flags, name="one", **more):
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        daemons.append(Daemon(directory, *flags, **more))
        return daemons[-1]

    yield make_one
    for d in daemons:
        if d.process:
            assert d.stop() == 0, d.log()


# ---- the command line ----------------------------------------------------------------------

def run(*words):
    done = subprocess.run([DAEMON, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=LONG)
    return done.returncode, done.stdout, done.stderr


def test_help_lists_the_flags_and_version_prints_the_version():
    assert run("--version") == (0, "hawser-cri 0.2.0\n", "")
    for words in (["--version"], ["--help"], ["--print-config"]):
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", DAEMON, *words], stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "write to standard output: Bad file descriptor" in done.stderr
    status, text, errors = run("--help")
    assert (status, errors) == (0, "")
    for flag in ("--config", "--listen", "--root", "--state", "--cni-conf-dir", "--cni-bin-dir",
                 "--cni-cache-dir", "--registry-mirror", "--plain-http", "--stream-address",
                 "--log-level", "--check-config", "--print-config"):
        assert "  " + flag + " " in text or "  " + flag + "\n" in text


def test_the_manual_page_has_every_key():
    page = (SOURCE / "man/hawser-cri.8").read_text()
    keys = re.findall(r"^([a-z-]+):", run("--print-config")[1], re.M)
    assert len(keys) > 20 and re.findall(r"^\.It Cm ([a-z-]+)", page, re.M) == keys
    for flag in ("config", "check-config", "print-config", "help", "version"):
        assert ".It Fl -%s" % flag in page


def test_a_printed_configuration_can_be_read_back(tmp_path):
    file = tmp_path / "h.yaml"
    file.write_text("long-calls: 3\nregistry-mirror: [docker.io=https://m.example]\n")
    status, text, _ = run("--config", file, "--print-config", "--root", "/flag")
    assert status == 0 and "long-calls: 3\n" in text and 'root: "/flag"\n' in text
    file.write_text(text)
    assert run("--config", file, "--print-config") == (0, text, "")
    yaml = pytest.importorskip("yaml", reason="python3-yaml is not installed")
    keys = yaml.safe_load(text)
    assert keys["registry-mirror"] == ["docker.io=https://m.example"]
    assert len(keys) == len(re.findall(r"^[a-z-]+:", text, re.M))


def test_check_config_reports_an_unknown_key_with_its_line(tmp_path):
    file = tmp_path / "h.yaml"
    file.write_text("root: /a\n")
    assert run("--config", file, "--check-config") == (0, "", "")
    file.write_text("root: /a\n\nlisen: unix:/x\n")
    status, _, errors = run("--config", file, "--check-config")
    assert status == 1 and "%s: line 3: lisen: unknown key\n" % file in errors
    status, _, errors = run("--config", tmp_path / "missing", "--check-config")
    assert status == 1 and "No such file or directory" in errors


# ---- status and information ----------------------------------------------------------------

def test_the_version_and_the_cgroup_driver_are_reported(make):
    d = make("--cgroup-driver", "systemd").start()
    assert d.call("Version") == (0, {"version": "0.1.0", "runtime_name": "hawser",
                                     "runtime_version": "0.2.0", "runtime_api_version": "v1"})
    assert d.call("RuntimeConfig") == (0, {"linux.cgroup_driver": "0"})
    other = make("--cgroup-driver", "cgroupfs", name="two").start()
    assert other.call("RuntimeConfig") == (0, {"linux.cgroup_driver": "1"})


def test_the_verbose_status_contains_the_configuration(make):
    d = make("--long-calls", "7").start()
    fields = d.call("Status", b"\x08\x01")[1]
    assert fields["status.conditions.0.type"] == "RuntimeReady"
    assert fields["status.conditions.0.status"] == "1"
    assert fields["info.0.key"] == "config"
    config = json.loads(fields["info.0.value"])
    assert config["stateDir"] == str(d.state) and config["keys"]["long-calls"] == 7
    assert json.loads(fields["info.1.value"])["ready"] is False
    assert fields["runtime_handlers.0.features.user_namespaces"] == "0"
    assert "info.0.key" not in d.call("Status")[1]


def test_the_runtime_is_not_ready_without_crun_and_conmon(make, tmp_path):
    d = make().start()
    assert d.call("Status")[1]["status.conditions.0.status"] == "1"
    assert d.stop() == 0
    d.env["PATH"] = path = str(d.dir / "programs")
    d.start()
    (d.dir / "programs/conmon").unlink()
    fields = d.call("Status")[1]
    assert fields["status.conditions.0.type"] == "RuntimeReady"
    assert fields["status.conditions.0.status"] == "0"
    assert fields["status.conditions.0.reason"] == "RuntimeNotReady"
    assert fields["status.conditions.0.message"] == "conmon not found in " + path
    (d.dir / "programs/crun").chmod(0o644)
    assert d.call("Status")[1]["status.conditions.0.message"] == "crun not found in " + path


def test_info_describes_the_running_daemon(make):
    d = make().start()
    with d.dial() as channel:
        response = fields_of(channel.unary_unary("/hawser.v1.Daemon/Info")(b"", timeout=LONG))
    assert response[1] == "0.2.0" and response[3] == d.process.pid
    assert abs(response[2] / 1e9 - time.time()) < LONG
    assert response[4] == str(d.dir / "root")
    assert response[5] == str(d.state) and response[6] == str(d.config)
    assert response[11] == 512 and response[12] == os.uname().release


def methods():
    proto = (SOURCE / "proto/cri-v1.proto").read_text()
    for service, body in re.findall(r"^service (\w+) \{(.*?)^\}", proto, re.M | re.S):
        for method in re.findall(r"rpc (\w+)\(", body):
            yield service, method


def test_the_error_for_an_unimplemented_method_names_it(make):
    d = make().start()
    implemented = {"Version", "Status", "RuntimeConfig", "UpdateRuntimeConfig"}
    runtime = [m for s, m in methods() if s == "RuntimeService"]
    assert len(runtime) == 37
    with d.dial() as channel:
        for method in set(runtime) - implemented:
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary("/runtime.v1.RuntimeService/" + method)(b"", timeout=LONG)
            assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
            assert caught.value.details() == "%s is not implemented by hawser-cri 0.2.0" % method


def test_malformed_requests_are_refused(make):
    d = make().start()
    with d.dial() as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/runtime.v1.RuntimeService/Status")(b"\xff\xff", timeout=LONG)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/runtime.v1.ImageService/ImageStatus")(
                field(1, field(1, b"\xff")), timeout=LONG)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    d.logged("call failed method=ImageStatus code=INVALID_ARGUMENT")


# ---- images --------------------------------------------------------------------------------

def test_an_empty_store_has_no_images_and_uses_no_space(make):
    d = make().start()
    busybox = field(1, field(1, "busybox"))
    assert d.call("ListImages") == (0, {})
    assert d.call("ImageStatus", busybox) == (0, {})
    assert d.call("RemoveImage", busybox) == (0, {})
    assert d.call("ImageStatus") == (1, "INVALID_ARGUMENT missing image name")
    status, fields = d.call("ImageFsInfo")
    assert status == 0 and fields["image_filesystems.0.fs_id.mountpoint"] == str(d.dir / "root")
    assert fields["image_filesystems.0.used_bytes.value"] == "0"
    with d.dial() as channel:
        stream = channel.unary_stream("/runtime.v1.ImageService/StreamImages")
        assert list(stream(b"", timeout=LONG)) == []


def test_a_newer_database_is_refused_and_not_changed(make):
    d = make().start()
    assert d.stop() == 0
    file = d.dir / "root/images.db"
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 999999")
    db.close()
    before = file.read_bytes()
    assert "root directory: " in d.refused()
    assert file.read_bytes() == before


# ---- the network ---------------------------------------------------------------------------

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


STATUS = """#!/bin/sh
[ "$CNI_COMMAND" = STATUS ] || exit 2
[ ! -e %(dir)s/hang ] || { echo $$ >%(dir)s/pid; exec sleep infinity; }
[ -e %(dir)s/away ] || exit 0
echo '{"cniVersion": "1.1.0", "code": 50, "msg": "the controller is away"}'
exit 1
"""


def with_status(d):
    """Configures a network of CNI 1.1.0 whose plugin is controlled by files in the daemon's directory."""
    (d.bin / "bridge").write_text(STATUS % {"dir": d.dir})
    (d.bin / "bridge").chmod(0o755)
    (d.net / "10-net.conflist").write_text(CONFLIST.replace("1.0.0", "1.1.0") % "polled")


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


def cidr(text):
    return field(1, field(1, field(1, text)))


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
    assert status == 1 and text.startswith('INVALID_ARGUMENT pod CIDR "10.7.0.0": ')
    status, text = d.call("UpdateRuntimeConfig", cidr("10.7.0.0/24"))
    assert (status, text) == (1, "INVALID_ARGUMENT render the network template: %s: line 1: "
                              "{{.Nothing}}: unknown value" % (d.dir / "template"))
    assert list(d.net.iterdir()) == []


# ---- instances, sockets, systemd -----------------------------------------------------------

def test_a_second_daemon_with_the_same_state_or_root_directory_is_refused(make):
    d = make().start()
    assert make().refused() == ("another hawser-cri uses the state directory %s" % d.state)
    assert d.call("Version")[0] == 0
    other = make(name="other")
    other.command += ["--root", d.dir / "root"]
    assert "root directory: " in other.refused()
    make(name="two").start()
    assert d.call("Version")[0] == 0


def test_a_socket_of_another_process_is_not_replaced(make, tmp_path):
    d = make().start()
    other = make("--metrics-address", "unix:%s" % (tmp_path / "m"), name="other")
    other.command[other.command.index("unix:" + other.socket)] = "unix:" + d.socket
    assert "listen on unix:%s: " % d.socket in other.refused()
    assert d.call("Version")[0] == 0
    assert not (tmp_path / "m").exists()


def test_the_daemon_starts_again_after_it_was_killed(make):
    d = make().start()
    d.process.kill()
    d.process.wait(LONG)
    assert os.path.exists(d.socket)
    d.start()
    assert d.call("Version")[0] == 0


def test_the_socket_has_the_configured_owner(make):
    d = make("--socket-owner", "12").start()
    mode = os.stat(d.socket)
    assert stat.S_IMODE(mode.st_mode) == 0o600 and mode.st_uid == 12
    d = make("--socket-owner", "12:34", name="two").start()
    mode = os.stat(d.socket)
    assert stat.S_IMODE(mode.st_mode) == 0o660 and (mode.st_uid, mode.st_gid) == (12, 34)


class Manager:
    """Receives notifications as systemd does on NOTIFY_SOCKET."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(LONG)

    def receive(self):
        return self.socket.recv(4096).decode()


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_notified_of_start_reload_and_stop(make, tmp_path, abstract):
    path = str(tmp_path / "notify")
    manager = Manager("\0" + path if abstract else path)
    d = make(env={"NOTIFY_SOCKET": "@" + path if abstract else path}).start()
    assert manager.receive() == "READY=1"
    d.signal(signal.SIGHUP)
    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", manager.receive())
    assert manager.receive() == "READY=1"
    assert d.stop() == 0
    assert manager.receive() == "STOPPING=1"
    manager.socket.close()


def test_a_socket_passed_by_systemd_is_used_and_not_removed(make, tmp_path):
    path = str(tmp_path / "given")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    d = make(prefix=["bash", "-c", 'exec 3<&%d; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@"'
                     % listener.fileno(), "-"])
    with_status(d)  # its plugin inherits the daemon's environment
    (d.bin / "bridge").write_text("#!/bin/sh\n[ ! -e %(dir)s/environment ] || exit 0\nenv >%(dir)s/new && mv %(dir)s/new %(dir)s/environment\n" % {"dir": d.dir})
    d.start(pass_fds=[listener.fileno()])
    assert not os.path.exists(d.socket)
    d.socket = path
    assert d.call("Version")[0] == 0
    wait_until((d.dir / "environment").exists)
    assert not [l for l in (d.dir / "environment").read_text().splitlines() if l.startswith("LISTEN_")]
    assert d.stop() == 0
    assert os.path.exists(path)
    listener.close()


def test_an_invalid_descriptor_in_listen_fds_is_refused(make, tmp_path):
    d = make(prefix=["bash", "-c", 'exec 3</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; '
                     'exec "$@"', "-"])
    assert "descriptor 3 of LISTEN_FDS: " in d.refused()
    d = make(prefix=["env", "LISTEN_PID=1", "LISTEN_FDS=1"], name="two").start()
    assert d.call("Version")[0] == 0


# ---- reloading -----------------------------------------------------------------------------

def test_a_reload_applies_changes_and_logs_keys_that_need_a_restart(make):
    d = make(config="log-level: info\n").start()
    d.call("Version")
    assert "served method=Version" not in d.log()
    d.config.write_text("log-level: debug\nlong-calls: 3\n")
    d.signal(signal.SIGHUP)
    d.logged("configuration reloaded")
    assert "changed key takes effect after a restart key=long-calls" in d.log()
    d.call("Version")
    d.logged("served method=Version call=")
    # flags still override the file: listener and directories
    assert "key=listen" not in d.log() and "key=root" not in d.log()


def test_reload_of_an_invalid_file_changes_nothing(make):
    d = make(config="log-level: debug\n").start()
    d.config.write_text("log-level: error\nnonsense: 1\n")
    d.signal(signal.SIGHUP)
    d.logged("reload failed, configuration unchanged: %s: line 2: nonsense: unknown key" % d.config)
    d.call("Version")
    d.logged("served method=Version call=")


def test_reload_of_a_deleted_file_changes_nothing(make):
    d = make()
    at = d.command.index("--config")
    del d.command[at:at + 2]
    default = pathlib.Path("/etc/hawser/hawser.yaml")
    default.parent.mkdir(exist_ok=True)
    default.write_text("log-level: debug\n")
    d.start()
    default.unlink()
    d.signal(signal.SIGHUP)
    d.logged("reload failed, configuration unchanged: ")
    d.call("Version")
    d.logged("served method=Version call=")


def test_the_json_log_contains_the_call_id(make):
    d = make("--log-format", "json", "--log-level", "debug")
    with open(d.dir / "log", "wb") as log:
        d.process = subprocess.Popen(d.command, stderr=log)
    d.logged('"msg":"ready"')
    d.call("ImageStatus")
    d.logged("call failed")
    lines = [json.loads(line) for line in d.log().splitlines()]
    failed = [line for line in lines if line["msg"] == "call failed"]
    assert len(failed) == 1 and failed[0]["method"] == "ImageStatus"
    assert failed[0]["call"].isdigit() and failed[0]["program"] == "hawser-cri"


# ---- metrics -------------------------------------------------------------------------------

class UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=LONG)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def get(connection, path="/metrics", method="GET"):
    connection.request(method, path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.getheader("content-type"), text


def values(text):
    """Returns {name with labels: number}; checks the format."""
    found, typed = {}, set()
    for line in text.splitlines():
        if line.startswith("#"):
            typed.add(line.split()[2])
            continue
        name, number = re.fullmatch(r'(\w+(?:\{[^}]*\})?) (\S+)', line).groups()
        assert name not in found
        assert re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", name) in typed
        found[name] = float(number)
    return found


def test_idle_connections_do_not_lock_out_a_client(make, tmp_path):
    path = str(tmp_path / "metrics")
    d = make("--metrics-address", "unix:" + path).start()
    idle = [socket.socket(socket.AF_UNIX) for _ in range(300)]
    for s in idle:
        s.connect(str(d.socket))
    assert d.call("Version")[0] == 0
    found = values(get(UnixHTTP(path))[2])
    assert found["hawser_cri_idle_connections_closed_total"] >= 45 and found["hawser_cri_connections_refused_total"] == 0
    assert d.log().count("too many connections action=") == 1
    for s in idle:
        s.close()


def test_metrics_are_served_on_a_unix_socket(make, tmp_path):
    path = str(tmp_path / "metrics")
    d = make("--metrics-address", "unix:" + path).start()
    for _ in range(3):
        d.call("Version")
    d.call("ListContainers")
    status, kind, text = get(UnixHTTP(path))
    assert status == 200 and kind.startswith("text/plain; version=0.0.4")
    found = values(text)
    service = 'method="runtime.v1.RuntimeService/'
    assert found["hawser_cri_calls_total{" + service + 'Version",code="OK"}'] == 3
    assert found["hawser_cri_calls_total{" + service + 'ListContainers",code="UNIMPLEMENTED"}'] == 1
    assert found["hawser_cri_call_seconds_count{" + service + 'Version"}'] == 3
    assert found["hawser_cri_call_seconds_bucket{" + service + 'Version",le="+Inf"}'] == 3
    assert found["hawser_images"] == 0 and found["process_threads"] >= 1
    assert found["process_resident_memory_bytes"] > 1 << 20
    # process_open_fds includes the connection of the request for the metrics
    wait_until(lambda: len(os.listdir("/proc/%d/fd" % d.process.pid)) ==
               found["process_open_fds"] - 1)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert d.stop() == 0
    assert not os.path.exists(path) and not os.path.exists(d.socket)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_metrics_are_served_on_a_port_and_invalid_requests_are_refused(make):
    port = free_port()
    d = make("--metrics-address", "127.0.0.1:%d" % port).start()

    def dial():
        return http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)

    assert get(dial())[0] == 200
    assert get(dial(), "/metrics?x=1")[0] == 200
    assert get(dial(), "/")[0] == 404
    assert get(dial(), "/metricsx")[0] == 404
    assert get(dial(), method="POST")[0] == 405
    for data in (b"nonsense\r\n\r\n", b"GET /metrics\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(data)
            assert s.makefile().readline() == "HTTP/1.1 400 Bad Request\n"
    with socket.create_connection(("127.0.0.1", port)) as s:
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                s.sendall(b"x" * 1000)
            s.recv(1)
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    assert d.call("Version")[0] == 0
    for s in crowd:
        s.close()
    wait_until(lambda: get_or_none(dial) == 200)


def get_or_none(dial):
    try:
        return get(dial())[0]
    except (ConnectionError, http.client.HTTPException):
        return None


def test_a_metrics_port_that_is_in_use_is_refused(make):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        text = make("--metrics-address", address).refused()
    assert text.startswith("serve metrics at %s: " % address) and "Address already in use" in text


# ---- load and stopping ---------------------------------------------------------------------

@pytest.mark.skipif(not shutil.which("h2load"), reason="nghttp2-client is not installed")
@pytest.mark.parametrize("method", ["RuntimeService/Status", "ImageService/ListImages"])
def test_many_calls_succeed_during_reloads(make, tmp_path, method):
    d = make("--metrics-address", "unix:%s" % (tmp_path / "m")).start()
    d.add_plugin()
    (tmp_path / "body").write_bytes(bytes(5))
    load = subprocess.Popen(["h2load", "-n", "8000", "-c", "8", "-m", "16",
                             "-d", tmp_path / "body", "-H", "content-type: application/grpc",
                             "-H", "te: trailers", "-B", "unix:" + d.socket,
                             "http://localhost/runtime.v1." + method],
                            stdout=subprocess.PIPE, text=True)
    rounds = 0
    while load.poll() is None or rounds == 0:
        (d.net / "10-net.conflist").write_text(CONFLIST % ("n%d" % rounds))
        d.signal(signal.SIGHUP)
        assert get(UnixHTTP(str(tmp_path / "m")))[0] == 200
        rounds += 1
        d.logged("configuration reloaded", rounds)
    assert "8000 succeeded, 0 failed, 0 errored, 0 timeout" in load.communicate()[0]
    assert d.call("Version")[0] == 0


def test_idle_clients_do_not_delay_stopping(make):
    d = make("--drain-timeout", "600").start()  # longer than this test waits
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    for c in crowd:
        c.connect(d.socket)
    with d.dial() as channel:
        channel.unary_unary("/runtime.v1.RuntimeService/Version")(b"", timeout=LONG)
        assert d.stop() == 0
    for c in crowd:
        c.close()


def test_concurrent_calls_succeed(make):
    d = make().start()
    with d.dial() as channel, concurrent.futures.ThreadPoolExecutor(8) as pool:
        def update(i):
            return channel.unary_unary("/runtime.v1.RuntimeService/UpdateRuntimeConfig")(
                cidr("10.%d.0.0/24" % (i % 200)), timeout=LONG)
        assert list(pool.map(update, range(400))) == [b""] * 400
    assert re.fullmatch(r"10\.\d+\.0\.0/24", (d.state / "pod-cidr").read_text())
    assert not [f for f in d.state.iterdir() if f.name.startswith(".")]
