"""A JupyterHub spawner that requests labs from the wasmspawner service and needs no permissions on the cluster."""

from .spawner import WasmSpawner

__all__ = ["WasmSpawner"]
__version__ = "0.1.0"
