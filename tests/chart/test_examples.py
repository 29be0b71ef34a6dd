"""Every file of values in deploy/chart/examples."""

import pytest
import service
from chart import EXAMPLES, NEWEST, OLDEST, SOURCE, configuration, one, pod
from helm import Refused

# Examples for Kubernetes 1.35 and later.
NEEDS_IMAGE_VOLUMES = {"image-volumes"}


def by_name(path):
    return path.stem


@pytest.mark.parametrize("values", [None, *EXAMPLES], ids=lambda path: path.stem if path else "defaults")
def test_helm_finds_nothing_wrong(helm, chart, values):
    assert len(EXAMPLES) >= 5
    told = helm.run("lint", "--strict", SOURCE, *(["-f", values] if values else []))
    assert "0 chart(s) failed" in told


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("values", EXAMPLES, ids=by_name)
def test_an_example_renders_for_the_oldest_and_the_newest_kubernetes(chart, values, version):
    if values.stem in NEEDS_IMAGE_VOLUMES and version == OLDEST:
        with pytest.raises(Refused, match=r"policyFiles\.site\.image: Kubernetes v1\.30\.0 .* use configMap"):
            chart.render(values, version=version)
        return
    objects = chart.render(values, version=version)
    kinds = [each["kind"] for each in objects]
    for kind in ("Deployment", "Service", "ServiceAccount", "NetworkPolicy", "ConfigMap", "Role", "RoleBinding"):
        assert kind in kinds, kind
    assert "Secret" not in kinds, "the chart makes no Secrets"
    # The admission policy names what it refuses.
    assert "hostPath" not in str([each for each in objects if each["kind"] != "ValidatingAdmissionPolicy"])


@pytest.mark.parametrize("values", EXAMPLES, ids=by_name)
def test_the_service_accepts_the_configuration_of_an_example(chart, values, tmp_path):
    rendered = configuration(chart.render(values))
    secrets = {}
    if "static" in rendered["auth"]["modes"]:
        tokens = tmp_path / "tokens.yaml"
        tokens.touch(mode=0o600)
        secrets[rendered["auth"]["static"]["tokens_file"]] = str(tokens)
    service.check(service.runnable(rendered, tmp_path, secrets), tmp_path)


@pytest.mark.parametrize("values", EXAMPLES, ids=by_name)
def test_the_pod_mounts_every_file_that_its_configuration_names(chart, values):
    objects = chart.render(values)
    mounts = {mount["name"]: mount["mountPath"] for mount in pod(objects)["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod(objects)["volumes"]}
    assert mounts.keys() == volumes.keys()
    assert pod(objects)["securityContext"]["runAsUser"] == 65532
    config = configuration(objects)
    folders = (*mounts.values(), "/usr/share/wasmspawner/policies")
    paths = [policy["path"] for policy in config["policies"] if "path" in policy] + [config["state_dir"]]
    paths += config.get("registries", {}).values()
    paths += list((config["http"].get("tls") or {}).values())
    paths += [config["hub"]["token_file"]] if "hub" in config else []
    for path in paths:
        assert any(path == folder or path.startswith(f"{folder}/") for folder in folders), path
    config_file = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "WASMSPAWNER_CONFIG", "value": "/etc/wasmspawner/config/wasmspawner.yaml"} in config_file
