"""Settings of JupyterHub's and KubeSpawner's spawners that have no effect here, because the service decides."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from jupyterhub.spawner import Spawner
from traitlets.config import Config
from traitlets.log import get_logger

INTERNAL_SSL = (
    "c.JupyterHub.internal_ssl does not work with wasmspawner, whose labs are given no certificates of the Hub. Remove it; "
    "labs answer over TLS with `lab.service.certificate` of the service."
)
_PAGE = "deploy/MOVING-FROM-KUBESPAWNER.md has them all"

_PLACES = {
    "the configuration of the site's policy": """
        image image_spec profile_list profile_form_template additional_profile_form_template_paths cmd args working_dir
        mem_limit mem_guarantee cpu_limit cpu_guarantee extra_resource_limits extra_resource_guarantees volumes
        volume_mounts init_containers node_selector tolerations storage_pvc_ensure storage_capacity storage_class
        storage_access_modes storage_selector storage_extra_labels storage_extra_annotations delete_pvc
        """,
    "`names` of the service": """
        namespace enable_user_namespaces user_namespace_template slug_scheme pod_name_template pvc_name_template
        dns_name_template secret_name_template remember_pvc_name handle_legacy_names
        """,
    "`lab` of the service": """
        common_labels extra_labels extra_annotations image_pull_policy image_pull_secrets scheduler_name
        priority_class_name privileged allow_privilege_escalation service_account automount_service_account_token
        services_enabled
        """,
    "`auth.identities` of the service, or the identity provider": "uid gid fs_gid fs_group supplemental_gids",
    "a policy with the grant `pod-patch`": """
        modify_pod_hook after_pod_created_hook extra_pod_config extra_container_config extra_containers lifecycle_hooks
        container_security_context pod_security_context node_affinity_preferred node_affinity_required
        pod_affinity_preferred pod_affinity_required pod_anti_affinity_preferred pod_anti_affinity_required
        """,
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}


def unused_settings(spawner_class: type[Spawner], config: Config) -> dict[str, list[str]]:
    """The settings in the Hub's configuration that have no effect, by the place where they belong."""
    found: dict[str, list[str]] = {}
    sections = {"KubeSpawner", *(each.__name__ for each in spawner_class.__mro__ if issubclass(each, Spawner))}
    for section in sorted(sections & set(config)):
        for name in sorted(config[section]):
            place = _PLACE_OF.get(name)
            if place is None and not hasattr(spawner_class, name):
                place = _PAGE
            elif place is None and section == "KubeSpawner":
                place = f"`c.{spawner_class.__name__}`"
            if place is not None:
                found.setdefault(place, []).append(f"c.{section}.{name}")
            if name == "group_overrides":
                for key, overridden in _overridden(config[section][name]):
                    found.setdefault(_PLACE_OF.get(overridden, _PAGE), []).append(f"{overridden} of {key}")
    return found


def _overridden(overrides: Any) -> Iterator[tuple[str, str]]:
    """The settings in `group_overrides` that have no effect. A function cannot be looked into."""
    if not isinstance(overrides, Mapping):
        return
    for key, override in overrides.items():
        for name in override.get("spawner_override", {}):
            if name in _PLACE_OF or not hasattr(Spawner, name):
                yield f"the group override {key}", name


class _Warned:
    classes: ClassVar[set[type[Spawner]]] = set()


def warn_once(spawner_class: type[Spawner], config: Config) -> None:
    """Warn of settings without effect, once in the life of the Hub."""
    if spawner_class in _Warned.classes:
        return
    _Warned.classes.add(spawner_class)
    for place, names in unused_settings(spawner_class, config).items():
        get_logger().warning("These settings have no effect with wasmspawner: %s. Instead: %s", ", ".join(names), place)
    if config.JupyterHub.get("internal_ssl"):
        get_logger().warning(INTERNAL_SSL)
