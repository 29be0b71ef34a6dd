"""Packs a WebAssembly component as an OCI artifact, in the layout that the CNCF describes for them:
https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/"""

import hashlib
import json
import shutil
from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.wasm.config.v0+json"
COMPONENT = "application/wasm"


def pack(layout: Path, component: Path, tag: str, created: str) -> str:
    """Make an OCI layout with one artifact of this tag. Returns the digest of its manifest."""
    shutil.rmtree(layout, ignore_errors=True)
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)

    def add(content: bytes, media_type: str) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    layer = add(component.read_bytes(), COMPONENT)
    about = {"created": created, "architecture": "wasm", "os": "wasip2", "layerDigests": [layer["digest"]]}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": add(json.dumps(about).encode(), CONFIG),
        "layers": [layer | {"annotations": {"org.opencontainers.image.title": component.name}}],
        "annotations": {"org.opencontainers.image.created": created, "org.opencontainers.image.version": tag},
    }
    entry = add(json.dumps(manifest).encode(), MANIFEST)
    named = entry | {"annotations": {"org.opencontainers.image.ref.name": tag}}
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))
    (layout / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))
    return entry["digest"]
