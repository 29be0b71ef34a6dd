"""The settings of the lab's pod that a site decides.

Containers choose a security profile instead of a security context, so privileges cannot be requested by accident. Each
field that needs a grant of the operator says which one.
"""

from dataclasses import dataclass, field
from enum import Enum

from .volume import Volume


@dataclass
class Image:
    """A container image. `digest` (`sha256:...`) pins it; `description` is shown to people."""

    reference: str
    digest: str | None = None
    description: str | None = None


@dataclass
class SecretRef:
    """The value of a key of a Secret in the lab's namespace. Needs the grant `secrets: [name]`."""

    name: str
    key: str

    @property
    def value(self) -> "SecretRef":
        """This reference itself, which the service reads."""
        return self


@dataclass
class FieldRef:
    """The value of a field of the pod, such as `status.podIP`."""

    value: str


Environment = dict[str, str | SecretRef | FieldRef]
"""The variables of a container, by name."""


@dataclass
class ResourceClaim:
    """A claim of a device."""

    name: str
    template: str
    """A `ResourceClaimTemplate` in the lab's namespace."""
    request: str | None = None


@dataclass
class Resources:
    """Requests and limits. What is absent is as the other policies or the service say."""

    cpu_limit_millis: int | None = None
    """CPU in thousandths of a CPU."""
    cpu_request_millis: int | None = None
    memory_limit_bytes: int | None = None
    memory_request_bytes: int | None = None
    extended: dict[str, int] = field(default_factory=dict)
    """Extended resources, such as `nvidia.com/gpu`. Request and limit are the same, as Kubernetes requires."""
    claims: list[ResourceClaim] = field(default_factory=list)


class TolerationOperator(Enum):
    """How a toleration compares its value."""

    EXISTS = 0
    EQUAL = 1


class TaintEffect(Enum):
    """The effect of a taint."""

    NO_SCHEDULE = 0
    PREFER_NO_SCHEDULE = 1
    NO_EXECUTE = 2


@dataclass
class Toleration:
    """A toleration of taints of nodes."""

    key: str | None = None
    operator: TolerationOperator = TolerationOperator.EXISTS
    value: str | None = None
    effect: TaintEffect | None = None
    seconds: int | None = None


class AffinityPreset(Enum):
    """Where labs are beside each other."""

    NONE = 0
    SPREAD = 1
    """Labs on different nodes if possible."""
    PACK = 2
    """Labs on the same nodes if possible, so that other nodes can be removed."""


@dataclass
class Mount:
    """Mounts a volume at an absolute path; with `sub_path` only this path within the volume."""

    volume: str
    path: str
    sub_path: str | None = None
    read_only: bool = False


class SecurityProfile(Enum):
    """What an init container may do."""

    RESTRICTED = 0
    """Runs as the lab does: as its user, without capabilities."""
    BASELINE = 1
    """May run as root, but not privileged. Needs the grant `run-as-root-init`."""
    PRIVILEGED = 2
    """Runs privileged. Needs the grant `privileged-init`."""


class InitRun(Enum):
    """When an init container runs."""

    ALWAYS = 0
    """At every start of the lab."""
    UNTIL_PROVISIONED = 1
    """Until a lab of this user has become ready. The container must still be idempotent."""


@dataclass
class InitContainer:
    """A container that ends before the lab starts. It has the variables `NB_USER`, `NB_UID`, `NB_GID`,
    `NB_SUPPLEMENTAL_GIDS` and `NB_HOME` of the lab's user, unless `env` sets them. Without a command it runs that of the
    image."""

    name: str
    image: str
    command: list[str] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    env: Environment = field(default_factory=dict)
    mounts: list[Mount] = field(default_factory=list)
    resources: Resources | None = None
    profile: SecurityProfile = SecurityProfile.RESTRICTED
    run: InitRun = InitRun.ALWAYS


@dataclass
class TimeLimits:
    """Time limits in seconds. The operator's maximum applies."""

    spawn_seconds: int | None = None
    delete_seconds: int | None = None


@dataclass
class Customization:
    """The settings that one policy wants. Answers are merged in the order of the chain; a later one wins."""

    image: Image | None = None
    env: Environment = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    resources: Resources | None = None
    tolerations: list[Toleration] = field(default_factory=list)
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: AffinityPreset | None = None
    volumes: list[Volume] = field(default_factory=list)
    mounts: list[Mount] = field(default_factory=list)
    init_containers: list[InitContainer] = field(default_factory=list)
    command: list[str] | None = None
    args: list[str] | None = None
    working_dir: str | None = None
    time_limits: TimeLimits | None = None
    environment_class: str | None = None
    """The name of a `DeploymentTargetClass`, or `environment/` and the name of an `Environment`, where the lab is to run."""
    pod_patch: str | None = None
    """A strategic merge patch of the Pod, as JSON. Needs the grant `pod-patch: [path]`."""
