"""Changes an artifact's manifest as no export would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgeinfinite.artifact.manifest import MANIFEST_FILE


def edit_manifest(artifact: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Lets `change` edit the fields; the manifest's own checksum, which would tell, is left out."""
    path = artifact / MANIFEST_FILE
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields.pop("own_sha256", None)
    change(fields)
    path.write_text(json.dumps(fields), encoding="utf-8")
