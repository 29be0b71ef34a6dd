#!/usr/bin/env python3
"""Prints the chart's values.schema.json: values.json, and as `config` the schema of the service.

    wasmspawner schema | generate.py > ../values.schema.json

The result is of draft 7, which all versions of Helm 3 and 4 know.
"""

import json
import sys
from pathlib import Path

# What the chart fills in, and what the service's schema requires.
FILLED = {"StaticAuth": "tokens_file", "HubConfig": "token_file", "SharedSecret": "file"}


def generate(service: dict, values: dict) -> dict:
    """The schema of all values."""
    definitions = service.pop("$defs")
    for name, key in FILLED.items():
        definitions[name]["required"].remove(key)
    config = {key: service[key] for key in ("description", "type", "properties", "additionalProperties")}
    schema = dict(values)
    schema["properties"] = dict(sorted({**values["properties"], "config": _draft_7(config)}.items()))
    schema["definitions"] = dict(sorted({**values["definitions"], **_draft_7(definitions)}.items()))
    return schema


def _draft_7(part):
    """A part of a schema with the places of definitions in draft 7, and with no further keys in objects."""
    if isinstance(part, list):
        return [_draft_7(item) for item in part]
    if not isinstance(part, dict):
        return part
    result = {key: _draft_7(value) for key, value in part.items()}
    if isinstance(reference := result.get("$ref"), str):
        result["$ref"] = reference.replace("#/$defs/", "#/definitions/")
    if result.get("type") == "object" and isinstance(result.get("properties"), dict):
        result.setdefault("additionalProperties", False)
    return result


if __name__ == "__main__":
    base = json.loads((Path(__file__).parent / "values.json").read_text())
    print(json.dumps(generate(json.load(sys.stdin), base), indent=1, ensure_ascii=False))
