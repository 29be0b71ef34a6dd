"""A policy with every hook and every type of answer, which the program runs in a test."""

import random

from wasmspawner_policy import (
    Action,
    Allow,
    AuthorizeRequest,
    Denied,
    Deny,
    Options,
    Policy,
    Quota,
    RetryLater,
    Section,
    Usage,
    User,
    Verdict,
    host,
)
from wasmspawner_policy.event import Event
from wasmspawner_policy.form import Checkbox, Choice, Condition, Field, FormContext, Number, Select, Text
from wasmspawner_policy.images import Entry, First, Hidden, ImageClass, ImageMenu, WantedImage
from wasmspawner_policy.inject import Access, VolumeAccess, Workload, WorkloadKind
from wasmspawner_policy.lab_server import HttpProbe, NoProbe, Settings, TcpProbe
from wasmspawner_policy.pod import (
    AffinityPreset,
    Customization,
    FieldRef,
    Image,
    InitContainer,
    InitRun,
    Mount,
    ResourceClaim,
    Resources,
    SecretRef,
    TaintEffect,
    TimeLimits,
    Toleration,
    TolerationOperator,
)
from wasmspawner_policy.volume import (
    AccessMode,
    Claim,
    ClaimReclaim,
    ClaimTemplate,
    ConfigMap,
    EmptyDir,
    HostPath,
    Nfs,
    Secret,
    Volume,
)


class Everything(Policy):
    """Decides everything."""

    config_schema = {"type": "object"}  # noqa: RUF012

    def __init__(self, config: Section) -> None:
        self.labs = config.required("labs", int)
        print("prepared")

    def form(self, context: FormContext) -> list[Field]:
        """Fields of every kind."""
        if context.user.name == "eve":
            raise Denied("Nothing for you.", rule="nobody")
        return [
            Field("size", "Size", Select([Choice("s", "S", "small"), Choice("l", "L")]), help="help", group="group"),
            Field("debug", "Debug", Checkbox(value=True)),
            Field("note", "Note", Text("a", "placeholder", 9, "[a-z]*"), required=True),
            Field("gpus", "GPUs", Number(1, 0, 8, 0.5), visible_when=Condition("size", ["l"])),
        ]

    def quota(self, user: User, usage: Usage) -> Quota:
        """All limits."""
        if user.name == "eve":
            raise RetryLater(60)
        use = host.present_use()
        return Quota(use.cpu_millis, use.memory_bytes, 3, use.kernels, self.labs + usage.labs, {"nvidia.com/gpu": 2})

    def authorize(self, request: AuthorizeRequest) -> Verdict:
        """Kernels are for the staff."""
        child = host.child()
        if request.action is Action.SCALE:
            return None  # type: ignore[return-value]
        if child and not request.user.is_in("staff"):
            return Deny(f"No {child.kind.name} {child.name}.", rule="staff-only")
        return Allow()

    def inject(self, user: User, server: str, options: Options, workload: Workload) -> Access | Deny:
        """Into deployments only."""
        if workload.kind is not WorkloadKind.DEPLOYMENT:
            return Deny(f"Not into {workload.namespace}/{workload.name}.")
        volumes = [VolumeAccess(one.name, f"/data/{one.source}", read_only=True) for one in workload.volumes]
        return Access(volumes, environment_of=workload.containers[0].name)

    def on_event(self, event: Event) -> None:
        """Writes what it hears; fails for a server that is called `wrong`."""
        child = host.child()
        about = f"{child.kind.name.lower()} {child.name}" if child else "lab"
        if event.server == "wrong":
            raise ValueError(event.server)
        host.info(f"{event.what.name.lower()} {event.username} {about} {event.took_ms} {event.reason}")

    def build_pod(self, user: User, server: str, options: Options) -> Customization:
        """Every setting that needs no grant."""
        if options.get("wrong"):
            return 1 / 0  # type: ignore[return-value]
        print("two", "lines\n")
        differs = random.random() != options.get("before")
        claim = ClaimTemplate(5, "fast", [AccessMode.READ_WRITE_MANY], {"a": "b"}, {"c": "d"}, {"e": "f"})
        claim.reclaim = ClaimReclaim.DELETE
        sources = [Nfs("nfs", "/x"), Claim("c-{username}", create=claim), EmptyDir(7, memory=True)]
        sources += [ConfigMap("map", items={"key": "path"}, mode=0o440)]
        if options.get("grants"):
            sources += [Secret("secret"), HostPath("/host")]
        volumes = [Volume(f"v{number}", source) for number, source in enumerate(sources)]
        env = {"TEXT": f"{len(host.random(8))} {differs} {host.now_millis() > 0}", "IP": FieldRef("status.podIP")}
        if options.get("grants"):
            env["SECRET"] = SecretRef("secret", "key")
        resources = Resources(1, 2, 3, 4, {"nvidia.com/gpu": 1}, [ResourceClaim("claim", "template")])
        init = InitContainer("init", "image", ["a"], ["b"], {"X": "y"}, [Mount("v0", "/v", "sub")], resources)
        init.run = InitRun.UNTIL_PROVISIONED
        return Customization(
            image=Image("lab:1"),
            env=env,
            labels={"example.org/a": host.expand("{username}")},
            annotations={"example.org/b": "1"},
            resources=resources,
            tolerations=[Toleration("key", TolerationOperator.EQUAL, "value", TaintEffect.NO_EXECUTE, 60)],
            node_selector={"pool": "a"},
            affinity=AffinityPreset.PACK,
            volumes=volumes,
            mounts=[Mount("v1", "/home", read_only=True)],
            init_containers=[init],
            command=["start"],
            args=[],
            working_dir="/home",
            time_limits=TimeLimits(60),
        )

    def lab_server(self, user: User, server: str, options: Options) -> Settings:
        """A probe of each kind."""
        probes = {"http": HttpProbe("/healthz"), "tcp": TcpProbe(), "none": NoProbe()}
        return Settings(None, probes.get(str(options.get("probe"))))

    def lab_files(self, user: User, server: str, options: Options) -> dict[str, str]:
        """A file of each lab."""
        return {"/etc/site/lab.txt": f"the lab of {user.name}"}

    def images(self, user: User, server: str) -> ImageMenu | None:
        """The images of a repository."""
        known = host.images("example.org/lab")
        if not known:
            return None
        entries = [Entry(one.tag, f"example.org/lab:{one.tag}", one.tag, place=Hidden("old")) for one in known]
        entries[0].place, entries[0].recommended = First(), True
        return ImageMenu(entries, [ImageClass("newest", entries[0].name)])

    def prepull(self) -> list[WantedImage]:
        """One image."""
        return [WantedImage("example.org/lab:v2", {"pool": "a"})]
