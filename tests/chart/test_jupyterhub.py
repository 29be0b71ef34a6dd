"""The values for Zero to JupyterHub, beside the example that belongs to them. Its chart itself is not rendered."""

import re
import sys

import pytest
import yaml
from chart import DEPLOY, SOURCE, configuration, merged, one, pod
from helm import HERE

FOLDER = DEPLOY / "zero-to-jupyterhub"
# What the Hub's own code reads of `singleuser` when KubeSpawner is not used, and what the chart needs to be switched off.
NOT_KUBESPAWNER_S = {"defaultUrl", "cmd", "startTimeout", "extraFiles"}


@pytest.fixture
def values():
    return yaml.safe_load((FOLDER / "values.yaml").read_text())


@pytest.fixture
def objects(chart):
    return chart.render(SOURCE / "examples/zero-to-jupyterhub.yaml", namespace="jupyterhub")


def test_the_hub_s_settings_are_settings_of_the_spawner(values):
    sys.path.insert(0, str(DEPLOY.parent / "sdk/python/src"))
    import wasmspawner

    package, name = values["hub"]["config"]["JupyterHub"]["spawner_class"].split(".")
    spawner = getattr(sys.modules[package], name)
    assert spawner is wasmspawner.WasmSpawner
    settings = values["hub"]["config"][name]
    assert settings.keys() <= spawner.class_traits(config=True).keys()


def test_the_hub_calls_the_service_where_the_chart_puts_it(values, objects):
    service = one(objects, "Service", "wasmspawner")
    address = f"http://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}/spawner/v1"
    assert values["hub"]["config"]["WasmSpawner"]["api_url"] == address
    assert service["metadata"]["namespace"] == "jupyterhub"


def test_the_hub_s_token_is_one_that_the_service_takes_for_the_hub_s(values, objects):
    (scopes,) = configuration(objects)["auth"]["jupyterhub"]["services"].items()
    name, granted = scopes
    assert granted == ["admin:jupyterhub"]
    assert name in values["hub"]["services"]
    secret = values["hub"]["extraEnv"]["WASMSPAWNER_TOKEN"]["valueFrom"]["secretKeyRef"]
    assert secret == {"name": "hub", "key": f"hub.services.{name}.apiToken"}
    role = values["hub"]["loadRoles"][name]
    assert role["services"] == [name]
    assert not {scope for scope in role["scopes"] if not scope.startswith(("read:", "list:"))}


def test_the_hub_has_no_permissions_on_the_cluster(values):
    assert values["rbac"] == {"create": False}
    assert values["hub"]["serviceAccount"] == {"create": False}


def test_network_policies_let_hub_service_and_labs_reach_each_other(values, objects):
    access = {"hub.jupyter.org/network-access-hub": "true"}
    labels = one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert access.items() <= labels.items()
    assert access.items() <= configuration(objects)["lab"]["labels"].items()
    assert values["hub"]["networkPolicy"]["interNamespaceAccessLabels"] == "accept"
    (peer,) = one(objects, "NetworkPolicy")["spec"]["ingress"][0]["from"]
    assert peer["podSelector"]["matchLabels"] == {"app": "jupyterhub", "component": "hub"}
    assert configuration(objects)["lab"]["network_policy"]["hub_namespace"] == "jupyterhub"
    assert pod(objects)["automountServiceAccountToken"] is True


def test_the_image_of_the_hub_has_the_package_of_this_repository(values):
    """Nothing is published, so the package is a wheel that is built first."""
    base, copy, run = (FOLDER / "Containerfile").read_text().splitlines()
    assert base.split(":")[1] == values["hub"]["image"]["tag"]
    package = re.search(r'(?m)^name = "(.+)"', (DEPLOY.parent / "sdk/python/pyproject.toml").read_text())[1]
    assert copy == f"COPY {package}-*.whl /tmp/"
    assert run.endswith(f"install --no-cache-dir /tmp/{package}-*.whl")
    page = (DEPLOY / "MOVING-FROM-KUBESPAWNER.md").read_text()
    assert "--wheel-dir deploy/zero-to-jupyterhub sdk/python" in page
    assert f"-t {values['hub']['image']['name']}:{values['hub']['image']['tag']} deploy/zero-to-jupyterhub" in page


def test_a_kubespawner_site_without_what_the_page_lists_has_nothing_left_of_kubespawner(values):
    page = (DEPLOY / "MOVING-FROM-KUBESPAWNER.md").read_text()
    section = page[page.index("## What to delete from the values of Zero to JupyterHub") :]
    rows = re.findall(r"(?m)^\| ((?:`[a-zA-Z.]+`(?:, )?)+) \|", section.split("\n## ")[0])
    listed = [key for row in rows for key in re.findall(r"`([^`]+)`", row)]
    site = yaml.safe_load((HERE / "kubespawner-site.yaml").read_text())
    for key in listed:
        delete(site, key.split("."))
    left = merged(site, values)
    assert "KubeSpawner" not in str(left)
    of_the_new_values = set(values["singleuser"])
    assert set(left["singleuser"]) - of_the_new_values <= NOT_KUBESPAWNER_S
    for key in of_the_new_values:
        assert left["singleuser"][key] == values["singleuser"][key], f"singleuser.{key} is wholly the new one"
    for key in ("prePuller", "scheduling"):
        assert left[key].items() >= values[key].items(), key
    assert left["hub"]["config"]["JupyterHub"]["authenticator_class"], "what has nothing to do with it stays"
    assert left["cull"] == site["cull"]
    assert left["proxy"] == site["proxy"] | values["proxy"], "what labs are reached by is added"


def delete(values, path):
    """Delete a key, which has to be there."""
    for key in path[:-1]:
        values = values[key]
    assert path[-1] in values, f"the example site has no {'.'.join(path)}"
    del values[path[-1]]
