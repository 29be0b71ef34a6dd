"""Amounts as Kubernetes writes them: `500m`, `2`, `4Gi`. They are computed exactly."""

import re

_FACTORS = {
    "": (1, 0),
    "Ki": (1 << 10, 0),
    "Mi": (1 << 20, 0),
    "Gi": (1 << 30, 0),
    "Ti": (1 << 40, 0),
    "Pi": (1 << 50, 0),
    "Ei": (1 << 60, 0),
    "n": (1, -9),
    "u": (1, -6),
    "m": (1, -3),
    "k": (1, 3),
    "M": (1, 6),
    "G": (1, 9),
    "T": (1, 12),
    "P": (1, 15),
    "E": (1, 18),
}
"""The value of each suffix: a factor, and an exponent of ten."""

_QUANTITY = re.compile(r"\+?([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,4})|([A-Za-z]*))", re.ASCII)


def memory_bytes(text: str) -> int:
    """The number of bytes of an amount of memory or storage: `512Mi`, `2Gi`, `1.5G`, `1000`.

    Raises `ValueError` if the amount is negative, is not a quantity of Kubernetes, or is not a whole number of bytes
    below 2^63.
    """
    amount = _scaled(text, 0)
    if amount is None:
        raise ValueError(f"`{text}` is not an amount of bytes, such as 512Mi, 2Gi or 1.5G")
    return amount


def cpu_millis(text: str) -> int:
    """The number of thousandths of a CPU: `500m`, `2`, `0.5`.

    Raises `ValueError` if the amount is negative, is not a quantity of Kubernetes, or is not a whole number of
    thousandths below 2^63.
    """
    amount = _scaled(text, 3)
    if amount is None:
        raise ValueError(f"`{text}` is not an amount of CPU, such as 500m, 2 or 0.5")
    return amount


def show_cpus(millis: int) -> str:
    """The amount for people, in CPUs with at most one decimal: `1.5` for 1500 thousandths."""
    return _decimal(millis, 1000)


def show_bytes(amount: int) -> str:
    """The amount for people, in MiB or GiB with at most one decimal: `4 GiB`, `512 MiB`."""
    if amount >= 1 << 30:
        return f"{_decimal(amount, 1 << 30)} GiB"
    return f"{_decimal(amount, 1 << 20)} MiB"


def _decimal(amount: int, unit: int) -> str:
    whole, tenth = divmod((amount * 10 + unit // 2) // unit, 10)
    return f"{whole}.{tenth}" if tenth else str(whole)


def _scaled(text: str, places: int) -> int | None:
    """The amount, multiplied by ten to the power of `places`, if that is a whole number below 2^63."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    whole, fraction, exponent, suffix = found.groups(default="")
    if not whole + fraction or suffix not in _FACTORS:
        return None
    factor, power = (1, int(exponent)) if exponent else _FACTORS[suffix]
    power += places - len(fraction)
    if len(whole + fraction) > 38 or abs(power) > 38:
        return None
    amount = int(whole + fraction) * factor
    if power >= 0:
        amount *= 10**power
    else:
        amount, rest = divmod(amount, 10**-power)
        if rest:
            return None
    return amount if amount < 1 << 63 else None
