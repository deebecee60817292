# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_seccomp.py - seccomp profiles of containers: which are in force, how they are found and compiled

What:  a container shows its filter in /proc/self/status, and tries forbidden system calls with the Python of the
       host, whose files it mounts.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CONTAINER, NODE, containers, has_ended  # noqa: F401, a fixture
from cridaemon import BUILD
from poddaemon import refused
from waiting import wait_until

DEFAULT, UNCONFINED, LOCALHOST = range(3)
FIELD = "linux.security_context.seccomp"
HELPER = BUILD / "bin/hawser-seccomp"
EPERM, ENOSYS = 1, 38
ADMIN = {"add_capabilities": ["SYS_ADMIN"]}
# names of calls, each with code that makes it; a call that is not refused fails in another way, or succeeds
CALLS = {
    "keyctl": "libc.syscall(%d, 0, -3, 0, 0, 0)" % (250 if os.uname().machine == "x86_64" else 219),
    "unshare": "libc.unshare(0x20000)",
    "mount": "libc.mount(b'', b'/does/not/exist', b'', 0, b'')",
    "clone3": "libc.syscall(435, 0, 0)",
    "vsock": "libc.socket(40, 1, 0)",
    "io_uring_setup": "libc.syscall(425, 0, 0)",
    "newer": "libc.syscall(1000)",
    "chmod": "libc.fchmodat(-100, b'/does/not/exist', 0o700, 0)",
    "getpid": "libc.getpid()",
}
PYTHON = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(function):
    ctypes.set_errno(0)
    return 0 if function() >= 0 else ctypes.get_errno()
"""


def host_files():
    return [{"container_path": path, "host_path": os.path.realpath(path), "readonly": True}
            for path in ("/usr", "/lib", "/lib64") if os.path.exists(path)]


def script_of(names):
    return PYTHON + "".join("print(call(lambda: %s))\n" % CALLS[name] for name in names)


def errors_of(d, pod, *names, **more):
    """What the calls fail with in a container, by their names; 0: they succeed."""
    command = ["/usr/bin/python3", "-c", script_of(names)]
    d.cri.outputs += 1
    status = d.cri.run_to_end(pod, command, mounts=host_files(), name="try%d" % d.cri.outputs, **more)
    printed = d.cri.printed(status.id)
    assert status.exit_code == 0, printed
    return dict(zip(names, map(int, printed)))


def filters(d, pod, **more):
    """The number of filters of a process in a container, without those of this host."""
    def number(text):
        return int(re.search(r"Seccomp_filters:\s*(\d+)", text)[1])
    own = number(pathlib.Path("/proc/self/status").read_text())
    return number("\n".join(d.cri.output(pod, "cat /proc/self/status", **more))) - own


def kept(d):
    return sorted(f.name for f in (d.state / "seccomp").iterdir())


def profile(tmp_path, text, name="profile.json"):
    path = tmp_path / name
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return {"profile_type": LOCALHOST, "localhost_ref": str(path)}


def deny(*names, **rule):
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": names, "action": "SCMP_ACT_ERRNO", **rule}]}


# ---- RuntimeDefault ----------------------------------------------------------------------------

FORBIDDEN = {"keyctl": EPERM, "unshare": EPERM, "mount": EPERM, "clone3": ENOSYS, "vsock": EPERM, "io_uring_setup": EPERM,
             "newer": ENOSYS, "getpid": 0}


def test_the_default_profile_is_in_force_in_the_container_and_in_commands(containers):
    d = containers()
    pod = d.cri.pod()
    default = {"profile_type": DEFAULT}
    assert errors_of(d, pod, *FORBIDDEN, seccomp=default) == FORBIDDEN
    container = d.cri.run_container(pod, seccomp=default, mounts=host_files())
    assert re.search(r"Seccomp:\s*2", d.cri.sh(container, "cat /proc/self/status"))
    answer = d.cri.exec_sync(container, "/usr/bin/python3", "-c", script_of(FORBIDDEN))
    assert list(map(int, answer.stdout.split())) == list(FORBIDDEN.values()), answer


@pytest.mark.parametrize("seccomp", [None, {"profile_type": UNCONFINED}])
def test_without_a_profile_nothing_is_refused(containers, seccomp):
    d = containers()
    pod = d.cri.pod()
    more = {} if seccomp is None else {"seccomp": seccomp}
    assert filters(d, pod, **more) == 0
    found = errors_of(d, pod, "keyctl", "unshare", "clone3", "io_uring_setup", capabilities=ADMIN, **more)
    assert found["unshare"] == 0 and EPERM not in found.values() and found["clone3"] != ENOSYS, found
    assert kept(d) == []


def test_a_privileged_container_has_no_profile(containers, tmp_path):
    d = containers()
    options = {"network": NODE, "pid": CONTAINER}
    pod = d.cri.pod(linux={"security_context": {"privileged": True, "namespace_options": options}})
    for seccomp in ({"profile_type": DEFAULT}, profile(tmp_path, "nonsense")):
        assert filters(d, pod, privileged=True, seccomp=seccomp) == 0


def test_the_default_profile_allows_the_calls_that_a_capability_is_for(containers):
    d = containers()
    pod = d.cri.pod()
    default = {"profile_type": DEFAULT}
    ENOENT = 2
    assert errors_of(d, pod, "unshare", "mount", "keyctl", capabilities=ADMIN, seccomp=default) == {
        "unshare": 0, "mount": ENOENT, "keyctl": EPERM}
    assert errors_of(d, pod, "unshare", "mount", seccomp=default) == {"unshare": EPERM, "mount": EPERM}
    assert len(kept(d)) == 2  # one for each set of capabilities


def test_no_new_privs_and_another_user_have_the_filter_too(containers):
    d = containers()
    pod = d.cri.pod()
    for more in ({"no_new_privs": True}, {"run_as_user": {"value": 1000}},
                 {"no_new_privs": True, "run_as_user": {"value": 1000}}):
        assert filters(d, pod, seccomp={"profile_type": DEFAULT}, **more) == 1
    assert len(kept(d)) == 1


def test_an_annotation_of_the_client_does_not_replace_the_filter(containers):
    d = containers()
    allow = "BgAAAAAA/38="  # one instruction: return SECCOMP_RET_ALLOW
    assert errors_of(d, d.cri.pod(), "keyctl", seccomp={"profile_type": DEFAULT},
                     annotations={"run.oci.seccomp_bpf_data": allow}) == {"keyctl": EPERM}


# ---- Localhost ----------------------------------------------------------------------------------

def test_a_profile_of_the_node_in_the_form_of_oci(containers, tmp_path):
    d = containers()
    pod = d.cri.pod()
    assert errors_of(d, pod, "chmod", "keyctl", seccomp=profile(tmp_path, deny("chmod", "fchmodat", errnoRet=17)))[
        "chmod"] == 17
    # it may be changed at any time
    assert errors_of(d, pod, "chmod", seccomp=profile(tmp_path, deny("fchmodat", errnoRet=18)))["chmod"] == 18
    assert len(kept(d)) == 2


def test_a_profile_of_the_node_in_the_form_of_docker(containers, tmp_path):
    d = containers()
    pod = d.cri.pod()
    conditional = {**deny("fchmodat", errnoRet=17, includes={"caps": ["CAP_SYS_ADMIN"], "minKernel": "4.8"},
                          excludes={"arches": ["s390x"]}),
                   "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]},
                               {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]}]}
    seccomp = profile(tmp_path, conditional)
    assert errors_of(d, pod, "chmod", seccomp=seccomp, capabilities=ADMIN) == {"chmod": 17}
    assert errors_of(d, pod, "chmod", seccomp=seccomp) == {"chmod": 2}


@pytest.mark.parametrize("flags", [["SECCOMP_FILTER_FLAG_LOG"], ["SECCOMP_FILTER_FLAG_SPEC_ALLOW"]])
def test_flags_of_a_profile_reach_the_runtime_with_the_filter(containers, tmp_path, flags):
    d = containers()
    pod = d.cri.pod()
    seccomp = profile(tmp_path, {**deny("fchmodat", errnoRet=17), "flags": flags})
    assert errors_of(d, pod, "chmod", seccomp=seccomp) == {"chmod": 17}
    container = d.cri.create(pod, seccomp=seccomp)
    config = json.loads((d.bundle(container) / "config.json").read_text())
    assert config["linux"]["seccomp"]["flags"] == flags and "run.oci.seccomp_bpf_data" in config["annotations"]


@pytest.mark.parametrize("text,error", [
    ("", "profile PATH: "), ("[1]", "profile PATH: "),
    ("{}", "profile PATH: defaultAction: required key is missing"),
    ('{"defaultAction": "SCMP_ACT_NONE"}', 'profile PATH: defaultAction: unknown value "SCMP_ACT_NONE"'),
    ('{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"]}]}', "profile PATH: syscalls"),
    ('{"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/x"}', "profile PATH: listenerPath is not supported"),
])
def test_an_invalid_profile_is_refused_and_nothing_is_left(containers, tmp_path, text, error):
    d = containers()
    seccomp = profile(tmp_path, text)
    code, message = refused(d.cri.create, d.cri.pod(), seccomp=seccomp)
    assert code == "INVALID_ARGUMENT"
    assert message.startswith("%s: %s" % (FIELD, error.replace("PATH", seccomp["localhost_ref"])))
    assert d.cri.container_ids() == [] and kept(d) == []


def test_a_profile_has_at_most_a_mebibyte(containers, tmp_path):
    d = containers()
    pod = d.cri.pod()
    text = json.dumps(deny("fchmodat", errnoRet=17))
    assert errors_of(d, pod, "chmod", seccomp=profile(tmp_path, text.ljust(1 << 20))) == {"chmod": 17}
    code, message = refused(d.cri.create, pod, seccomp=profile(tmp_path, text.ljust((1 << 20) + 1)))
    assert code == "INVALID_ARGUMENT" and message.startswith(FIELD + ": localhost_ref: ")


def test_a_profile_must_be_a_file_with_an_absolute_path(containers, tmp_path):
    d = containers()
    pod = d.cri.pod()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dir").mkdir()
    for ref in (tmp_path / "missing.json", tmp_path / "fifo", tmp_path / "dir", "/dev/zero", "relative.json",
                "/etc/passwd/x"):
        code, message = refused(d.cri.create, pod, seccomp={"profile_type": LOCALHOST, "localhost_ref": str(ref)})
        assert code == "INVALID_ARGUMENT" and message.startswith(FIELD + ": localhost_ref: ") and str(ref) in message
    assert d.cri.container_ids() == []


# ---- handlers -----------------------------------------------------------------------------------

def test_a_handler_that_takes_no_compiled_filter_gets_the_profile(containers):
    runc = shutil.which("runc")
    if not runc:
        pytest.skip("runc is not installed")
    d = containers("--runtime-handler", "runc=" + runc)
    pod = d.cri.pod(handler="runc")
    default = {"profile_type": DEFAULT}
    assert filters(d, pod, seccomp=default) == 1
    assert errors_of(d, pod, *FORBIDDEN, seccomp=default) == FORBIDDEN
    container = d.cri.create(pod, seccomp=default)
    config = json.loads((d.bundle(container) / "config.json").read_text())
    assert config["linux"]["seccomp"]["defaultErrnoRet"] == EPERM
    assert "run.oci.seccomp_bpf_data" not in config["annotations"]


def test_a_handler_without_seccomp_is_refused_if_the_container_has_a_profile(containers, tmp_path):
    crun = tmp_path / "crun-without"
    crun.write_text('#!/bin/sh\nif [ "$1" = --version ]; then echo crun version 1.8.1; echo +YAJL; exit; fi\nexec %s "$@"\n'
                    % shutil.which("crun"))
    crun.chmod(0o755)
    d = containers("--runtime-handler", "without=%s" % crun)
    pod = d.cri.pod(handler="without")
    assert refused(d.cri.create, pod, seccomp={"profile_type": DEFAULT}) == (
        "FAILED_PRECONDITION", "%s: %s of the runtime handler has no support for seccomp" % (FIELD, crun))
    d.cri.run_container(pod)


# ---- hawser-seccomp -----------------------------------------------------------------------------

@pytest.fixture
def fake():
    """A function that puts a script in place of hawser-seccomp, in the mount namespace of this test."""
    mounted = []

    def install(path, commands):
        path.write_text("#!/bin/sh\nPATH=/usr/bin:/bin\n" + commands + "\n")
        path.chmod(0o755)
        subprocess.run(["mount", "--bind", path, HELPER], check=True)
        mounted.append(path)

    def remove():
        while mounted:
            mounted.pop()
            subprocess.run(["umount", HELPER], check=True)
    install.remove = remove
    yield install
    remove()


@pytest.mark.parametrize("commands,error", [
    ("kill -9 $$", "hawser-seccomp: signal: killed"),
    ("exit 2", "hawser-seccomp: exit status 2"),
    ("echo 12345678901234567890123", "hawser-seccomp: malformed filter of 24 bytes"),
    ("head -c 1000000 /dev/zero", "the compiled filter has more than 4096 instructions"),
    ("echo $$ >%(dir)s/pid; kill -STOP $$", None),
])
def test_a_failure_of_hawser_seccomp_fails_that_create_and_leaves_nothing(containers, tmp_path, fake, commands, error):
    d = containers()
    pod = d.cri.pod()
    fake(tmp_path / "fake", commands % {"dir": tmp_path})
    code, message = refused(d.cri.create, pod, seccomp={"profile_type": DEFAULT})
    if error is None:  # it hangs
        assert (code, message) == ("INTERNAL", "%s: %s: timed out, killed" % (FIELD, HELPER))
        assert not os.path.exists("/proc/%s" % (tmp_path / "pid").read_text().strip())
    else:
        assert message == "%s: %s" % (FIELD, error) and code == (
            "INVALID_ARGUMENT" if "more than" in error else "INTERNAL")
    assert d.cri.container_ids() == [] and kept(d) == []
    d.cri.run_container(pod)  # others are not affected
    fake.remove()
    assert filters(d, pod, seccomp={"profile_type": DEFAULT}, name="again") == 1


def test_a_profile_is_compiled_once_also_for_the_next_daemon(containers):
    d = containers()
    pod = d.cri.pod()
    default = {"profile_type": DEFAULT}
    creates = [d.cri.start_create(pod, name="c%d" % i, seccomp=default) for i in range(8)]
    for create in creates:
        create.result()
    (first,) = kept(d)
    assert re.fullmatch("[0-9a-f]{64}", first)
    file = d.state / "seccomp" / first
    written = file.stat()
    d.restart()
    assert filters(d, pod, seccomp=default) == 1
    assert kept(d) == [first] and file.stat().st_ino == written.st_ino
    file.write_bytes(b"damaged")
    assert filters(d, pod, seccomp=default, name="again") == 1
    assert kept(d) == [first] and file.stat().st_size == written.st_size


def test_another_version_of_hawser_seccomp_compiles_again(containers, tmp_path, fake):
    d = containers()
    pod = d.cri.pod()
    default = {"profile_type": DEFAULT}
    assert filters(d, pod, seccomp=default) == 1
    fake(tmp_path / "fake", "exit 2")
    assert refused(d.cri.create, pod, seccomp=default) == ("INTERNAL", FIELD + ": hawser-seccomp: exit status 2")
    fake.remove()
    assert filters(d, pod, seccomp=default, name="again") == 1
    assert len(kept(d)) == 1


START = """
import subprocess, sys
child = subprocess.Popen([sys.argv[1]], stdin=int(sys.argv[2]), stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
child.wait()
"""


def test_hawser_seccomp_ends_with_the_process_that_has_started_it():
    read, write = os.pipe()  # stays open: hawser-seccomp waits for a profile
    os.set_inheritable(read, True)
    parent = subprocess.Popen([sys.executable, "-c", START, HELPER, str(read)], stdout=subprocess.PIPE, text=True,
                              close_fds=False)
    pid = int(parent.stdout.readline())
    wait_until(lambda: "Seccomp:\t2" in pathlib.Path("/proc/%d/status" % pid).read_text())
    parent.kill()
    parent.wait()
    wait_until(lambda: has_ended(pid))
    os.close(read)
    os.close(write)


def test_the_daemon_does_not_load_libseccomp(containers):
    d = containers()
    d.cri.run_container(d.cri.pod(), seccomp={"profile_type": DEFAULT})
    assert "libseccomp" not in pathlib.Path("/proc/%d/maps" % d.process.pid).read_text()
