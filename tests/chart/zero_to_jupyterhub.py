"""The network policies that the chart of Zero to JupyterHub 4 makes of its values, as far as they are about pods.

From its `templates/hub/netpol.yaml`, `templates/proxy/netpol.yaml`, `templates/_helpers-netpol.tpl` and `values.yaml`; the
chart itself is not at hand in these tests.
"""

from network import Pod


class Hub:
    """A release of the chart, with its values."""

    def __init__(self, values: dict, namespace: str, release: str = "jupyterhub"):
        self.values, self.namespace, self.release = values, namespace, release
        self.hub = self._pod("hub", "network-access-proxy-api", http=8081)
        self.proxy = self._pod("proxy", "network-access-hub", http=8000, api=8001)

    def policies(self) -> list[dict]:
        """The policies of the Hub and its proxy."""
        of_hub = self.values.get("hub", {}).get("networkPolicy", {})
        of_proxy = self.values.get("proxy", {}).get("chp", {}).get("networkPolicy", {})
        return [
            self._policy("hub", of_hub, [("network-access-hub", "http")], [("proxy", 8001)]),
            self._policy(
                "proxy",
                of_proxy,
                [("network-access-proxy-http", "http"), ("network-access-proxy-api", "api")],
                [("hub", 8081)],
            ),
        ]

    def _labels(self, component: str) -> dict[str, str]:
        return {"app": "jupyterhub", "component": component, "release": self.release}

    def _pod(self, component: str, access: str, **ports: int) -> Pod:
        labels = {f"hub.jupyter.org/{name}": "true" for name in (access, "network-access-singleuser")}
        return Pod(self.namespace, self._labels(component) | labels, ports)

    def _policy(self, component: str, values: dict, into: list[tuple], out_of: list[tuple]) -> dict:
        anywhere = values.get("interNamespaceAccessLabels") == "accept"
        ingress = []
        for label, port in into:
            access = {"matchLabels": {f"hub.jupyter.org/{label}": "true"}}
            sources = [{"podSelector": access}]
            if anywhere:
                sources = [{"podSelector": access, "namespaceSelector": {}}, {"namespaceSelector": access}]
            ingress.append({"from": sources, "ports": [{"port": port}]})
        egress = [
            {"to": [{"podSelector": {"matchLabels": self._labels(other)}}], "ports": [{"port": port}]}
            for other, port in [*out_of, ("singleuser-server", 8888)]
        ]
        # `egressAllowRules`, which are all true by default: any address.
        egress.append({"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]})
        return {
            "metadata": {"name": component, "namespace": self.namespace},
            "spec": {
                "podSelector": {"matchLabels": self._labels(component)},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [*ingress, *values.get("ingress", [])],
                "egress": [*egress, *values.get("egress", [])],
            },
        }
