import json
from pathlib import Path

import pytest
from wasmspawner_policy import quantity

TABLE = Path(__file__).parents[3] / "tests" / "tables" / "quantities.json"


def test_amounts_are_those_of_kubernetes() -> None:
    """The table that all packages with quantities are tested with."""
    for row in json.loads(TABLE.read_text()):
        text, millis = row["text"], row["millis"]
        millis = int(millis) if millis is not None and str(millis).lstrip("-").isdigit() else None
        # The table rounds up what is finer than a thousandth, which is no amount here.
        if millis is None or millis < 0 or text.endswith(("n", "u")):
            cpu = memory = None
        else:
            cpu = millis if millis < 1 << 63 else None
            memory = millis // 1000 if millis % 1000 == 0 and millis // 1000 < 1 << 63 else None
        assert attempt(quantity.cpu_millis, text) == cpu, text
        assert attempt(quantity.memory_bytes, text) == memory, text


def attempt(read: object, text: str) -> int | None:
    try:
        return read(text)  # type: ignore[no-any-return, operator]
    except ValueError:
        return None


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "8Ei", "99999999P", "1e99", "1e2147483647", "0.3", "", ".", "-1", "1 Gi", "\u0661"]
)
def test_what_is_no_amount_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount of bytes, such as 512Mi"):
        quantity.memory_bytes(text)


def test_amounts_are_shown_with_one_decimal() -> None:
    assert (quantity.show_cpus(1500), quantity.show_cpus(2000)) == ("1.5", "2")
    assert (quantity.show_bytes(4 << 30), quantity.show_bytes(512 << 20)) == ("4 GiB", "512 MiB")
