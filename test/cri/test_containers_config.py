# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_config.py - containers of hawser-cri: process, namespaces, limits, rights, and the status of these
"""
import os
import pathlib
import re
import signal
import subprocess

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import (CONTAINER, FOREVER, IMAGE, NODE, POD, RUNNING, SERVER, TARGET, V2, cgroup_value,
                        container_config, containers)  # noqa: F401, a fixture
from poddaemon import namespace, refused
from slowcrun import Crun
from waiting import wait_until

PROC_STATUS = "cat /proc/self/status"
SHOW = ["/bin/sh", "-c", "printf '%s\\n' \"$0\" \"$@\""]


def entries(data):
    """Environment variables of a request."""
    return [{"key": k, "value": v if isinstance(v, bytes) else v.encode()} for k, v in data]


def proc_status(client, pod, **more):
    """The fields of /proc/self/status in a container."""
    return dict(line.split(":\t", 1) for line in client.output(pod, PROC_STATUS, **more) if ":\t" in line)


# ---- process ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("entrypoint,cmd,command,args,expected", [
    (SHOW, ["c"], [], [], ["c"]), (SHOW, ["c"], [], ["a", "b"], ["a", "b"]), (SHOW, [], [], [], ["/bin/sh"]),
    (["/bin/false"], ["c"], SHOW, [], ["/bin/sh"]), (["/bin/false"], ["c"], SHOW, ["a b", ""], ["a b", ""]),
    ([], SHOW + ["c"], [], [], ["c"]), ([], ["c"], [], SHOW + ["a"], ["a"])])
def test_command_and_args_replace_entrypoint_and_cmd_of_the_image(containers, entrypoint, cmd, command, args, expected):
    d = containers()
    image = d.load("hawser.test/words:1", Entrypoint=entrypoint, Cmd=cmd)
    status = d.cri.run_to_end(d.cri.pod(), command, args=args, image=image)
    assert d.cri.printed(status.id) == expected


def test_an_image_without_a_command_needs_one_in_the_request(containers):
    d = containers()
    image = d.load("hawser.test/none:1", Cmd=[])
    assert refused(d.cri.create, d.cri.pod(), [], image=image) == (
        "INVALID_ARGUMENT", "no command: neither the request nor the image has one")


def test_the_environment_is_that_of_the_image_with_that_of_the_request(containers):
    d = containers()
    image = d.load("hawser.test/env:1", Env=["PATH=/bin", "A=image", "B=image"])
    pod = d.cri.pod(hostname="pod-host", network=POD)
    envs = entries([("B", "request"), ("C", "a=b\n\"c\""), ("D", ""), ("E", "Ünïcødé"), ("C", "last")])
    found = d.cri.output(pod, "env | sort", image=image, envs=envs)
    assert {"A=image", "B=request", "C=last", "D=", "E=Ünïcødé", "PATH=/bin", "HOSTNAME=pod-host"} <= set(found)
    assert "TERM=xterm" not in found


@pytest.mark.parametrize("key,value,error", [
    ("A", b"\xff", "envs[1]: environment variable A: not UTF-8"),
    ("A", b"a\0b", "envs[1]: environment variable A: contains a NUL"),
    ("", b"x", 'envs[1]: invalid name of an environment variable: ""'),
    ("A=B", b"x", 'envs[1]: invalid name of an environment variable: "A=B"')])
def test_an_environment_variable_that_cannot_be_passed_is_refused_by_name(containers, key, value, error):
    d = containers()
    assert refused(d.cri.create, d.cri.pod(), envs=entries([("OK", "x"), (key, value)])) == ("INVALID_ARGUMENT", error)


def test_the_working_directory_is_that_of_the_request_or_the_image_and_is_created(containers):
    d = containers()
    pod = d.cri.pod()
    image = d.load("hawser.test/cwd:1", WorkingDir="/work/dir")
    assert d.cri.output(pod, "pwd") == ["/"]
    assert d.cri.output(pod, "pwd", image=image) == ["/work/dir"]
    assert d.cri.output(pod, "pwd", image=image, working_dir="/tmp") == ["/tmp"]
    assert refused(d.cri.create, pod, working_dir="relative")[0] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("change,error", [
    ({"metadata": {"name": ""}}, "config.metadata.name is missing"), ({"image": {"image": ""}},
                                                                      "config.image.image is missing"),
    ({"windows": {}}, "config.windows: this node runs Linux"),
    ({"log_path": "../x.log"}, 'log_path: ".." is not allowed'),
    ({"stop_signal": 1000}, "stop_signal: unknown value 1000"),
    ({"mounts": [{"host_path": "/tmp"}]}, "mounts[0].container_path is missing"),
    ({"mounts": [{"container_path": "/x"}]}, "mounts[0].host_path is missing")])
def test_a_malformed_request_is_refused_by_the_name_of_its_field(containers, change, error):
    d = containers()
    request = {"metadata": {"name": "main"}, "image": {"image": IMAGE}, "command": FOREVER, **change}
    pod = d.cri.pod()
    assert refused(d.cri.call, "CreateContainer", pod_sandbox_id=pod, config=request) == ("INVALID_ARGUMENT", error)


def test_requests_without_a_config_are_refused(containers):
    d = containers()
    pod = d.cri.pod()
    for config, error in ((None, "config is missing"), ({}, "config.metadata is missing"),
                          ({"metadata": {"name": "a"}}, "config.image is missing")):
        more = {} if config is None else {"config": config}
        assert refused(d.cri.call, "CreateContainer", pod_sandbox_id=pod, **more) == ("INVALID_ARGUMENT", error)
    assert refused(d.cri.call, "CreateContainer") == ("INVALID_ARGUMENT", "pod_sandbox_id is missing")
    assert refused(d.cri.create, pod, image="hawser.test/missing:1") == (
        "NOT_FOUND", 'config.image: no image "hawser.test/missing:1" on this node')


# ---- namespaces ------------------------------------------------------------------------------------

@pytest.mark.parametrize("network,ipc", [(POD, POD), (NODE, POD), (POD, NODE)])
def test_a_container_is_in_the_namespaces_of_its_pod(containers, network, ipc):
    d = containers()
    pod = d.cri.pod(network=network, ipc=ipc, hostname="pod-host")
    one, two = d.cri.run_container(pod, name="one"), d.cri.run_container(pod, name="two")
    for kind, shared in (("net", network == POD), ("uts", network == POD), ("ipc", ipc == POD)):
        found = {namespace("/proc/%d/ns/%s" % (d.main(c), kind)) for c in (one, two)}
        assert len(found) == 1 and (found == {namespace("/proc/self/ns/" + kind)}) == (not shared)
    if network == POD:
        assert d.cri.address(pod) in d.cri.sh(one, "ip address show eth0")
        assert d.cri.sh(one, "hostname; cat /etc/hostname") == "pod-host\n" * 2
        assert d.cri.address(pod) + "\tpod-host" in d.cri.sh(one, "cat /etc/hosts")
    d.cri.sh(one, "echo shared >/dev/shm/file")
    assert d.cri.sh(two, "cat /dev/shm/file; rm /dev/shm/file") == "shared\n"


def test_in_the_pid_mode_container_the_first_process_is_process_1(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), SERVER)
    assert d.cri.sh(container, "cat /proc/1/cmdline").split("\0")[:3] == SERVER
    assert namespace("/proc/%d/ns/pid" % d.main(container)) != namespace("/proc/self/ns/pid")


def test_in_the_pid_mode_pod_containers_see_each_other_and_pause(containers):
    d = containers()
    pod = d.cri.pod(pid=POD)
    one = d.cri.run_container(pod, name="one", pid=POD)
    two = d.cri.run_container(pod, ["/bin/sleep", "54321"], name="two", pid=POD)
    assert "54321" in d.cri.sh(one, "cat /proc/*/cmdline") and "pause" in d.cri.sh(two, "cat /proc/1/comm")
    assert namespace("/proc/%d/ns/pid" % d.main(one)) == namespace("/proc/%d/ns/pid" % d.main(two))


def test_in_the_pid_mode_node_a_container_sees_the_host(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(pid=NODE), pid=NODE)
    assert namespace("/proc/%d/ns/pid" % d.main(container)) == namespace("/proc/self/ns/pid")
    assert "hawser-cri" in d.cri.sh(container, "cat /proc/%d/comm" % d.process.pid)


def test_in_the_pid_mode_target_a_container_joins_another_one(containers):
    d = containers()
    pod = d.cri.pod()
    target = d.cri.run_container(pod, ["/bin/sleep", "54321"], name="target")
    debug = d.cri.run_container(pod, name="debug", pid=TARGET, target_id=target)
    assert "54321" in d.cri.sh(debug, "cat /proc/1/cmdline")
    d.cri.stop_container(debug)
    assert d.cri.container(target).state == RUNNING
    again = d.cri.run_container(pod, name="debug", attempt=1, pid=TARGET, target_id=target)
    d.cri.stop_container(target)
    assert d.cri.wait_for_exit(again).exit_code == 137


def test_a_mode_of_network_or_ipc_that_differs_from_that_of_the_pod_is_refused(containers):
    d = containers()
    pod = d.cri.pod(network=POD)
    for field, mode, name in (("network", NODE, "NODE"), ("ipc", NODE, "NODE"), ("network", CONTAINER, "CONTAINER"),
                              ("ipc", TARGET, "TARGET")):
        config = container_config()
        config["linux"]["security_context"]["namespace_options"][field] = mode
        assert refused(d.cri.call, "CreateContainer", pod_sandbox_id=pod, config=config) == (
            "INVALID_ARGUMENT", "linux.security_context.namespace_options.%s: mode %s (%d) differs from POD (0) of the pod" % (
                field, name, mode))
    config = container_config()
    config["linux"]["security_context"]["namespace_options"].update(network=NODE, ipc=NODE)
    host = d.cri.pod("host", network=NODE, ipc=NODE)
    assert d.cri.call("CreateContainer", pod_sandbox_id=host, config=config).container_id


def take_pid(pid):
    """Start a process with this number."""
    last = pathlib.Path("/proc/sys/kernel/ns_last_pid")
    for _ in range(100):
        last.write_text(str(pid - 1))
        process = subprocess.Popen(["sleep", "100000"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    raise AssertionError("process ID %d is in use" % pid)


def test_a_target_that_ends_meanwhile_is_not_replaced_by_a_process_with_its_number(containers, tmp_path):
    crun = Crun(tmp_path)
    d = containers("--runtime-handler", "slow=%s" % crun.program)
    pod = d.cri.pod(handler="slow")
    target = d.cri.run_container(pod, name="target")
    main = d.main(target)
    crun.delay("create")
    create = d.cri.start_create(pod, name="debug", pid=TARGET, target_id=target)
    wait_until(lambda: crun.times("create") == 2)
    os.kill(main, signal.SIGKILL)
    wait_until(lambda: not pathlib.Path("/proc/%d" % main).exists())
    process = take_pid(main)
    try:
        crun.go_on("create")
        assert " create: " in create.exception().details()
    finally:
        process.kill()
        process.wait()


def test_a_target_must_run_in_the_same_pod(containers):
    d = containers()
    pod, other = d.cri.pod("a"), d.cri.pod("b")
    elsewhere, created = d.cri.run_container(other), d.cri.create(pod)
    field = "linux.security_context.namespace_options."
    assert refused(d.cri.create, pod, name="x", pid=TARGET) == ("INVALID_ARGUMENT", field + "target_id is missing")
    for target in ("0123", elsewhere):
        assert refused(d.cri.create, pod, name="x", pid=TARGET, target_id=target) == (
            "INVALID_ARGUMENT", field + "target_id: no container %s in the pod" % target)
    assert refused(d.cri.create, pod, name="x", pid=TARGET, target_id=created) == (
        "FAILED_PRECONDITION", field + "target_id: container %s does not run" % created)
    assert refused(d.cri.create, pod, name="x", pid=POD)[0] == "INVALID_ARGUMENT"


# ---- limits ----------------------------------------------------------------------------------------

def test_limits_are_set_in_the_cgroup_and_reported(containers):
    d = containers()
    limits = {"cpu_period": 100000, "cpu_quota": 50000, "cpu_shares": 512, "memory_limit_in_bytes": 64 << 20,
              "cpuset_cpus": "0", "cpuset_mems": "0", "oom_score_adj": 500}
    container = d.cri.run_container(d.cri.pod(), resources=limits)
    main = d.main(container)
    if V2:
        assert cgroup_value(main, "cpu", "cpu.max") == "50000 100000"
        assert cgroup_value(main, "memory", "memory.max") == str(64 << 20)
    else:
        assert cgroup_value(main, "cpu", "cpu.cfs_quota_us") == "50000"
        assert cgroup_value(main, "cpu", "cpu.cfs_period_us") == "100000"
        assert cgroup_value(main, "cpu", "cpu.shares") == "512"
        assert cgroup_value(main, "memory", "memory.limit_in_bytes") == str(64 << 20)
    assert cgroup_value(main, "cpuset", "cpuset.cpus") == "0"
    assert pathlib.Path("/proc/%d/oom_score_adj" % main).read_text().strip() == "500"
    assert d.cri.sh(container, "cat /proc/self/oom_score_adj") == "500\n"
    reported = d.cri.container(container).resources.linux
    assert {k: getattr(reported, k) for k in limits} == limits
    d.restart()
    reported = d.cri.container(container).resources.linux
    assert {k: getattr(reported, k) for k in limits} == limits


def test_the_limits_of_a_kubelet_are_accepted(containers):
    d = containers()
    limits = {"cpu_period": 100000, "cpu_shares": 2, "memory_limit_in_bytes": 32 << 20, "oom_score_adj": 999,
              "memory_swap_limit_in_bytes": 32 << 20,
              "hugepage_limits": [{"page_size": "2MB", "limit": 0}, {"page_size": "1GB", "limit": 0}]}
    container = d.cri.run_container(d.cri.pod(), resources=limits)
    assert d.cri.container(container).resources.linux.cpu_shares == 2


def test_limits_that_cannot_be_set_are_refused_by_name(containers):
    d = containers()
    pod = d.cri.pod()
    for limits, error in (({"cpu_quota": -5}, "cpu_quota: -5 is not in the range 1000 to 17592186044415"),
                          ({"memory_swap_limit_in_bytes": 5, "memory_limit_in_bytes": 64 << 20},
                           "memory_swap_limit_in_bytes: 5 is less than memory_limit_in_bytes")):
        assert refused(d.cri.create, pod, resources=limits) == ("INVALID_ARGUMENT", "linux.resources: " + error)


def test_an_oom_score_below_that_of_the_daemon_is_raised_to_it(containers):
    d = containers()
    own = int(pathlib.Path("/proc/%d/oom_score_adj" % d.process.pid).read_text())
    container = d.cri.run_container(d.cri.pod(), resources={"oom_score_adj": -999})
    found = int(pathlib.Path("/proc/%d/oom_score_adj" % d.main(container)).read_text())
    assert found in (-999, own) and d.cri.container(container).resources.linux.oom_score_adj == -999


# ---- rights ----------------------------------------------------------------------------------------

def capabilities(status):
    return {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}


def own_capabilities():
    return int(re.search(r"CapEff:\t(\w+)", pathlib.Path("/proc/self/status").read_text())[1], 16)


CHOWN, KILL, NET_ADMIN = 1 << 0, 1 << 5, 1 << 12


def test_capabilities_are_added_to_and_dropped_from_the_default_ones(containers):
    d = containers()
    pod = d.cri.pod()

    def found(**change):
        return capabilities(proc_status(d.cri, pod, capabilities={k + "_capabilities": v for k, v in change.items()}))
    default = found()
    assert default["CapEff"] == default["CapPrm"] == default["CapBnd"] and default["CapInh"] == default["CapAmb"] == 0
    assert default["CapEff"] & CHOWN and default["CapEff"] & KILL and not default["CapEff"] & NET_ADMIN
    assert found(add=["NET_ADMIN"])["CapEff"] == default["CapEff"] | NET_ADMIN
    assert found(drop=["KILL"])["CapBnd"] == default["CapBnd"] & ~KILL
    assert found(drop=["ALL"])["CapEff"] == 0 and found(drop=["ALL"], add=["CHOWN"])["CapEff"] == CHOWN
    assert found(add=["ALL"])["CapEff"] == own_capabilities()
    assert refused(d.cri.create, pod, capabilities={"add_capabilities": ["NONSENSE"]})[0] == "INVALID_ARGUMENT"


# CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE NET_RAW SYS_CHROOT MKNOD AUDIT_WRITE SETFCAP
CONTAINERDS = sum(1 << n for n in (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31))


@pytest.mark.parametrize("config,expected", [
    ("", CONTAINERDS), ("default-capabilities: [kill, CAP_CHOWN]\n", KILL | CHOWN), ("default-capabilities: []\n", 0),
    ("default-capabilities: [SYS_RESOURCE, KILL]\n", KILL | 1 << 24)])
def test_the_default_capabilities_are_those_of_the_configuration_that_the_daemon_has(containers, config, expected):
    d = containers(config=config)
    found = capabilities(proc_status(d.cri, d.cri.pod()))
    assert found["CapEff"] == found["CapBnd"] == expected & own_capabilities()


def test_a_privileged_container_has_all_rights_and_needs_a_privileged_pod(containers):
    d = containers()
    plain = d.cri.pod("plain")
    assert refused(d.cri.create, plain, privileged=True) == (
        "FAILED_PRECONDITION", "linux.security_context.privileged: the pod is not privileged")
    options = {"network": NODE, "pid": CONTAINER}
    pod = d.cri.pod("privileged", linux={"security_context": {"privileged": True, "namespace_options": options}})
    container = d.cri.run_container(pod, privileged=True, masked_paths=["/proc/kcore"], readonly_paths=["/proc/sys"])
    assert int(d.cri.sh(container, "grep CapEff /proc/1/status").split()[1], 16) == own_capabilities()
    assert "ro" not in d.cri.sh(container, "grep ' /sys ' /proc/mounts").split()[3].split(",")
    assert " /proc/sys " not in d.cri.sh(container, "cat /proc/mounts")
    assert d.cri.sh(container, "ls /dev/fuse") == "/dev/fuse\n"
    plain_container = d.cri.run_container(plain)
    assert "ro" in d.cri.sh(plain_container, "grep ' /sys ' /proc/mounts").split()[3].split(",")


def test_masked_paths_are_empty_and_readonly_paths_are_readonly(containers):
    d = containers()
    pod = d.cri.pod(network=POD)
    container = d.cri.run_container(pod, masked_paths=["/proc/cmdline", "/www", "/proc/none"],
                                    readonly_paths=["/proc/sys", "/tmp", "/none"])
    assert d.cri.sh(container, "cat /proc/cmdline; ls /www") == ""
    for file in ("/tmp/x", "/proc/sys/net/ipv4/ip_default_ttl"):
        assert "Read-only file system" in d.cri.sh(container, "(echo 1 >%s) 2>&1 || true" % file)
    assert refused(d.cri.create, pod, name="b", masked_paths=["relative"])[0] == "INVALID_ARGUMENT"


def test_no_new_privs_is_set_for_the_process_and_for_commands(containers):
    d = containers()
    pod = d.cri.pod()
    for value in (True, False):
        assert proc_status(d.cri, pod, no_new_privs=value)["NoNewPrivs"] == str(int(value))
        container = d.cri.run_container(pod, name="n%d" % value, no_new_privs=value)
        assert "NoNewPrivs:\t%d\n" % value in d.cri.sh(container, PROC_STATUS)


def test_a_readonly_root_file_system_cannot_be_written(containers):
    d = containers()
    pod = d.cri.pod()
    container = d.cri.run_container(pod, readonly_rootfs=True)
    for file in ("/file", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"):
        assert "Read-only file system" in d.cri.sh(container, "(echo x >>%s) 2>&1 || true" % file)
    assert d.cri.sh(container, "echo x >/dev/shm/x; cat /dev/shm/x; rm /dev/shm/x") == "x\n"
    assert d.cri.output(pod, "echo x >>/etc/hosts; touch /file; ls /file", name="rw") == ["/file"]


CONTEXT = "linux.security_context."


@pytest.mark.skipif(os.path.exists("/sys/module/apparmor"), reason="this host has AppArmor")
def test_on_a_host_without_apparmor_a_profile_is_refused(containers):
    d = containers()
    pod = d.cri.pod()
    for apparmor, name in (({"profile_type": 0}, "hawser-default"),
                           ({"profile_type": 2, "localhost_ref": "some"}, "some")):
        assert refused(d.cri.create, pod, apparmor=apparmor) == (
            "FAILED_PRECONDITION", CONTEXT + "apparmor: AppArmor profile %s: this host has no AppArmor" % name)
    d.cri.run_container(pod, apparmor={"profile_type": 1})
    options = {"network": NODE, "pid": CONTAINER}
    privileged = d.cri.pod("b", linux={"security_context": {"privileged": True, "namespace_options": options}})
    d.cri.run_container(privileged, privileged=True, apparmor={"profile_type": 0})


@pytest.mark.parametrize("field,kind", [("seccomp_profile_path", "seccomp"), ("apparmor_profile", "apparmor")])
def test_the_deprecated_fields_of_profiles_are_read_if_the_new_ones_are_missing(containers, field, kind):
    d = containers()
    pod = d.cri.pod()

    def create(name, **security):
        linux = {"security_context": {"namespace_options": {"pid": CONTAINER}, **security}}
        return d.cri.create(pod, name=name, linux=linux)
    if kind == "seccomp":
        container = create("a", **{field: "runtime/default"})
        d.cri.start_container(container)
        assert "Seccomp:\t2\n" in d.cri.sh(container, PROC_STATUS)
    elif not os.path.exists("/sys/module/apparmor"):
        assert refused(create, "a", **{field: "runtime/default"})[0] == "FAILED_PRECONDITION"
    create("b", **{field: "unconfined"})
    create("c", **{field: "nonsense", kind: {"profile_type": 1}})
    assert refused(create, "d", **{field: "nonsense"}) == (
        "INVALID_ARGUMENT", CONTEXT + field + ': unknown profile "nonsense"')


@pytest.mark.parametrize("change,error", [
    ({"seccomp": {"profile_type": 2}}, CONTEXT + "seccomp.localhost_ref is missing"),
    ({"seccomp": {"profile_type": 7}}, CONTEXT + "seccomp.profile_type: unknown value 7"),
    ({"apparmor": {"profile_type": 7}}, CONTEXT + "apparmor.profile_type: unknown value 7"),
    *[({"selinux_options": {part: "x"}}, CONTEXT + "selinux_options is not supported yet")
      for part in ("user", "role", "type", "level")]])
def test_what_is_not_supported_yet_is_refused_by_name(containers, change, error):
    d = containers()
    assert refused(d.cri.create, d.cri.pod(), **change) == ("INVALID_ARGUMENT", error)


@pytest.mark.parametrize("change", [
    {"CDI_devices": [{"name": "vendor.com/class=a"}]}, {"devices": [{"host_path": "/none", "container_path": "/dev/x"}]},
    {"resources": {"cpu_quota": -5}}, {"seccomp": {"profile_type": 2, "localhost_ref": "/p.json"}},
    {"masked_paths": ["relative"]}, {"capabilities": {"add_capabilities": ["NONSENSE"]}},
    {"mounts": [{"container_path": "/b", "host_path": "/dev/null/x"}]}])
def test_a_refused_create_leaves_nothing(containers, change):
    d = containers()
    pod = d.cri.pod()
    missing = [d.dir / "volume", d.logs / "a/below"]
    mounts = [{"container_path": "/a", "host_path": str(missing[0])}, *change.pop("mounts", [])]
    refused(d.cri.create, pod, mounts=mounts, log_path="below/main.log", **change)
    assert not any(path.exists() for path in missing)
    assert not d.container_rows() and not list((d.dir / "root/containers").iterdir())
