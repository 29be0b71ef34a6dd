"""Sizes of labs, some of which are for the members of groups only."""

from dataclasses import dataclass

from wasmspawner_policy import Denied, Options, Policy, Section, User, quantity
from wasmspawner_policy.form import Choice, Field, FormContext, Radio
from wasmspawner_policy.pod import Customization, Resources


@dataclass
class Size:
    """One entry of `sizes`."""

    name: str
    cpu_millis: int
    memory_bytes: int
    groups: list[str]
    """Who may choose it; everybody if it names no group."""

    @classmethod
    def read(cls, entry: Section) -> "Size":
        """Reads an entry. What is wrong is reported with its place in the configuration."""
        return cls(
            name=entry.required("name", str),
            cpu_millis=entry.required_parsed("cpu", quantity.cpu_millis),
            memory_bytes=entry.required_parsed("memory", quantity.memory_bytes),
            groups=entry.texts("groups"),
        )

    def is_for(self, user: User) -> bool:
        """Whether the user may choose it."""
        return not self.groups or user.is_in_any(self.groups)

    def choice(self) -> Choice:
        """The size in the form."""
        cpus, memory = quantity.show_cpus(self.cpu_millis), quantity.show_bytes(self.memory_bytes)
        return Choice(self.name, self.name, f"{cpus} CPU, {memory}")


class SizesByGroup(Policy):
    """Sizes of labs, by group."""

    def __init__(self, config: Section) -> None:
        self.sizes = config.list("sizes", Size.read)
        if all(size.groups for size in self.sizes):
            config.problem("sizes", "has none for everybody; give at least one no `groups`")

    def form(self, context: FormContext) -> list[Field]:
        """The sizes that the user may choose."""
        choices = [size.choice() for size in self.sizes if size.is_for(context.user)]
        return [Field("size", "Size", Radio(choices), required=True)]

    def build_pod(self, user: User, server: str, options: Options) -> Customization:
        """The form was checked, but not every lab is started with it. So this asks again who may have the size."""
        allowed = [size for size in self.sizes if size.is_for(user)]
        if "size" in options:
            allowed = [size for size in allowed if size.name == options["size"]]
        if not allowed:
            raise Denied("This size is not for you.")
        size = allowed[0]
        resources = Resources(
            cpu_limit_millis=size.cpu_millis,
            cpu_request_millis=size.cpu_millis // 4,
            memory_limit_bytes=size.memory_bytes,
            memory_request_bytes=size.memory_bytes,
        )
        return Customization(resources=resources)
