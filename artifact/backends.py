"""The one table of back ends: who exports for it, which engine runs it, what to install.

A new back end is an exporting package, an engine, and a row here; docs/develop/adding-a-backend.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeinfinite.artifact.socs import QNN_HTP
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.installation import install_extra


@dataclass(frozen=True)
class BackendEntry:
    """One back end, by import names: nothing is imported before it is asked for.

    Args:
        name: in the manifest and for `--backend`.
        exporter: the package whose `BACKEND` is an `export.backend.Backend`.
        engine: the module whose `ENGINE` is a class with `open` (`runtime_py.engines.base.Engine`).
        export_extra, runtime_extra: what to install for exporting and for running.
        targets: what it exports for, the choices of `--target`; the first is the default.
    """

    name: str
    exporter: str
    engine: str
    export_extra: str
    runtime_extra: str
    targets: tuple[str, ...] = ("cpu",)

    @property
    def export_install(self) -> str:
        """The command that installs what exporting needs."""
        return install_extra(self.export_extra)

    @property
    def runtime_install(self) -> str:
        """The command that installs what running needs."""
        return install_extra(self.runtime_extra)


BACKENDS = {
    entry.name: entry
    for entry in (
        BackendEntry(
            name="onnx",
            exporter="edgeinfinite.export.onnx",
            engine="edgeinfinite.runtime_py.engines.onnx_engine",
            export_extra="onnx",
            runtime_extra="runtime",
            targets=("cpu", QNN_HTP),
        ),
        BackendEntry(
            name="executorch",
            exporter="edgeinfinite.export.executorch",
            engine="edgeinfinite.runtime_py.engines.executorch_engine",
            export_extra="executorch",
            runtime_extra="executorch",
        ),
    )
}


def backend_entry(name: str) -> BackendEntry:
    """The row of a back end.

    Raises:
        EdgeInfiniteError: there is none of this name; lists those that there are.
    """
    if name not in BACKENDS:
        raise EdgeInfiniteError(
            f"unknown back end {name!r}; this edgeinfinite knows {', '.join(BACKENDS)}"
        )
    return BACKENDS[name]
