"""Changes answers to the form of the contract, which has lists of names and values where policies have dictionaries."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from .form import Choices, Field
from .images import WantedImage
from .pod import Customization, Environment, InitContainer, Resources
from .quota import Quota
from .volume import Claim, ConfigMap, Volume

T = TypeVar("T")


@dataclass
class Named:
    """A name with a value: a label, a variable."""

    name: str
    value: Any


@dataclass
class TextFile:
    """A text file of a lab."""

    path: str
    content: str


class Literal(str):
    """The text of a variable. Its class is what tells it from a reference."""

    @property
    def value(self) -> str:
        """The text itself, which the service reads."""
        return str(self)


def customization(lab: Customization) -> Customization:
    """The settings of a pod."""
    return _changed(
        lab,
        env=_env(lab.env),
        labels=pairs(lab.labels),
        annotations=pairs(lab.annotations),
        resources=_resources(lab.resources),
        tolerations=list(lab.tolerations),
        node_selector=pairs(lab.node_selector),
        volumes=[_volume(volume) for volume in lab.volumes],
        mounts=list(lab.mounts),
        init_containers=[_init_container(container) for container in lab.init_containers],
    )


def quota(limits: Quota) -> Quota:
    """Limits of a user."""
    return _changed(limits, extended=list(limits.extended.items()))


def field(one: Field) -> Field:
    """A field of the form."""
    # The kind is a record of its own in the contract; a list is what componentize-py takes for one.
    if isinstance(one.kind, Choices) and not isinstance(one.kind.choices, list):
        return _changed(one, kind=_changed(one.kind, choices=list(one.kind.choices)))
    return one


def text_files(files: Mapping[str, str]) -> list[TextFile]:
    """The text files of a lab."""
    return [TextFile(path, content) for path, content in files.items()]


def wanted_image(image: WantedImage) -> WantedImage:
    """An image that nodes are to have."""
    return _changed(image, node_selector=pairs(image.node_selector))


def pairs(values: Mapping[str, Any]) -> list[Named]:
    """The entries of a dictionary."""
    return [Named(name, value) for name, value in values.items()]


def _env(variables: Environment) -> list[Named]:
    return [Named(name, Literal(value) if isinstance(value, str) else value) for name, value in variables.items()]


def _resources(resources: Resources | None) -> Resources | None:
    return resources and _changed(resources, extended=list(resources.extended.items()))


def _init_container(container: InitContainer) -> InitContainer:
    return _changed(container, env=_env(container.env), resources=_resources(container.resources))


def _volume(volume: Volume) -> Volume:
    source = volume.source
    if isinstance(source, ConfigMap):
        source = _changed(source, items=list(source.items.items()))
    elif isinstance(source, Claim) and source.create is not None:
        claim = source.create
        labels, annotations, selector = pairs(claim.labels), pairs(claim.annotations), pairs(claim.selector)
        claim = _changed(claim, labels=labels, annotations=annotations, selector=selector)
        source = _changed(source, create=claim)
    return _changed(volume, source=source)


def _changed(value: T, **attributes: Any) -> T:
    """A copy with other attributes. It is of the same class, because that tells the cases of a variant."""
    copy = object.__new__(type(value))
    vars(copy).update(vars(value), **attributes)
    return copy
