"""Volumes of the node: folders that its administrator offers as PersistentVolumes, without a program that makes them."""

from pathlib import Path

from kubelet import NODE
from node import Node

STORAGE_CLASS = "local"
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": STORAGE_CLASS},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


class LocalVolume:
    """A PersistentVolume of the type `local`, for the first claim of the class `local` that a pod uses. It is retained
    when its claim is deleted. At first its folder belongs to root."""

    def __init__(self, node: Node, name: str, size: str = "1Gi") -> None:
        self.node, self.name = node, name
        self.folder = Path(node.slot.home) / "volumes" / name
        self.folder.mkdir(parents=True)
        on_this_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
        node.apply(
            CLASS,
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "capacity": {"storage": size},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": STORAGE_CLASS,
                    "local": {"path": str(self.folder)},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_this_node]}]}},
                },
            },
        )

    @property
    def phase(self) -> str:
        """Available, Bound, or Released: its claim is gone, and no other claim gets it."""
        return self.node.get("pv", self.name)["status"].get("phase", "")

    @property
    def claim(self) -> str:
        """Namespace and name of its claim; empty if it never had one."""
        claim = self.node.get("pv", self.name)["spec"].get("claimRef")
        return f"{claim['namespace']}/{claim['name']}" if claim else ""
