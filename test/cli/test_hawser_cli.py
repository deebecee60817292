# SPDX-License-Identifier: Apache-2.0
# Needs: no root
"""
test/cli/test_hawser_cli.py - the program hawser: arguments, output, errors

How:   the runtime is a fake in Python (hawsercli.py) that returns what a test needs, also malicious
       responses. test_hawser_runtimes.py tests with real runtimes.
"""
import datetime
import json
import os
import socket
import struct
import subprocess
import threading

import pytest

from fakeruntime import ID, image, runtime, serve_list  # noqa: F401, a fixture
from hawsercli import HAWSER, environment, hawser, message


# ---- arguments ---------------------------------------------------------------------------------

def test_the_version_option_prints_the_version():
    assert hawser("--version") == (0, "hawser 0.2.0\n", "")
    assert hawser("pull", "-V") == (0, "hawser 0.2.0\n", "")


@pytest.mark.parametrize("words, expected", [
    (["bogus"], 'unknown command "bogus"'),
    (["image"], 'unknown command "image"'),
    (["help", "bogus"], 'unknown command "bogus"'),
    (["--bogus", "images"], "unknown option --bogus"),
    (["images", "--repair"], "unknown option --repair"),
    (["images", "--timeuot", "1"], "unknown option --timeuot: did you mean --timeout?"),
    (["--timeout", "1", "images", "--timeout", "2"], "option --timeout is given twice"),
    (["image", "bogus"], 'unknown command "image bogus"'),
    (["images", "a", "b"], "too many arguments"),
    (["rmi"], "missing argument"),
    (["images", "--timeout", "soon"], 'invalid value "soon" for --timeout: want a number of seconds'),
    (["images", "--runtime"], "option --runtime requires a value"),
    (["images", "--runtime", "tcp:1"], 'invalid value "tcp:1" for --runtime: want the path of a socket'),
    (["pull", "a", "--password-stdin"], "--password-stdin requires --creds USER"),
    (["pull", "a", "--creds", ":x"], "invalid value for --creds: want USER or USER:PASSWORD"),
    (["pull", "a", "--creds", "u:x", "--password-stdin"], "--password-stdin conflicts with the password in --creds"),
    (["save", "a", "--format", "zip"], 'invalid value "zip" for --format: want oci or docker'),
])
def test_invalid_arguments_are_refused_with_the_reason(words, expected):
    status, text, errors = hawser(*words)
    assert (status, text) == (2, "") and errors.startswith("hawser: ")
    assert expected in errors.splitlines()[0]
    error = json.loads(hawser("--json", *words)[2])
    assert expected in error["msg"] and error["code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("words, expected", [
    (["imagse"], 'did you mean "hawser images"? Run "hawser help" for a list of commands'),
    (["history", "a"], 'did you mean "hawser image history"? Run "hawser help" for a list of commands'),
    (["image"], "commands are image inspect, image history, image verify, image recover;"
                ' run "hawser help" for a list of commands'),
    (["rmi"], 'usage: hawser [OPTIONS] rmi IMAGE...; run "hawser help rmi" for help'),
    (["--bogus"], 'run "hawser help" for a list of options'),
])
def test_usage_errors_have_a_hint(words, expected):
    assert hawser(*words)[2].splitlines()[1] == "hint: " + expected


def test_an_alias_has_the_help_of_its_command():
    for alias, name in {"image pull": "pull", "image ls": "images", "image rm": "rmi",
                        "image load": "load", "image save": "save"}.items():
        text = hawser("help", *alias.split())[1]
        assert text == hawser("help", name)[1] and 'also available as "hawser %s"' % alias in text


def complete(*words, compopt=":", program="hawser"):
    """The completions of bash for a command line; the last word is incomplete."""
    script = """source "$HAWSER_SRC/completions/%s"; COMP_WORDS=(%s "$@")
                compopt() { %s; }
                COMP_CWORD=$#; _%s %s; echo "${COMPREPLY[@]}" """ % (
                    program, program, compopt, program.replace("-", "_"), program)
    return subprocess.run(["bash", "-c", script, "bash", *words], stdout=subprocess.PIPE, check=True,
                          text=True, env=environment(PATH="%s:%s" % (HAWSER.parent, os.environ["PATH"]))
                          ).stdout.split()


def test_completion_offers_commands_options_and_image_names(runtime, tmp_path, monkeypatch):
    serve_list(runtime)
    assert complete("image", "") == ["inspect", "history", "verify", "recover"]
    assert complete("pull", "--pl") == ["--platform"]
    given = ["--runtime", "unix:" + runtime.path]
    assert complete(*given, "rmi", "busy") == ["busybox:1"]
    assert complete(*given, "image", "inspect", "busy") == ["busybox:1"]
    given = ["--runtime", "unix", ":", runtime.path]  # bash splits words at colons
    assert complete(*given, "rmi", "busybox", ":", "") == ["1"]
    assert complete(*given, "rmi", "busybox", ":") == ["1"]
    assert complete(*given, "rmi", "x", "zoo") == ["zoo:2"]
    assert complete("save", "--format", "") == ["oci", "docker"]
    assert complete("--runtime", "") == ["unix:/run/hawser/cri.sock", "unix:/run/containerd/containerd.sock"]
    (tmp_path / "tool.tar").touch()
    monkeypatch.chdir(tmp_path)
    assert complete("load", "to") == complete("save", "-o", "to") == ["tool.tar"]
    assert complete("--runtime", "unix:/nowhere", "rmi", "") == []


def test_completion_completes_a_value_after_an_equals_sign(runtime, tmp_path, monkeypatch):
    (tmp_path / "tool.tar").touch()
    monkeypatch.chdir(tmp_path)
    serve_list(runtime)
    sockets = ["/run/hawser/cri.sock", "/run/containerd/containerd.sock"]
    # bash splits words at equals signs and colons, and replaces only the last part
    assert complete("save", "--format", "=") == complete("save", "--format", "=", "") == ["oci", "docker"]
    assert complete("save", "--format", "=", "d") == ["docker"]
    assert complete("save", "--output", "=", "to") == ["tool.tar"]
    assert complete("--runtime", "=", "un") == ["unix:" + s for s in sockets]
    assert complete("--runtime", "=", "unix", ":") == sockets
    assert complete("--runtime", "=", "unix", ":", runtime.path, "rmi", "busybox", ":") == ["1"]
    # COMP_WORDBREAKS without them
    assert complete("save", "--format=d") == ["--format=docker"]
    assert complete("save", "--output=to") == ["--output=tool.tar"]


def test_completion_of_hawser_cri_completes_a_value_after_an_equals_sign():
    assert complete("--log-level", "w", program="hawser-cri") == ["warn"]
    assert complete("--log-level", "=", "w", program="hawser-cri") == ["warn"]
    assert complete("--log-level", "=", program="hawser-cri") == ["error", "warn", "info", "debug"]
    assert complete("--default-network", "t", program="hawser-cri") == ["true"]


def test_completion_leaves_out_names_that_the_shell_would_interpret(runtime, tmp_path):
    names = ["good:1", "a$(touch${IFS}%s/ran)" % tmp_path, "b`touch${IFS}%s/ran`" % tmp_path, "c;d", "e f"]
    runtime.methods["ListImages"] = lambda request, context: message((1, image(ID, names)))
    assert complete("--runtime", runtime.path, "rmi", "") == ["good:1"]
    assert not (tmp_path / "ran").exists()


def test_completion_lets_bash_quote_file_names(tmp_path, monkeypatch):
    (tmp_path / "tool.tar").touch()
    monkeypatch.chdir(tmp_path)
    assert complete("load", "to", compopt='echo "$@"') == ["-o", "filenames", "tool.tar"]
    assert complete("pull", "--pl", compopt='echo "$@"') == ["--platform"]


# ---- connection errors -------------------------------------------------------------------------

def test_a_missing_socket_is_reported_with_a_hint(tmp_path):
    status, text, errors = hawser("--runtime", "unix:%s/none" % tmp_path, "images")
    assert (status, text) == (1, "")
    assert errors == ("hawser: list images: connect to %s/none: No such file or directory\n"
                      "hint: is hawser-cri running? Use --runtime unix:PATH for the socket of another"
                      " runtime\n" % tmp_path)
    status, text, errors = hawser("--json", "--runtime", "%s/none" % tmp_path, "images")
    assert (status, text) == (1, "")
    error = json.loads(errors)
    assert error["code"] == "UNAVAILABLE" and "hawser-cri" in error["hint"]


def test_a_refused_connection_is_reported_with_a_hint(tmp_path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "dead"))
    errors = hawser("--runtime", "unix://%s/dead" % tmp_path, "info")[2]
    assert "Connection refused\nhint: no process listens on this socket: is hawser-cri running?\n" in errors


def test_the_reason_why_the_runtime_closes_the_connection_is_reported(tmp_path):
    why = b"too many connections: limit 256, none is idle"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "full"))
        s.listen()

        def refuse():
            with s.accept()[0] as peer:  # SETTINGS; GOAWAY with the code ENHANCE_YOUR_CALM
                peer.sendall(b"\0\0\0\4\0\0\0\0\0" + struct.pack(">I", 8 + len(why))[1:] + b"\7\0\0\0\0\0"
                             + struct.pack(">II", 0, 11) + why)
        thread = threading.Thread(target=refuse)
        thread.start()
        status, text, errors = hawser("--runtime", "unix:%s/full" % tmp_path, "images")
        thread.join()
    assert (status, text) == (1, "")
    assert errors.startswith("hawser: list images: server closed the connection: " + why.decode() + "\n")


def test_the_runtime_option_overrides_the_environment(runtime, tmp_path):
    endpoint = {"CONTAINER_RUNTIME_ENDPOINT": "unix://" + runtime.path}
    assert "fake" in hawser("version", **endpoint)[1]
    # the option takes precedence
    other = tmp_path / "other.sock"
    assert str(other) in hawser("--runtime", "unix:%s" % other, "version", **endpoint)[2]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run as another user")
def test_a_socket_that_the_user_has_no_permission_to_open_is_reported_with_a_hint(runtime, tmp_path):
    os.chmod(runtime.path, 0o600)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
            os.chmod(parent, 0o711)
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", HAWSER, "--runtime",
                           "unix:" + runtime.path, "images"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "Permission denied\nhint: only root and the owner of the socket may connect: run hawser as root\n" in done.stderr


def test_a_runtime_that_does_not_respond_times_out(tmp_path):
    """The runtime accepts the connection and sends nothing."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "silent"))
        s.listen()
        status, _, errors = hawser("--runtime", "unix:%s/silent" % tmp_path, "--timeout", "1", "images")
    assert status == 1 and "hint: use --timeout SECONDS for a longer timeout\n" in errors


def test_a_server_that_is_not_a_runtime_is_reported(tmp_path):
    def serve(s):
        with s.accept()[0] as c:
            c.sendall(b"SSH-2.0-no\r\n" * 10)
            c.recv(1000)

    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "ssh"))
        s.listen()
        threading.Thread(target=serve, args=(s,), daemon=True).start()
        status, text, errors = hawser("--runtime", "unix:%s/ssh" % tmp_path, "images")
    assert (status, text) == (1, "") and errors.startswith("hawser: list images: ")


# ---- info, version, unsupported calls ----------------------------------------------------------

def serve_info(runtime):
    condition = message((1, "RuntimeReady"), (2, 1))
    other = message((1, "NetworkReady"), (3, "NetworkPluginNotReady"), (4, "no network"))
    usage = message((1, 5), (2, message((1, "/var/lib/fake"))), (3, message((1, 5000))), (4, message((1, 3))))
    runtime.methods.update(
        Status=lambda request, context: message((1, message((1, condition), (1, other)))),
        ImageFsInfo=lambda request, context: message((1, usage)))


def test_info_shows_the_runtime_and_the_daemon(runtime):
    serve_info(runtime)
    plain = ("hawser        0.2.0\n"
             "runtime       fake 7.1\n"
             "api           CRI v1\n"
             "socket        " + runtime.path + "\n"
             "RuntimeReady  yes\n"
             "NetworkReady  no: NetworkPluginNotReady: no network\n"
             "image store   /var/lib/fake (5.0 kB)\n")
    assert runtime.run("info") == (0, plain, "")
    value = json.loads(runtime.run("info", "--json")[1])
    assert sorted(value) == ["imageFsInfo", "status", "version"]
    assert value["imageFsInfo"]["imageFilesystems"][0]["usedBytes"] == {"value": 5000}
    started = int(datetime.datetime.now().timestamp() - 3 * 3600 - 60) * 10**9
    runtime.methods["Info"] = lambda request, context: message(
        (1, "7.1"), (2, started), (3, 42), (4, "/r"), (5, "/s"), (7, 2), (8, 9), (9, 7000), (10, 1),
        (11, 512), (12, "6.1"))
    assert runtime.run("info") == (0, plain + (
        "process       42, running for 3h\n"
        "images        2, with 9 layers (7.0 kB)\n"
        "root          /r\n"
        "state         /s\n"
        "config        none\n"
        "long calls    1, at most 512\n"
        "kernel        6.1\n"), "")
    assert json.loads(runtime.run("info", "--json")[1])["daemon"]["pid"] == 42


def test_version_shows_hawser_and_the_runtime(runtime, tmp_path):
    assert runtime.run("version") == (
        0, "hawser        0.2.0\nruntime       fake 7.1\napi           CRI v1\n", "")
    value = json.loads(runtime.run("version", "--json")[1])
    assert value["hawser"] == "0.2.0" and value["runtime"]["runtimeName"] == "fake"
    status, text, errors = hawser("--runtime", "unix:%s/none" % tmp_path, "version")
    assert (status, text) == (1, "hawser        0.2.0\n") and "is hawser-cri running?" in errors


def test_a_runtime_without_cri_is_reported_with_a_hint(runtime):
    """Like containerd with its CRI plugin disabled."""
    for words in (["images"], ["pull", "a"], ["image", "inspect", "a"]):
        status, text, errors = runtime.run(*words)
        assert (status, text) == (1, "")
        assert "\nhint: does the runtime support CRI v1? " in errors
    del runtime.methods["Version"]
    errors = runtime.run("save", "a")[2]
    assert errors.startswith("hawser: save: not supported by the runtime at %s\n" % runtime.path)


@pytest.mark.parametrize("words", [["load"], ["save", "a"], ["image", "verify"], ["image", "recover"]])
def test_an_unsupported_call_is_reported_with_a_hint(runtime, words):
    name = " ".join(w for w in words if w != "a")
    status, text, errors = runtime.run(*words, stdin=b"x")
    assert (status, text) == (1, "")
    assert errors == ("hawser: %s: not supported by fake 7.1\nhint: this requires hawser-cri of the same version"
                      " as hawser, or later\n" % name)
    error = json.loads(runtime.run("--json", *words, stdin=b"x")[2])
    assert error["code"] == "UNIMPLEMENTED"
