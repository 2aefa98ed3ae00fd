"""The trained parts that come with the package: which one was made for a given checkpoint."""

from __future__ import annotations

from pathlib import Path

from edgeinfinite import models
from edgeinfinite.models.trained_file import read_metadata


def shipped_scorer(weights_sha256: str) -> Path | None:
    """The retention scorer that was trained for a backbone.

    Args:
        weights_sha256: the digest of its weights, as `loading.parameters_digest` computes it.

    Returns:
        The file, or None where no scorer is shipped for these weights.
    """
    folder = Path(next(iter(models.__path__))) / "scorers"
    for path in sorted(folder.glob("*.safetensors")):
        if read_metadata(path).get("weights_sha256") == weights_sha256:
            return path
    return None
