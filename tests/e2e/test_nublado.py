"""A lab after `wasmspawner migrate nublado`: its objects are those that Nublado's controller makes of the same values, but for
the differences that the page of the policy `rubin` lists."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from local_registry import registry_or_skip
from lone_service import LoneService
from world import eventually

import toolchain

VALUES = Path(__file__).with_name("nublado-values.yaml")
REPOSITORY = "site/lab"
TAG = "d_2077_10_23"
NAMESPACE = "userlabs-rachel"

# What Nublado 15 makes of these values: the facts of `lab.json` and `lab-enable-configs.json` among the objects that its own
# tests expect.
ARGO_CD = {
    "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
    "argocd.argoproj.io/sync-options": "Prune=false",
}
MOUNTS = {
    "/home",
    "/PROJECT (read-only)",
    "/ScRaTcH",
    "/scratch",
    "/temporary of temporary",
    "/etc/passwd (read-only)",
    "/etc/group (read-only)",
    "/opt/lsst/software/jupyterlab/lsst_dask.yml (read-only)",
    "/opt/lsst/software/jupyterlab/panda (read-only)",
    "/etc/nublado/config/lab-config.json (read-only)",
    "/etc/nublado/startup (read-only)",
    "/opt/lsst/software/jupyterlab/secrets (read-only)",
    "/opt/lsst/software/jupyterlab/butler-secret (read-only) of butler-secret",
    "/tmp",
}
VARIABLES = {
    "API_ROUTE": "/api",
    "CONTAINER_SIZE": "Small (1.0 CPU, 3Gi RAM)",
    "CPU_GUARANTEE": "0.25",
    "CPU_LIMIT": "1.0",
    "EXTERNAL_INSTANCE_URL": "http://127.0.0.1:8080",
    "HUB_ROUTE": "/nb/hub",
    "IMAGE_DESCRIPTION": "Daily 2077_10_23",
    "JUPYTERHUB_ACTIVITY_INTERVAL": "7200",
    "JUPYTERLAB_CONFIG_DIR": "/opt/lsst/software/jupyterlab",
    "JUPYTERLAB_START_COMMAND": "/opt/lsst/software/jupyterlab/runlab.sh",
    "MEM_GUARANTEE": "805306368",
    "MEM_LIMIT": "3221225472",
    "NUBLADO_RUNTIME_MOUNTS_DIR": "/opt/lsst/software/jupyterlab",
    "REPERTOIRE_BASE_URL": "https://example.com/repertoire",
    "TAP_ROUTE": "/api/tap",
}
SECRET_VARIABLES = {"ACCESS_TOKEN": "token", "NUBLADO_TOKEN": "token", "BUTLER_SECRET": "butler-secret"}
NODE_VARIABLES = {"KUBERNETES_NODE_NAME", "K8S_NODE_NAME"}


@pytest.fixture
def lab(tmp_path):
    """The objects of a lab, by their kind."""
    with registry_or_skip(tmp_path / "registry") as registry:
        registry.push_image(REPOSITORY, TAG, TAG)
        values = yaml.safe_load(VALUES.read_text())
        values["controller"]["config"]["images"]["source"]["registry"] = registry.address
        (tmp_path / "values.yaml").write_text(json.dumps(values))
        command = [toolchain.target_dir() / "debug/wasmspawner", "migrate", "nublado", "-f", tmp_path / "values.yaml"]
        command += ["--output", tmp_path / "moved", "--policy", toolchain.policy("policy-rubin")]
        subprocess.run(
            [*command, "--base-url", "http://127.0.0.1:8080", "--ingress", "10.1.2.3"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        moved = yaml.safe_load((tmp_path / "moved/wasmspawner.yaml").read_text())

        def adapt(config):
            config["kubernetes"] = config.get("kubernetes", {}) | {"namespace": "default"}
            config["policies"] = moved["policies"]
            config["registries"] = {"plain_http": [registry.address]}
            config["images"] = {"repositories": moved["images"]["repositories"], "refresh_every": "10s"}
            own = {"hub_namespace": config.get("names", {}).get("hub_namespace", "default")}
            config["names"] = moved["names"] | own
            moved["lab"]["network_policy"] = config.get("lab", {}).get("network_policy", {})
            config["lab"] = config.get("lab", {}) | moved["lab"]

        lone = LoneService(tmp_path, adapt)
        with lone.running():
            eventually(lambda: lone.get("/images")["repositories"][0]["refreshed_at"], what="the registry is read")
            make_secrets(lone)
            answer = lone.ask("POST", "/labs/rachel/spawn", {"options": {"image": TAG, "size": "small"}})
            assert answer.status_code == 303, answer.text
            yield eventually(lambda: objects(lone), 15, what="the pod is there")


def make_secrets(lone):
    """The site's Secrets, in the namespace from which the service copies them."""
    for name, key, value in [
        ("nublado-secret", "butler-secret", "some butler secret"),
        ("extra-secret", "db-password", "some database password"),
        ("pull-secret", ".dockerconfigjson", "{}"),
    ]:
        secret = {"metadata": {"name": name}, "stringData": {key: value}}
        if key == ".dockerconfigjson":
            secret["type"] = "kubernetes.io/dockerconfigjson"
        lone.ask_cluster("POST", "/api/v1/namespaces/default/secrets", json=secret)


def objects(lone):
    """The lab's objects by their kind, once it has a pod."""
    found = {}
    for api, plural in [
        ("api/v1", "pods"),
        ("api/v1", "configmaps"),
        ("api/v1", "secrets"),
        ("api/v1", "persistentvolumeclaims"),
        ("apis/networking.k8s.io/v1", "networkpolicies"),
    ]:
        items = lone.ask_cluster("GET", f"/{api}/namespaces/{NAMESPACE}/{plural}").json()["items"]
        found[plural] = {item["metadata"]["name"]: item for item in items}
    if not found["pods"]:
        return None
    return found | {"namespace": lone.ask_cluster("GET", f"/api/v1/namespaces/{NAMESPACE}").json()}


def mounts(container):
    """The paths of a container's mounts, with what else Nublado sets about them. Files have a name of their own as sub path."""
    shown = set()
    for mount in container["volumeMounts"]:
        path, sub_path = mount["mountPath"], mount.get("subPath")
        is_file = sub_path is not None and mount["name"].startswith("wasmspawner-")
        read_only = " (read-only)" if mount.get("readOnly") else ""
        shown.add(f"{path}{read_only}" + ("" if sub_path is None or is_file else f" of {sub_path}"))
    return shown


def environment(lab, container):
    """The variables of a container: their texts, and the keys of secret ones."""
    texts, keys = {}, {}
    for source in container.get("envFrom", []):
        texts |= lab["configmaps"][source["configMapRef"]["name"]]["data"]
    for variable in container["env"]:
        origin = variable.get("valueFrom", {})
        if "secretKeyRef" in origin:
            keys[variable["name"]] = origin["secretKeyRef"]["key"]
        else:
            texts[variable["name"]] = origin.get("fieldRef", {}).get("fieldPath", variable.get("value"))
    return texts, keys


def test_a_lab_has_the_objects_of_nublado(lab):
    (pod,) = lab["pods"].values()
    assert pod["metadata"]["name"] == "rachel-nb"
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["restartPolicy"] == "OnFailure"
    assert spec["nodeSelector"] == {"some-label": "some-value"}
    assert spec["tolerations"][:2] == [
        {"key": "some-toleration", "operator": "Equal", "value": "some-value", "effect": "NoSchedule"},
        {"key": "other-toleration", "operator": "Exists"},
    ]
    assert "another-node-label-key" in json.dumps(spec["affinity"])
    assert "fsGroup" not in spec["securityContext"], "unless `fsGroupPrimary` is on"
    (pull_secret,) = spec["imagePullSecrets"]
    assert lab["secrets"][pull_secret["name"]]["type"] == "kubernetes.io/dockerconfigjson"
    assert lab["secrets"]["rachel-nb"]["data"].keys() >= {"butler-secret", "db-password", "token"}
    for claim in ("rachel-nb-pvc-scratch", "rachel-nb-pvc-temporary"):
        wanted = lab["persistentvolumeclaims"][claim]["spec"]
        assert wanted["accessModes"] == ["ReadWriteMany"]
        assert wanted["storageClassName"] == "sdf-home"
        assert wanted["resources"]["requests"] == {"storage": "1Gi"}
    sources = {volume["name"]: volume for volume in spec["volumes"]}
    assert sources["home"]["nfs"] == {"server": "10.13.105.122", "path": "/share1/home"}
    assert sources["project"]["hostPath"]["path"] == "/share1/project"
    assert sources["scratch"]["persistentVolumeClaim"]["claimName"] == "rachel-nb-pvc-scratch"
    assert sources["tmp"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "768Mi"}, "a quarter of the memory"
    assert sources["lab-startup"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "640Ki"}
    (policy,) = lab["networkpolicies"].values()
    (ingress,) = policy["spec"]["ingress"]
    assert [port["port"] for port in ingress["ports"]] == [8888]
    assert all(peer["podSelector"]["matchLabels"]["app"] == "jupyterhub" for peer in ingress["from"])
    for kind in ("pods", "configmaps", "secrets", "persistentvolumeclaims", "networkpolicies"):
        for name, item in lab[kind].items():
            assert item["metadata"]["annotations"].items() >= ARGO_CD.items(), name
            assert item["metadata"]["labels"]["argocd.argoproj.io/instance"] == "nublado-users", name
    assert lab["namespace"]["metadata"]["annotations"].items() >= ARGO_CD.items()


def test_a_lab_has_the_container_of_nublado(lab):
    (pod,) = lab["pods"].values()
    (notebook,) = pod["spec"]["containers"]
    assert notebook["name"] == "notebook"
    assert notebook["args"] == ["/opt/lsst/software/jupyterlab/runlab.sh"]
    assert notebook["workingDir"] == "/home/rachel"
    assert [port["containerPort"] for port in notebook["ports"]] == [8888]
    assert notebook["resources"]["limits"] == {"cpu": "1", "memory": "3Gi"}
    assert notebook["resources"]["requests"] == {"cpu": "250m", "memory": "768Mi"}
    assert mounts(notebook) == MOUNTS
    texts, keys = environment(lab, notebook)
    image = notebook["image"]
    _, _, digest = image.partition("@")
    images = {"JUPYTER_IMAGE": image, "JUPYTER_IMAGE_SPEC": image, "IMAGE_DIGEST": digest}
    assert {name: texts.get(name) for name in VARIABLES} == VARIABLES
    assert texts.items() >= images.items()
    assert digest.startswith("sha256:")
    assert {name: texts[name] for name in NODE_VARIABLES} == dict.fromkeys(NODE_VARIABLES, "spec.nodeName")
    more = texts.keys() - VARIABLES.keys() - images.keys() - NODE_VARIABLES
    assert more == {"HOME", "JUPYTERHUB_SERVER_NAME", "JUPYTERHUB_USER", "POD_IP", "WASMSPAWNER_URL"}
    assert keys == SECRET_VARIABLES | {"WASMSPAWNER_TOKEN_FILE": "env.WASMSPAWNER_TOKEN_FILE"}
    config = json.loads(lab["configmaps"]["rachel-nb-nss"]["data"]["file.2"])
    assert config["image"] == {"description": "Daily 2077_10_23", "digest": digest, "spec": image}
    assert config["resources"]["requests"] == {"cpu": 0.25, "memory": 805306368}


def test_a_lab_is_prepared_by_the_containers_of_nublado(lab):
    (pod,) = lab["pods"].values()
    inithome, setup, startup = pod["spec"]["initContainers"]
    assert [inithome["name"], setup["name"], startup["name"]] == ["inithome", "user-setup", "nublado-std-startup"]
    assert inithome["securityContext"]["privileged"] is True
    assert mounts(inithome) - {"/etc/passwd (read-only)", "/etc/group (read-only)"} == {"/home", "/scratch"}
    for container in (setup, startup):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
    assert startup["command"] == ["nublado", "startup"]
    # Files of the site and the folder of secrets are the lab's alone; the token is a variable.
    not_there = {mount for mount in MOUNTS if "/opt/lsst/software/jupyterlab/" in mount and "butler" not in mount}
    writes = {"/etc/nublado/startup"}
    assert mounts(startup) == MOUNTS - not_there - {"/etc/nublado/startup (read-only)"} | writes
    for container in (inithome, setup, startup):
        texts, keys = environment(lab, container)
        assert texts["NUBLADO_HOME"] == "/home/rachel"
        assert texts["NUBLADO_UID"] == texts["NUBLADO_GID"] == "1000"
        assert keys == (SECRET_VARIABLES if container is startup else {})
