"""The images from which users choose."""

from dataclasses import dataclass, field


@dataclass
class Automatic:
    """With the first entries if it is recommended, or if every node on which labs can run has it; else with the rest."""


@dataclass
class First:
    """With the first entries, which are visible at once."""


@dataclass
class Rest:
    """In the list of all other images, which can be searched."""


@dataclass
class Hidden:
    """Not in the form, for this reason. It can still be asked for by name."""

    value: str


Place = Automatic | First | Rest | Hidden
"""Where the form shows an entry."""


@dataclass
class Entry:
    """An image of the menu."""

    name: str
    """The value of the option `image`, unique in the menu."""
    reference: str
    """The image with its tag, such as `registry.example.org/site/lab:w_2026_40`."""
    label: str
    digest: str | None = None
    """Pins the image, `sha256:...`. If absent, the service pins it to the digest that it knows."""
    description: str | None = None
    group: str | None = None
    """What kind of image it is; the list of the rest shows it beside the label."""
    recommended: bool = False
    place: Place = field(default_factory=Automatic)


@dataclass
class ImageClass:
    """Another name of an entry, such as `latest-weekly`. No entry and no other class may have the same name."""

    name: str
    entry: str


@dataclass
class ImageMenu:
    """The images of a user."""

    entries: list[Entry]
    """In the order in which they are shown. The first that is recommended is chosen unless the user chooses another; if
    none is, the first."""
    classes: list[ImageClass] = field(default_factory=list)


@dataclass
class WantedImage:
    """An image that nodes are to have before it is asked for."""

    reference: str
    node_selector: dict[str, str] = field(default_factory=dict)
    """Only nodes with these labels need it."""
