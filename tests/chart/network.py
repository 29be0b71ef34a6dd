"""Connections between pods that NetworkPolicies let through."""

from dataclasses import dataclass, field

NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"


@dataclass(frozen=True)
class Pod:
    """A pod, with the numbers of its named ports."""

    namespace: str
    labels: dict[str, str]
    ports: dict[str, int] = field(default_factory=dict)


@dataclass
class Network:
    """A network. With `pods_are_addresses`, an `ipBlock` of all addresses is also about pods; without, as in Cilium's, only
    selectors are.
    """

    policies: list[dict]
    pods_are_addresses: bool = False

    def lets(self, source: Pod, target: Pod, port: int) -> bool:
        """True if the source can connect to the target's TCP port."""
        return self._lets("egress", "to", source, target, port, target) and self._lets(
            "ingress", "from", target, source, port, target
        )

    def _lets(self, direction: str, peers: str, selected: Pod, other: Pod, port: int, target: Pod) -> bool:
        policies = [
            policy
            for policy in self.policies
            if direction.title() in policy["spec"]["policyTypes"]
            and policy["metadata"]["namespace"] == selected.namespace
            and matches(policy["spec"]["podSelector"], selected.labels)
        ]
        rules = [(policy, rule) for policy in policies for rule in policy["spec"].get(direction) or []]
        return not policies or any(
            self._any_peer(rule.get(peers), policy["metadata"]["namespace"], other)
            and any_port(rule.get("ports"), port, target)
            for policy, rule in rules
        )

    def _any_peer(self, peers: list[dict] | None, own: str, pod: Pod) -> bool:
        return not peers or any(self._is_peer(peer, own, pod) for peer in peers)

    def _is_peer(self, peer: dict, own: str, pod: Pod) -> bool:
        if block := peer.get("ipBlock"):
            return self.pods_are_addresses and block["cidr"] == "0.0.0.0/0"
        namespace = {NAME_OF_NAMESPACE: pod.namespace}
        in_namespace = (
            matches(peer["namespaceSelector"], namespace) if "namespaceSelector" in peer else pod.namespace == own
        )
        return in_namespace and matches(peer.get("podSelector", {}), pod.labels)


def any_port(ports: list[dict] | None, port: int, target: Pod) -> bool:
    """True if the rule is about this port of the target."""
    tcp = [each["port"] for each in ports or [] if each.get("protocol", "TCP") == "TCP"]
    return not ports or port in [target.ports.get(each, each) for each in tcp]


def matches(selector: dict, labels: dict[str, str]) -> bool:
    """True if the selector selects an object with these labels."""
    assert not selector.keys() - {"matchLabels"}, selector
    return selector.get("matchLabels", {}).items() <= labels.items()
