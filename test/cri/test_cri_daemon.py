# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_daemon.py - the program hawser-cri: its command line, status, reloading, stopping

What:  one daemon per test, in its own directories, called with Google's gRPC (python3-grpcio) and
       with cri-call.
Not:   pulling images: test_cri_pull.py.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
import cridocs
from cridaemon import DAEMON, field, fields_of
from hawsercli import hawser
from program import CONFLIST, UnixHTTP, cidr, get, make  # noqa: F401, a fixture
from waiting import LONG, wait_until

SOURCE = pathlib.Path(os.environ["HAWSER_SRC"])


# ---- the command line ----------------------------------------------------------------------

def run(*words):
    done = subprocess.run([DAEMON, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=LONG)
    return done.returncode, done.stdout, done.stderr


def test_help_lists_the_flags_and_version_prints_the_version():
    assert run("--version") == (0, "hawser-cri 0.2.0\n", "")
    for words in (["--version"], ["--help"], ["--print-config"]):
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", DAEMON, *words], stderr=subprocess.PIPE, text=True)
        # the errno of a write before the last one is lost
        assert done.returncode == 1 and re.search("write to standard output: (Bad file descriptor|Input/output error)",
                                                  done.stderr)
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
    assert fields["runtime_handlers.0.features.recursive_read_only_mounts"] == "1"
    assert "info.0.key" not in d.call("Status")[1]


def test_the_runtime_is_not_ready_without_crun_and_conmon(make, tmp_path):
    d = make().start()
    assert d.call("Status")[1]["status.conditions.0.status"] == "1"
    assert d.stop() == 0
    d.env["PATH"] = path = str(tmp_path)
    d.start()
    shutil.copy(shutil.which("crun"), tmp_path / "crun")
    fields = d.call("Status")[1]
    assert fields["status.conditions.0.type"] == "RuntimeReady"
    assert fields["status.conditions.0.status"] == "0"
    assert fields["status.conditions.0.reason"] == "RuntimeNotReady"
    assert fields["status.conditions.0.message"] == "conmon not found in " + path
    (tmp_path / "crun").chmod(0o644)
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
    runtime = [m for s, m in methods() if s == "RuntimeService"]
    assert len(runtime) == 37
    with d.dial() as channel:
        for method in cridocs.unimplemented():
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary("/runtime.v1.RuntimeService/" + method)(b"", timeout=LONG)
            assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
            text, _, reason = caught.value.details().partition(": ")
            assert text == "%s is not implemented by hawser-cri 0.2.0" % method
            assert bool(reason) == (method == "CheckpointContainer")


@pytest.mark.parametrize("features,reason", [("+SECCOMP", ": %s (crun version 1.8.1) was built without CRIU"),
                                             ("+SECCOMP +CRIU", "")])
def test_a_checkpoint_is_refused_with_the_reason(make, tmp_path, features, reason):
    crun = tmp_path / "crun"
    crun.write_text("#!/bin/sh\necho crun version 1.8.1\necho %s\n" % features)
    crun.chmod(0o755)
    d = make()
    d.env["PATH"] = "%s:%s" % (tmp_path, os.environ["PATH"])
    d.start()
    with d.dial() as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/runtime.v1.RuntimeService/CheckpointContainer")(b"", timeout=LONG)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    text = "CheckpointContainer is not implemented by hawser-cri 0.2.0"
    assert caught.value.details() == text + (reason % crun if reason else "")


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


# another value for each key that is not a flag of the daemon under test
OTHER_VALUES = {
    "socket-owner": "root", "netns-dir": "/x", "cni-conf-template": "/x", "network-timeout": 1,
    "default-network": "true", "gc-networks": "[a]", "runtime-handler": "[a=/x]",
    "default-sysctls": "[net.ipv4.ip_forward=1]", "default-capabilities": "[KILL]",
    "registry-mirror": "[a.example=https://b.example]",
    "plain-http": "[a.example]", "auth-file": "/x", "certs-dir": "/x", "fetch-uid": 4711,
    "decompression-limit": 1 << 30, "disk-reserve": 1, "pull-timeout": 1, "keep-blobs": "true",
    "pinned-images": "[a]", "cgroup-driver": "cgroupfs", "stream-address": "127.0.0.1:1",
    "metrics-address": "unix:/x", "long-calls": 3, "pulls-per-registry": 1, "drain-timeout": 1,
    "log-level": "debug", "log-format": "text"}


def test_the_manual_page_lists_the_keys_that_a_reload_applies(make):
    d = make().start()
    flags = {word[2:] for word in map(str, d.command) if word.startswith("--")} - {"config"}
    assert {*OTHER_VALUES, *flags} == set(re.findall(r"^([a-z-]+):", run("--print-config")[1], re.M))
    d.config.write_text("".join("%s: %s\n" % pair for pair in OTHER_VALUES.items()))
    d.signal(signal.SIGHUP)
    d.logged("configuration reloaded")
    ignored = re.findall(r"changed key takes effect after a restart key=(\S+)", d.log())
    page = (SOURCE / "man/hawser-cri.8").read_text()
    listed = page.partition("Reload the configuration.")[2].partition("take effect at once.")[0]
    assert sorted(re.findall(r"^\.Cm ([a-z-]+)", listed, re.M)) == sorted({*OTHER_VALUES} - {*ignored})


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


def test_a_stream_of_events_does_not_delay_stopping(make):
    d = make("--drain-timeout", "600").start()  # longer than this test waits
    with d.dial() as channel:
        stream = channel.unary_stream("/runtime.v1.RuntimeService/GetContainerEvents")(b"")
        wait_until(lambda: re.search(r"long calls\s+1,", hawser("--runtime", "unix:" + d.socket, "info")[1]))
        assert d.stop() == 0
        with pytest.raises(grpc.RpcError) as info:
            next(stream)
        assert info.value.code() == grpc.StatusCode.UNAVAILABLE


def test_concurrent_calls_succeed(make):
    d = make().start()
    with d.dial() as channel, concurrent.futures.ThreadPoolExecutor(8) as pool:
        def update(i):
            return channel.unary_unary("/runtime.v1.RuntimeService/UpdateRuntimeConfig")(
                cidr("10.%d.0.0/24" % (i % 200)), timeout=LONG)
        assert list(pool.map(update, range(400))) == [b""] * 400
    assert re.fullmatch(r"10\.\d+\.0\.0/24", (d.state / "pod-cidr").read_text())
    assert not [f for f in d.state.iterdir() if f.name.startswith(".")]
