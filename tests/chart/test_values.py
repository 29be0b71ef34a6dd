"""Values, their schema, and what the chart makes of them."""

import json
import os
import re
import subprocess
import sys

import pytest
import service
import yaml
from chart import DEPLOY, MINIMAL, SOURCE, configuration, merged, one, pod
from helm import Refused

COMMITTED = SOURCE / "values.schema.json"
# Objects whose keys the API server or a policy checks.
OPEN = {
    "/properties/global",
    "/definitions/chart.kubernetes",
    "/definitions/PolicyConfig/properties/config",
    # The specification of an Ingress or an HTTPRoute.
    "/definitions/RouteTemplate/properties/spec",
    # The spec of a Certificate is cert-manager's.
    "/definitions/LabCertificate/oneOf/1/properties/cert_manager",
}


def test_the_schema_is_generated_from_that_of_the_service():
    generator = [sys.executable, SOURCE / "schema/generate.py"]
    printed = service.printed("schema")
    generated = subprocess.run(generator, input=printed, capture_output=True, text=True, check=True).stdout
    if os.environ.get("UPDATE_GOLDEN"):
        COMMITTED.write_text(generated)
    assert COMMITTED.read_text() == generated, "UPDATE_GOLDEN=1 make chart writes deploy/chart/values.schema.json anew"


def test_the_schema_is_strict_everywhere():
    open_objects = []

    def look(part, path):
        if isinstance(part, dict):
            if part.get("type") == "object" and part.get("additionalProperties", True) is True:
                open_objects.append(path)
            for key, value in part.items():
                look(value, f"{path}/{key}")
        elif isinstance(part, list):
            for index, value in enumerate(part):
                look(value, f"{path}/{index}")

    look(json.loads(COMMITTED.read_text()), "")
    assert set(open_objects) == OPEN


def test_every_value_has_a_comment_and_is_in_the_schema():
    lines = (SOURCE / "values.yaml").read_text().splitlines()
    uncommented = []
    for number, line in enumerate(lines):
        if re.match(r" *[a-zA-Z]+:", line) and not re.match(r"  (requests|limits):", line):
            before = lines[number - 1].strip()
            if not before.startswith("#"):
                uncommented.append(line)
    assert uncommented == []
    values = yaml.safe_load((SOURCE / "values.yaml").read_text())
    assert set(values) == set(json.loads(COMMITTED.read_text())["properties"]) - {"global"}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"replica": 2}, "additional properties 'replica' not allowed"),
        ({"config": {"limits": {"drian": "20s"}}}, "'/config/limits': additional properties 'drian' not allowed"),
        ({"config": {"lab": {"port": "many"}}}, "'/config/lab/port': got string, want integer"),
        ({"config": {"kubernetes": {"namespaces": "several"}}}, "/config/kubernetes/namespaces"),
        ({"secrets": {"hubToken": {"token": "s3cret"}}}, "'/secrets/hubToken': additional properties 'token'"),
        ({"config": {"auth": {"static": {"tokens": ["s3cret"]}}}}, "additional properties 'tokens' not allowed"),
        ({"policyFiles": {"default": {"hostPath": "/etc"}}}, "additional properties 'hostPath' not allowed"),
        ({"image": {"digest": "sha256:12"}}, "/image/digest"),
        ({"environments": {"namespacePrefixes": ["Env-"]}}, "/environments/namespacePrefixes/0"),
        ({"config": {"environments": {"class": "gpu"}}}, "additional properties 'class' not allowed"),
        ({"terminationGracePeriodSeconds": "30s"}, "/terminationGracePeriodSeconds"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_an_unknown_key_or_a_wrong_type_is_refused(chart, wrong, told):
    with pytest.raises(Refused) as refused:
        chart.render(merged(MINIMAL, wrong))
    assert told in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_the_chart_fills_in_what_it_knows(chart):
    objects = chart.render(MINIMAL, namespace="jupyterhub", name="labs")
    config = configuration(objects)
    assert config["kubernetes"] == {
        "namespace": "jupyterhub",
        "instance": "jupyterhub-labs-wasmspawner",
        "endpoint_slice": "labs-wasmspawner",
    }
    assert config["http"] == {"listen": "0.0.0.0:8090", "health_listen": "0.0.0.0:8091"}
    assert config["lab"]["network_policy"]["hub_namespace"] == config["names"]["hub_namespace"] == "jupyterhub"
    assert config["state_dir"] == "/var/lib/wasmspawner/state"


def test_labs_that_may_start_kernels_know_the_service_and_may_connect_to_it(chart):
    def clients(values):
        return one(chart.render(values), "NetworkPolicy")["spec"]["ingress"][0]["from"]

    assert "labs_url" not in configuration(chart.render(MINIMAL))["http"]
    values = merged(MINIMAL, {"kernels": {"enabled": True}})
    objects = chart.render(values, namespace="jupyterhub", name="labs")
    assert configuration(objects)["http"]["labs_url"] == "http://labs-wasmspawner.jupyterhub:8090"
    [labs] = [peer for peer in clients(values) if peer not in clients(MINIMAL)]
    of_labs = {"app.kubernetes.io/managed-by": "wasmspawner", "wasmspawner.io/instance": "wasmspawner"}
    assert labs["namespaceSelector"] == {}
    assert labs["podSelector"]["matchLabels"].keys() == of_labs.keys()
    elsewhere = merged(values, {"config": {"http": {"labs_url": "https://spawner.example.org"}}})
    assert configuration(chart.render(elsewhere))["http"]["labs_url"] == "https://spawner.example.org"


def test_what_a_site_sets_stays_even_if_it_is_null(chart):
    mine = {
        "lab": {"argo_cd": None, "network_policy": {"hub_namespace": "elsewhere"}},
        "kubernetes": {"instance": "mine", "requests_per_second": None},
        "http": {"listen": "[::]:9000", "max_body_bytes": 1048576000},
    }
    objects = chart.render(merged(MINIMAL, {"config": mine}))
    config = configuration(objects)
    assert config["lab"] == mine["lab"]
    filled = {"namespace": "wasmspawner", "endpoint_slice": "wasmspawner"}
    assert config["kubernetes"] == {"instance": "mine", "requests_per_second": None, **filled}
    assert config["http"]["max_body_bytes"] == 1048576000
    assert one(objects, "Service", "wasmspawner")["spec"]["ports"][0]["port"] == 9000
    assert pod(objects)["containers"][0]["ports"][0]["containerPort"] == 9000
    assert one(objects, "NetworkPolicy")["spec"]["ingress"][0]["ports"] == [{"port": 9000, "protocol": "TCP"}]


@pytest.mark.parametrize(("drain", "seconds"), [(None, 50), ("40s", 70), ("1m30s", 120), ("2m", 150)])
def test_the_pod_gets_more_time_than_the_service_needs_to_finish_spawns(chart, drain, seconds):
    limits = {"config": {"limits": {"drain": drain}}} if drain else {}
    objects = chart.render(merged(MINIMAL, limits))
    assert pod(objects)["terminationGracePeriodSeconds"] == seconds


def test_a_changed_configuration_replaces_the_pod_and_an_unchanged_one_does_not(chart):
    def checksum(values):
        return one(chart.render(values), "Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    before = checksum(MINIMAL)
    assert checksum(merged(MINIMAL, {"networkPolicy": {"enabled": False}})) == before
    assert checksum(merged(MINIMAL, {"config": {"limits": {"spawn": "11m"}}})) != before


def test_a_new_pod_stands_by_before_the_old_one_ends(chart):
    objects = chart.render(MINIMAL)
    deployment = one(objects, "Deployment")["spec"]
    assert deployment["replicas"] == 1
    handed_over = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    assert deployment["strategy"] == handed_over
    assert "affinity" not in pod(objects)
    assert not [each for each in objects if each["kind"] == "PodDisruptionBudget"]


def test_two_replicas_are_on_different_nodes_and_are_not_evicted_together(chart):
    objects = chart.render(merged(MINIMAL, {"replicas": 2}))
    deployment = one(objects, "Deployment")["spec"]
    assert deployment["replicas"] == 2
    (apart,) = pod(objects)["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selector = deployment["selector"]
    assert apart["podAffinityTerm"] == {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    budget = one(objects, "PodDisruptionBudget")["spec"]
    assert budget == {"minAvailable": 1, "selector": selector}
    own = {"affinity": {"nodeAffinity": {}}, "podDisruptionBudget": {"enabled": False}}
    objects = chart.render(merged(MINIMAL, {"replicas": 2, **own}))
    assert pod(objects)["affinity"] == own["affinity"]
    assert not [each for each in objects if each["kind"] == "PodDisruptionBudget"]


def test_two_pods_never_have_the_volume_of_the_state(chart):
    objects = chart.render(merged(MINIMAL, {"state": {"persistence": {"enabled": True}}}))
    assert one(objects, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_the_new_configuration_is_checked_before_an_upgrade_changes_anything(chart):
    objects = chart.render(merged(MINIMAL, {"upgradeCheck": {"enabled": True}, "policyData": ["site"]}))
    hooks = [each for each in objects if "upgrade-check" in each["metadata"]["name"]]
    assert [each["kind"] for each in hooks] == ["ConfigMap", "Job"]
    for each in hooks:
        assert each["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    own, new = (each["data"] for each in objects if each["kind"] == "ConfigMap")
    assert own == new
    checks = hooks[1]["spec"]["template"]["spec"]
    (container,) = checks["containers"]
    assert container["args"] == ["check"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in checks["volumes"]}
    assert checks["volumes"][0]["configMap"]["name"] == hooks[0]["metadata"]["name"], "not the present one"
    assert checks["automountServiceAccountToken"] is False


def test_requests_go_to_the_process_that_leads_and_metrics_come_from_each(chart):
    objects = chart.render(MINIMAL)
    (api, metrics) = [each for each in objects if each["kind"] == "Service"]
    assert "selector" not in api["spec"], "Kubernetes would send requests to those that stand by"
    assert api["spec"]["ipFamilies"] == ["IPv4"], "the family of the addresses in the slice"
    sixth = chart.render(merged(MINIMAL, {"service": {"addressType": "IPv6"}}))
    assert one(sixth, "EndpointSlice")["addressType"] == "IPv6"
    assert one(sixth, "Service", "wasmspawner")["spec"]["ipFamilies"] == ["IPv6"]
    assert configuration(sixth)["http"]["listen"] == "[::]:8090"
    slices = one(objects, "EndpointSlice")
    assert "endpoints" not in slices, "an upgrade would send requests nowhere"
    assert slices["metadata"]["labels"]["kubernetes.io/service-name"] == api["metadata"]["name"]
    assert [port["name"] for port in slices["ports"]] == [port["name"] for port in api["spec"]["ports"]]
    assert configuration(objects)["kubernetes"]["endpoint_slice"] == slices["metadata"]["name"]
    deployment = one(objects, "Deployment")["spec"]
    assert metrics["spec"]["publishNotReadyAddresses"] is True
    assert metrics["spec"]["selector"] == deployment["selector"]["matchLabels"]
    own = {each["name"] for each in pod(objects)["containers"][0]["env"]}
    assert own >= {f"WASMSPAWNER_{name}" for name in ("POD_NAME", "POD_UID", "POD_IPS", "NODE_NAME")}


def test_policies_come_from_the_image_a_config_map_or_an_image_volume(chart):
    files = {
        "site": {"configMap": {"name": "policies", "key": "site.wasm"}},
        "gpu": {"image": {"reference": "r.example.org/gpu:1"}},
        "unused": {"configMap": {"name": "unused", "key": "k"}},
    }
    named = [{"name": "default"}, {"name": "site"}, {"name": "gpu"}, {"name": "own", "path": "/own.wasm"}]
    objects = chart.render(merged(MINIMAL, {"policyFiles": files, "config": {"policies": named}}))
    assert [policy["path"] for policy in configuration(objects)["policies"]] == [
        "/usr/share/wasmspawner/policies/default.wasm",
        "/etc/wasmspawner/policies/site/policy.wasm",
        "/etc/wasmspawner/policies/gpu",
        "/own.wasm",
    ]
    volumes = {volume["name"]: volume for volume in pod(objects)["volumes"]}
    items = [{"key": "site.wasm", "path": "policy.wasm"}]
    assert volumes["policy-site"]["configMap"] == {"name": "policies", "items": items}
    assert volumes["policy-gpu"]["image"] == {"reference": "r.example.org/gpu:1", "pullPolicy": "IfNotPresent"}
    assert set(volumes) == {"config", "state", "policy-site", "policy-gpu"}


def test_the_data_of_policies_comes_from_config_maps(chart):
    data = {"teams": "/etc/wasmspawner/data/site/teams.yaml"}
    values = {"policyData": ["site"], "config": {"policies": [{"name": "default", "data": data}]}}
    objects = chart.render(merged(MINIMAL, values))
    assert configuration(objects)["policies"][0]["data"] == data
    volumes = {volume["name"]: volume for volume in pod(objects)["volumes"]}
    assert volumes["data-site"] == {"name": "data-site", "configMap": {"name": "site"}}
    mounts = {mount["name"]: mount for mount in pod(objects)["containers"][0]["volumeMounts"]}
    assert mounts["data-site"] == {"name": "data-site", "mountPath": "/etc/wasmspawner/data/site", "readOnly": True}


def test_a_history_in_nats_has_its_login_as_a_file_and_may_be_reached(chart):
    values = {
        "config": {"history": {"nats": {"servers": ["tls://a:4333", "nats://b", "nats://c:4222"], "user": "hub"}}},
        "secrets": {
            "natsLogin": {"existingSecret": "login", "key": "password", "as": "password_file"},
            "natsAuthorities": {"existingSecret": "authorities"},
        },
        "networkPolicy": {"nats": [{"podSelector": {"matchLabels": {"app": "nats"}}}]},
    }
    objects = chart.render(merged(MINIMAL, values))
    nats = configuration(objects)["history"]["nats"]
    assert nats["password_file"] == "/etc/wasmspawner/secrets/nats/login"
    assert nats["ca_file"] == "/etc/wasmspawner/secrets/nats-ca/ca.crt"
    volumes = {volume["name"]: volume for volume in pod(objects)["volumes"]}
    secret = volumes["nats-login"]["secret"]
    assert (secret["secretName"], secret["items"]) == ("login", [{"key": "password", "path": "login"}])
    egress = one(objects, "NetworkPolicy")["spec"]["egress"]
    to_nats = [rule for rule in egress if rule.get("to") == values["networkPolicy"]["nats"]]
    assert [port["port"] for rule in to_nats for port in rule["ports"]] == [4333, 4222]


def test_the_versions_are_those_of_the_workspace():
    workspace = re.search(r'(?m)^version = "(.+)"', (DEPLOY.parent / "Cargo.toml").read_text())[1]
    described = yaml.safe_load((SOURCE / "Chart.yaml").read_text())
    assert described["version"] == described["appVersion"] == workspace
