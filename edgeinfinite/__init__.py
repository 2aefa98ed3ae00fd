"""EdgeInfinite: language models with a fixed-size state, on phones and desktops.

The public API is loaded on first use, so that `import edgeinfinite` and `edgeinfinite.runtime_py`
work without torch and transformers.

The import turns off the telemetry of onnxruntime and huggingface_hub, unless the user has set their
environment variables; see docs/privacy.md.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.version import __version__

__all__ = [
    "Conversation",
    "EdgeInfiniteError",
    "Geometry",
    "Session",
    "__version__",
    "attach",
    "load_backbone",
    "load_engine",
    "open_exact",
    "register_exporter",
]

# These packages read the variables when imported, so this comes before all other imports.
for _variable in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ.setdefault(_variable, "1")

if TYPE_CHECKING:
    from edgeinfinite.artifact.geometry import Geometry
    from edgeinfinite.export.exact import open_exact
    from edgeinfinite.export.hf.registration import register_exporter
    from edgeinfinite.models.attach import attach
    from edgeinfinite.models.checkpoint.loading import load_backbone
    from edgeinfinite.runtime_py.answer.conversation import Conversation
    from edgeinfinite.runtime_py.engines import load_engine
    from edgeinfinite.runtime_py.session.session import Session

_HOME = {
    "Conversation": "edgeinfinite.runtime_py.answer.conversation",
    "Geometry": "edgeinfinite.artifact.geometry",
    "Session": "edgeinfinite.runtime_py.session.session",
    "attach": "edgeinfinite.models.attach",
    "load_backbone": "edgeinfinite.models.checkpoint.loading",
    "load_engine": "edgeinfinite.runtime_py.engines",
    "open_exact": "edgeinfinite.export.exact",
    "register_exporter": "edgeinfinite.export.hf.registration",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'edgeinfinite' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
