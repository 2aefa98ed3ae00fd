"""`edgeinfinite export` and `quantize-report`: from a checkpoint to an artifact."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.cli.arguments import given
from edgeinfinite.cli.notes import note
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.options import ExportOptions, QuantizationOptions
from edgeinfinite.export.output_folder import check_output
from edgeinfinite.files import check_writable
from edgeinfinite.models.geometry_options import GeometryOptions


def export(arguments: argparse.Namespace) -> int:
    """Writes the artifact of a model."""
    options = export_options(arguments)
    if options.output is not None:
        check_output(options.output)
    elif not arguments.dry_run:
        raise EdgeInfiniteError("the argument --output is required, unless --dry-run is given")
    # Imported late, because these load torch, which takes seconds.
    from edgeinfinite.export.exporter import export_artifact
    from edgeinfinite.export.plan import plan_export
    from edgeinfinite.export.progress import shown

    if arguments.dry_run:
        with shown(None) as report:
            report("reading and trying the checkpoint", 0.0)
            plan = plan_export(options, shapes=True)
        for sentence in plan.notes:
            note(sentence)
        print(plan.table())
        return 0
    folder = export_artifact(options, tell=note)
    print(f"{folder}: {_folder_bytes(folder) / 1e6:,.1f} MB")
    from edgeinfinite.export.loss import told

    for line in told(read_manifest(folder).parity):
        print(line, file=sys.stderr if line.startswith("warning") else sys.stdout)
    return 0


def export_options(arguments: argparse.Namespace) -> ExportOptions:
    """What `export` was asked for.

    Raises:
        EdgeInfiniteError: an option is out of range, or they don't go together.
    """
    asked = GeometryOptions(**given(arguments, GeometryOptions))
    quantization = QuantizationOptions(**given(arguments, QuantizationOptions))
    return ExportOptions(
        **given(arguments, ExportOptions), geometry=asked, quantization=quantization
    )


def quantize_report(arguments: argparse.Namespace) -> int:
    """Measures the loss and the bytes of every weight in every format."""
    check_writable(arguments.output)
    from edgeinfinite.export.mixing import report
    from edgeinfinite.export.progress import shown

    geometry = GeometryOptions(**given(arguments, GeometryOptions))
    options = report.ReportOptions(**given(arguments, report.ReportOptions), geometry=geometry)
    with shown(None) as show:
        choices = report.quantize_report(options, show)
    for line in report.table(choices):
        print(line)
    return 0


def _folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
