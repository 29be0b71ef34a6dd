"""Pools of Dask workers beside a lab: one scheduler and any number of workers, in pods that the service starts.

```python
from wasmspawner.dask import WasmSpawnerCluster

with WasmSpawnerCluster(n_workers=4) as cluster, cluster.get_client() as client:
    print(client.submit(sum, [1, 2, 3]).result())
```
"""

from typing import TYPE_CHECKING, Any

from .pool_errors import PoolError, PoolExists, PoolNotAllowed, PoolUnknown
from .pool_size import worker_group
from .pools import list_pools, scale_pool, stop_pool

if TYPE_CHECKING:
    from .cluster import WasmSpawnerCluster

__all__ = [
    "PoolError",
    "PoolExists",
    "PoolNotAllowed",
    "PoolUnknown",
    "WasmSpawnerCluster",
    "list_pools",
    "scale_pool",
    "stop_pool",
    "worker_group",
]


def __getattr__(name: str) -> Any:
    # The command line and the Jupyter server list pools. They need not import Dask for that, which takes a second.
    if name != "WasmSpawnerCluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .cluster import WasmSpawnerCluster
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed", "cryptography"):
            raise
        raise ImportError(f"Pools need the package {error.name}: install wasmspawner[dask]") from error
    return WasmSpawnerCluster
