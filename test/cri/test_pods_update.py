# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_pods_update.py - UpdatePodSandboxResources: limits of pods are checked, stored and shown
"""
import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from poddaemon import pods, refused  # noqa: F401, a fixture

MIB = 1 << 20
FIRST = {"resources": {"cpu_shares": 100, "memory_limit_in_bytes": 64 * MIB}, "overhead": {"cpu_shares": 10}}


def update(d, pod, **limits):
    d.cri.call("UpdatePodSandboxResources", pod_sandbox_id=pod, **limits)


def limits(d, pod):
    info = d.cri.info(pod)
    return info["resources"], info["overhead"]


def test_limits_of_a_pod_change_where_they_are_set_and_outlive_the_daemon(pods):
    d = pods()
    pod = d.cri.run(linux=FIRST)
    assert limits(d, pod) == (FIRST["resources"], FIRST["overhead"])
    update(d, pod, resources={"cpu_shares": 200}, overhead={"memory_limit_in_bytes": MIB})
    expected = {"cpu_shares": 200, "memory_limit_in_bytes": 64 * MIB}, {"cpu_shares": 10, "memory_limit_in_bytes": MIB}
    assert limits(d, pod) == expected
    d.restart()
    assert limits(d, pod) == expected
    update(d, pod)
    assert limits(d, pod) == expected
    assert d.cri.run(linux=FIRST) == pod  # an equal request still gets it


@pytest.mark.parametrize("change,error", [
    ({"resources": {"cpu_quota": -5}}, "resources: cpu_quota: -5 is not in the range 1000 to "),
    ({"overhead": {"cpu_period": 1}}, "overhead: cpu_period: 1 is not in the range 1000 to 1000000"),
    ({"overhead": {"oom_score_adj": 1001}}, "overhead.oom_score_adj: 1001 is not in the range -1000 to 1000"),
    ({"resources": {"unified": {"a/b": "1"}}}, "resources: unified: "),
    ({"resources": {"cpuset_cpus": "x"}}, 'resources: cpuset_cpus: "x" is not a list of numbers')])
def test_limits_of_a_pod_that_cannot_be_set_change_nothing(pods, change, error):
    d = pods()
    pod = d.cri.run(linux=FIRST)
    code, text = refused(update, d, pod, **{"resources": {"cpu_shares": 200}, **change})
    assert code == "INVALID_ARGUMENT" and text.startswith(error)
    assert limits(d, pod) == (FIRST["resources"], FIRST["overhead"])
    (field, value), = change.items()
    code, text = refused(d.cri.run, "b", linux={field: value})
    assert code == "INVALID_ARGUMENT" and text.startswith("linux." + error)


def test_limits_of_a_pod_that_cannot_be_stored_change_nothing(pods):
    d = pods()
    pod = d.cri.run(linux=FIRST)
    with d.database() as db:
        db.execute("CREATE TRIGGER refuse BEFORE UPDATE ON pods BEGIN SELECT RAISE(ABORT, 'not now'); END")
        assert "not now" in refused(update, d, pod, resources={"cpu_shares": 200})[1]
        db.execute("DROP TRIGGER refuse")
    assert limits(d, pod) == (FIRST["resources"], FIRST["overhead"])


def test_only_limits_of_a_pod_that_is_ready_change(pods):
    d = pods()
    pod = d.cri.run()
    d.cri.stop(pod)
    assert refused(update, d, pod) == ("FAILED_PRECONDITION", "pod sandbox %s is stopped, not ready" % pod)
    assert refused(update, d, "0" * 64) == ("NOT_FOUND", "no pod sandbox " + "0" * 64)
    assert refused(update, d, "") == ("INVALID_ARGUMENT", "pod_sandbox_id is missing")
