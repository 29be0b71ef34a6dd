"""How many workers a pool, or a group of its workers, is to have: a number, or two bounds."""

from collections.abc import Mapping
from typing import Any

PoolSize = int | dict[str, int]


def pool_size(number: int | None, minimum: int | None, maximum: int | None) -> PoolSize:
    """The size as the service wants it; no workers if nothing is given. Raises `ValueError`."""
    if minimum is None and maximum is None:
        number = 0 if number is None else number
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"the number of workers is {number!r}; it has to be 0 or a positive integer")
        return number
    if number is not None:
        raise ValueError("n_workers cannot be combined with minimum and maximum, which are for adaptive pools")
    minimum = minimum or 0
    if maximum is None or not 0 <= minimum <= maximum:
        raise ValueError(f"an adaptive pool has bounds 0 <= minimum <= maximum; they are {minimum} and {maximum}")
    return {"minimum": minimum, "maximum": maximum}


def worker_group(
    n_workers: int | None = None,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A group of workers for `WasmSpawnerCluster(groups={"gpu": worker_group(...)})`: `n_workers`, or as many as the scheduler
    needs between `minimum` and `maximum`; `options` are those in which the workers differ from the pool."""
    return {"workers": pool_size(n_workers, minimum, maximum), "options": dict(options or {})}


def pool_workers(
    groups: Mapping[str, Mapping[str, Any]] | None, number: int | None, minimum: int | None, maximum: int | None
) -> dict[str, Any]:
    """The workers of a pool as the service wants them. Raises `ValueError` for groups beside numbers of the whole pool."""
    size = pool_size(number, minimum, maximum)
    if groups is None:
        return {"workers": size}
    if not groups:
        raise ValueError("groups is empty; name one at least, such as {'cpu': worker_group(2)}, or leave it out")
    if any(given is not None for given in (number, minimum, maximum)):
        raise ValueError("n_workers, minimum and maximum cannot be combined with groups, which have their own")
    return {"groups": [{"name": name, **group} for name, group in groups.items()]}


def parse_size(text: str) -> PoolSize:
    """The size that a text such as `4` or `0-8` describes. Raises `ValueError`."""
    lower, dash, upper = text.partition("-")
    if not (lower.isascii() and lower.isdigit() and (not dash or (upper.isascii() and upper.isdigit()))):
        raise ValueError(f"'{text}' is not a number of workers, such as 4, or bounds, such as 0-8")
    return pool_size(None, int(lower), int(upper)) if dash else int(lower)
