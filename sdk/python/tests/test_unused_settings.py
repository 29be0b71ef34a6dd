import pytest
from traitlets.config import Config

from wasmspawner import WasmSpawner, unused_settings
from wasmspawner.unused_settings import warn_once

POLICY = "the configuration of the site's policy"


@pytest.mark.parametrize(
    ("section", "name", "place"),
    [
        ("KubeSpawner", "image", POLICY),
        ("WasmSpawner", "image", POLICY),
        ("Spawner", "mem_limit", POLICY),
        ("Spawner", "cmd", POLICY),
        ("WasmSpawner", "modify_pod_hook", "a policy with the grant `pod-patch`"),
        ("KubeSpawner", "namespace", "`names` of the service"),
        ("KubeSpawner", "uid", "`auth.identities` of the service, or the identity provider"),
        ("KubeSpawner", "start_timeout", "`c.WasmSpawner`"),
        ("KubeSpawner", "k8s_api_threadpool_workers", "deploy/MOVING-FROM-KUBESPAWNER.md has them all"),
        ("WasmSpawner", "start_timeout", None),
        ("Spawner", "environment", None),
        ("Spawner", "pre_spawn_hook", None),
        ("WasmSpawner", "api_url", None),
        ("SystemdSpawner", "mem_limit", None),
    ],
)
def test_a_setting_without_effect_is_named_with_its_place(section, name, place):
    config = Config({section: {name: "x"}})
    expected = {} if place is None else {place: [f"c.{section}.{name}"]}
    assert unused_settings.unused_settings(WasmSpawner, config) == expected


def test_the_settings_of_groups_are_looked_at():
    overrides = {
        "big": {
            "groups": ["gpu"],
            "spawner_override": {"mem_limit": "8G", "environment": {}, "priority_class_name": "x"},
        }
    }
    found = unused_settings.unused_settings(WasmSpawner, Config({"Spawner": {"group_overrides": overrides}}))
    assert found == {
        POLICY: ["mem_limit of the group override big"],
        "`lab` of the service": ["priority_class_name of the group override big"],
    }
    function = Config({"Spawner": {"group_overrides": lambda spawner: {}}})
    assert unused_settings.unused_settings(WasmSpawner, function) == {}


def test_the_hub_is_warned_once(caplog):
    class Mine(WasmSpawner):
        pass

    config = Config({"Mine": {"image": "lab:1"}, "JupyterHub": {"internal_ssl": True}})
    for _ in range(2):
        warn_once(Mine, config)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2
    assert "c.Mine.image" in warnings[0]
    assert "internal_ssl" in warnings[1]
