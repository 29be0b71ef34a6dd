"""A release on a real control plane: installed, upgraded, uninstalled. No kubelet runs its pod."""

import itertools
import json
import os
import re
import shutil
import subprocess

import pytest
import yaml
from chart import MINIMAL, NAME, SOURCE, merged
from cluster import DEFINITION
from helm import Refused

NUMBERS = itertools.count(1)


@pytest.fixture
def home(cluster):
    """A namespace for the release of one test, and a cluster without objects that an earlier test has left."""
    cluster.remove_definitions()
    yield cluster.namespace(f"release-{next(NUMBERS)}")
    cluster.remove_definitions()


@pytest.fixture
def release(helm, chart, cluster, home):
    """Installs and upgrades the release of a test, and uninstalls it in the end."""

    class Release:
        def __init__(self):
            self.namespaces = set()

        def install(self, *values, archive=chart.archive, namespace=home):
            self.namespaces.add(namespace)
            files = [argument for part in values for argument in ("-f", chart.file(part))]
            return helm.run("upgrade", "--install", NAME, archive, "-n", namespace, *files)

        def uninstall(self, namespace=home):
            return helm.run("uninstall", NAME, "-n", namespace, "--wait", "--timeout", "60s")

    release = Release()
    yield release
    for namespace in release.namespaces:
        helm.run("uninstall", NAME, "-n", namespace, "--ignore-not-found")


def lab_of(cluster, home):
    """A record with the finalizer of the service, and the lab that it stands for; as the service writes them."""
    labs = cluster.namespace("lab-ada")
    place = {"namespace": labs, "pod": "nb-ada"}
    record = {
        "apiVersion": "wasmspawner.io/v1alpha1",
        "kind": "Spawn",
        "metadata": {"name": "lab-ada", "namespace": home, "finalizers": ["wasmspawner.io/stop"]},
        "spec": record_spec(cluster, place),
    }
    beside = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "nb-ada", "namespace": labs, "labels": {"app.kubernetes.io/managed-by": "wasmspawner"}},
    }
    cluster.until(lambda: cluster.exists("crd", DEFINITION), "the definition")
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{DEFINITION}")
    cluster.apply(record, beside)

    def versions():
        found = [cluster.get("spawns", "lab-ada", "-n", home), cluster.get("configmap", "nb-ada", "-n", labs)]
        return [(each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in found]

    return versions


def record_spec(cluster, place):
    """The least that the definition requires of a record."""
    schema = cluster.get("crd", DEFINITION)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]

    def least(part, name=""):
        if "enum" in part:
            return part["enum"][0]
        match part.get("type"):
            case "object":
                return {key: least(part["properties"][key], key) for key in part.get("required", [])}
            case "array":
                return []
            case "integer" | "number":
                return 1
            case "boolean":
                return False
        return place.get(name, "ada")

    return least(schema)


def test_an_upgrade_changes_the_service_and_neither_records_nor_labs(cluster, home, release, helm, tmp_path):
    release.install(MINIMAL, archive=earlier_chart(helm, tmp_path))
    assert "Earlier" in columns(cluster)
    versions = lab_of(cluster, home)
    before = versions()
    deployment = cluster.get("deployment", NAME, "-n", home)["spec"]["template"]["metadata"]["annotations"]
    release.install(
        merged(MINIMAL, {"config": {"limits": {"spawn": "12m"}}, "resources": {"limits": {"memory": "2Gi"}}})
    )
    assert versions() == before
    assert "Earlier" not in columns(cluster), "an upgrade brings the definition of the new version"
    upgraded = cluster.get("deployment", NAME, "-n", home)["spec"]["template"]
    assert upgraded["metadata"]["annotations"] != deployment
    assert upgraded["spec"]["containers"][0]["resources"]["limits"] == {"memory": "2Gi"}
    assert "spawn: 12m" in cluster.get("configmap", NAME, "-n", home)["data"]["wasmspawner.yaml"]
    helm.run("rollback", NAME, "1", "-n", home)
    assert versions() == before
    assert "Earlier" in columns(cluster)


def test_an_upgrade_and_a_rollback_leave_the_address_of_the_process_that_leads(cluster, home, release, helm):
    release.install(MINIMAL)
    leads = [{"addresses": ["10.0.0.7"], "conditions": {"ready": True}}]
    patch = json.dumps({"endpoints": leads})
    cluster.kubectl("patch", "endpointslice", NAME, "-n", home, "--type=merge", "-p", patch)
    release.install(merged(MINIMAL, {"config": {"limits": {"spawn": "12m"}}}))
    assert cluster.get("endpointslice", NAME, "-n", home)["endpoints"] == leads
    helm.run("rollback", NAME, "1", "-n", home)
    assert cluster.get("endpointslice", NAME, "-n", home)["endpoints"] == leads


def earlier_chart(helm, folder):
    """The chart as it might have been in an earlier version, with another definition."""
    shutil.copytree(SOURCE, folder / "chart")
    definition = folder / "chart/files/crds.yaml"
    definition.write_text(definition.read_text().replace("name: Age", "name: Earlier", 1))
    helm.run("package", folder / "chart", "--version", "0.0.9", "-d", folder)
    return folder / "wasmspawner-0.0.9.tgz"


def columns(cluster):
    version = cluster.get("crd", DEFINITION)["spec"]["versions"][0]
    return [column["name"] for column in version["additionalPrinterColumns"]]


def test_uninstalling_leaves_what_the_notes_say_and_nothing_stuck(cluster, home, release):
    labs = f"{home}-labs"
    single = {"kubernetes": {"namespaces": "single"}, "names": {"namespace": labs}}
    cluster.namespaces.append(labs)
    notes = release.install(merged(MINIMAL, {"labsNamespace": {"create": True}, "config": single}))
    versions = lab_of(cluster, home)
    before = versions()
    told = notes[notes.index("Uninstalling the release leaves on purpose:") :]
    for part in (
        f"the definition {DEFINITION}",
        f"the namespace {labs}",
        "users' volume claims",
        f"spawns, .*in {home}",
    ):
        assert re.search(part, told), part
    release.uninstall()
    assert versions() == before, "records and labs stay"
    assert cluster.exists("crd", DEFINITION)
    assert cluster.exists("namespace", labs)
    kinds = "deployment,service,configmap,networkpolicy,serviceaccount,role,rolebinding,pod"
    left = cluster.kubectl("get", kinds, "-n", home, "-l", "app.kubernetes.io/managed-by=Helm", "-o", "name")
    wide = cluster.kubectl("get", "clusterrole,clusterrolebinding,validatingadmissionpolicy", "-o", "name")
    assert (left, f"{home}-{NAME}" in wide) == ("", False)
    # The namespace waits for the record, as the notes say, and ends with the command that they give.
    cluster.kubectl("delete", "namespace", home, "--wait=false")
    cluster.until(lambda: "finalizer" in str(cluster.get("namespace", home)["status"]), "the namespace waits")
    (command,) = re.findall(r"kubectl .* patch .*", told)
    environment = os.environ | {"KUBECONFIG": cluster.kubeconfig}
    subprocess.run(["sh", "-ec", command], check=True, env=environment, timeout=60)
    cluster.until(lambda: not cluster.exists("namespace", home), "the namespace is gone")


def test_the_notes_of_a_release_with_environments_say_how_to_remove_those(release):
    without = release.install(MINIMAL)
    assert "delete dt --all" not in without
    notes = release.install(merged(MINIMAL, {"config": {"environments": {}}}))
    for part in ("delete dtc --all", "delete dt --all", "get spawns,dtc,dt -o name"):
        assert part in notes


def test_a_release_that_is_installed_again_continues(cluster, home, release):
    release.install(MINIMAL)
    versions = lab_of(cluster, home)
    before = versions()
    release.uninstall()
    release.install(MINIMAL)
    assert versions() == before


def test_a_second_release_has_names_of_its_own_and_leaves_the_definition_alone(cluster, home, release):
    release.install(MINIMAL)
    second = cluster.namespace("release-second")
    with pytest.raises(Refused, match=f"crds.install: .* the release {NAME} in the namespace {home}; set crds.install"):
        release.install(MINIMAL, namespace=second)
    release.install(merged(MINIMAL, {"crds": {"install": False}}), namespace=second)
    instances = set()
    for namespace in (home, second):
        config = yaml.safe_load(cluster.get("configmap", NAME, "-n", namespace)["data"]["wasmspawner.yaml"])
        instances.add(config["kubernetes"]["instance"])
        assert cluster.exists("clusterrole", f"{namespace}-{NAME}")
    assert len(instances) == 2
    release.uninstall(second)
    assert cluster.exists("clusterrole", f"{home}-{NAME}")


def test_the_admission_policy_holds_for_the_release_s_account(cluster, home, release):
    release.install(MINIMAL)
    account = f"system:serviceaccount:{home}:{NAME}"
    groups = [f"--as-group=system:serviceaccounts:{home}", "--as-group=system:serviceaccounts"]

    def create(name, **labels):
        described = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        text = yaml.safe_dump(described)
        return cluster.kubectl("create", "--dry-run=server", f"--as={account}", *groups, "-f", "-", given=text)

    ours = {"app.kubernetes.io/managed-by": NAME, "wasmspawner.io/instance": f"{home}-{NAME}"}

    def is_refused(name, labels):
        try:
            create(name, **labels)
        except Exception as refused:
            return "ValidatingAdmissionPolicy" in str(refused)
        return False

    cluster.until(lambda: is_refused("elsewhere", ours), "the policy is in force")
    level = {"pod-security.kubernetes.io/enforce": "baseline"}
    assert is_refused("nublado-ada", level)
    assert is_refused("nublado-ada", ours)
    assert "nublado-ada created" in create("nublado-ada", **ours, **level)


def test_the_admission_policy_holds_for_pods_of_the_release_s_account(cluster, home, release):
    ours = {"app.kubernetes.io/managed-by": NAME, "wasmspawner.io/instance": f"{home}-{NAME}"}
    labs = cluster.namespace("labs-of-ada", **ours)
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nb-ada", "namespace": labs}})
    strict = merged(MINIMAL, {"admissionPolicy": {"existing": labs}})
    policies = [{"name": "default", "grants": {"host-path": ["/data"]}}]

    def refusal(path):
        """The words in which a pod with this path of the node is refused; empty if it is not."""
        account = [f"--as=system:serviceaccount:{home}:{NAME}", "--as-group=system:authenticated"]
        text = yaml.safe_dump(lab_pod(labs, ours, path))
        try:
            cluster.kubectl("create", "--dry-run=server", *account, "-f", "-", given=text)
        except Exception as refused:
            return str(refused)
        return ""

    release.install(strict)
    cluster.until(lambda: "a path of the node that the site does not grant" in refusal("/data/sets"), "the policy")
    release.install(merged(strict, {"config": {"policies": policies}}))
    cluster.until(lambda: refusal("/data/sets") == "", "the grant is in force")
    assert "a path of the node that the site does not grant" in refusal("/etc")


def lab_pod(namespace, labels, path):
    """The pod of a lab as the service makes it, with a path of the node."""
    context = {"runAsUser": 1000, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    container = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "nb-ada", "namespace": namespace, "labels": labels},
        "spec": {
            "serviceAccountName": "nb-ada",
            "automountServiceAccountToken": False,
            "securityContext": context,
            "containers": [{"name": "notebook", "image": "x", "securityContext": container}],
            "volumes": [{"name": "data", "hostPath": {"path": path}}],
        },
    }
