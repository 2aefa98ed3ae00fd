"""Tells transformers of the export format `edgeinfinite`; it finds no format by itself."""

from __future__ import annotations

import transformers

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.installation import install_package

FORMAT = "edgeinfinite"
_FIRST = "5.23"
"""The first version with `register_backend`, exports that run, and their files' format."""


def register_exporter() -> None:
    """Makes `edgeinfinite` a format of transformers' `AutoHfExporter` and `ExportedModel`.

    Calling it again changes nothing.

    Raises:
        EdgeInfiniteError: transformers is older than its exporters' hook.
    """
    try:
        from transformers.exporters import register_backend
        from transformers.exporters.auto import EXPORT_BACKENDS
    except ImportError as error:
        raise EdgeInfiniteError(
            f"transformers {transformers.__version__} takes no exporters of others; "
            f"{_FIRST} or newer does: {install_package('transformers')}"
        ) from error
    if FORMAT in EXPORT_BACKENDS:
        return
    from edgeinfinite.export.hf.exporter import EdgeInfiniteExporter
    from edgeinfinite.export.hf.runner import EdgeInfiniteModelRunner

    register_backend(EdgeInfiniteExporter, EdgeInfiniteModelRunner)
