"""The chart on a real node: what a site has after `helm install`."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from installation import NAMESPACE, RELEASE, Installation, Refused, container_image
from lab_site import eventually


@pytest.fixture(scope="module")
def installation(node, tmp_path_factory):
    try:
        container_image()
    except FileNotFoundError:
        pytest.skip("skipped: the chart on a real node; `make image` makes the service's image")
    with Installation(node, tmp_path_factory.mktemp("installation")) as installation:
        yield installation


def test_the_service_runs_in_its_pod_without_privileges(installation):
    pod = installation.service_pod()
    status = pod["status"]["containerStatuses"][0]
    assert status["ready"]
    assert status["restartCount"] == 0
    assert status["image"].endswith(f"/wasmspawner:{installation.version}")
    print(f"installed and ready after {installation.installed_in:.1f} s")


def test_a_user_logs_in_starts_a_lab_computes_and_stops_it(installation):
    with installation.lab_of("ada") as started:
        print(f"from the click to the lab: {started['seconds']:.1f} s")
        pod = installation.node.get("pod", "nb-ada", "-n", "nublado-ada")
        assert pod["status"]["containerStatuses"][0]["ready"]
        assert installation.compute("ada", "import os; print(6 * 7, os.getuid())") == "42 1000\n"
    assert not installation.node.get("spawns.wasmspawner.io", "-n", NAMESPACE).get("items")


def test_a_lab_outlives_an_upgrade_of_the_chart_and_the_death_of_the_service(installation):
    with installation.lab_of("bob"):
        before = installation.service_pod()["metadata"]["uid"]
        installation.upgrade(limits={"spawn": "5m"})
        installation.node.kubectl("delete", "pod", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=wasmspawner", "--now")
        installation.node.kubectl(
            "rollout", "status", f"deployment/{RELEASE}", "-n", NAMESPACE, "--timeout=120s", seconds=150
        )
        assert installation.service_pod()["metadata"]["uid"] != before
        assert installation.compute("bob", "print('still here')") == "still here\n"


def test_an_upgrade_with_a_policy_that_cannot_be_loaded_changes_nothing(installation):
    before = installation.service_pod()["metadata"]["uid"]
    with pytest.raises(Refused, match="images"):
        installation.upgrade(policies=[{"name": "default", "config": {"images": "none"}}])
    assert installation.service_pod()["metadata"]["uid"] == before
    assert "images: none" not in str(installation.node.get("configmap", RELEASE, "-n", NAMESPACE)["data"])


def test_nobody_notices_an_upgrade_and_the_death_of_the_leader_where_another_stands_by(installation):
    installation.replicas = 2
    installation.upgrade()
    first, users = installation.leader(), [f"crowd{number:02}" for number in range(20)]
    try:
        with ThreadPoolExecutor() as pool:
            crowd = pool.submit(installation.visit, "crowd", *users)
            eventually(lambda: installation.node.get("spawns", "-n", NAMESPACE).get("items"), "the first lab begins")
            installation.upgrade(limits={"spawn": "6m"})
            started = crowd.result()
        assert installation.leader() != first
        assert {user: lab["events"][-1] for user, lab in started.items() if lab["ready"] is not True} == {}
        print(f"20 labs during an upgrade: the last after {max(lab['seconds'] for lab in started.values()):.1f} s")
        second = installation.leader()
        installation.node.kubectl("delete", "pod", second, "-n", NAMESPACE, "--force", "--grace-period=0")
        with installation.lab_of("late") as lab:
            print(f"a lab that was asked for when the leader had been killed: {lab['seconds']:.1f} s")
        assert installation.leader() not in ("", second)
        assert installation.compute(users[0], "print(6 * 7)") == "42\n"
    finally:
        for user in users:
            installation.visit("stop", user)


def test_the_hub_and_its_proxy_reach_a_lab_by_its_name_over_tls(installation):
    service = {"lab_url": "https://{name}.{namespace}.svc:{port}", "certificate": {"authority": "lab-authority"}}
    with installation.lab_of("old"):
        installation.upgrade(lab=installation.values()["config"]["lab"] | {"service": service})
        with installation.lab_of("ada") as started:
            print(f"from the click to the lab with a certificate: {started['seconds']:.1f} s")
            assert installation.lab_url("ada") == "https://nb-ada.nublado-ada.svc:8888"
            assert installation.compute("ada", "print(6 * 7)") == "42\n"
            assert "CERTIFICATE" in installation.node.kubectl(
                "exec", "nb-ada", "-n", "nublado-ada", "--", "cat", "/etc/wasmspawner/tls/tls.crt"
            )
        # A lab that was running before is reached as before.
        assert installation.compute("old", "print('still here')") == "still here\n"


def test_helm_test_passes_and_uninstalling_leaves_nothing_that_hangs(installation):
    installation.run(installation.test)
    installation.helm.run("uninstall", RELEASE, "-n", NAMESPACE, "--wait", "--timeout", "120s")
    installation.node.kubectl("delete", "namespace", NAMESPACE, "--timeout=60s", seconds=90)
    assert not installation.node.get("namespace", NAMESPACE)
    assert installation.node.get("crd", "spawns.wasmspawner.io"), "the records' definition stays"
