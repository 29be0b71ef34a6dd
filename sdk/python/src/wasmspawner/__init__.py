"""JupyterHub's side of wasmspawner: a spawner that asks a service for labs and needs no cluster permissions itself."""

from .spawner import WasmSpawner

__all__ = ["WasmSpawner"]
__version__ = "0.1.0"
