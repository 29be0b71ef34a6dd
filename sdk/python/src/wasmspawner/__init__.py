"""Clients of the wasmspawner service, which need no permissions on the cluster: a JupyterHub spawner for labs, and a
kernel provisioner for the kernels of labs."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .spawner import WasmSpawner

__all__ = ["WasmSpawner"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Kernels are started from labs, by other modules of this package. They need not import JupyterHub for that.
    if name == "WasmSpawner":
        from .spawner import WasmSpawner

        return WasmSpawner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
