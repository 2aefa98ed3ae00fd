"""Registers `optimum-cli export edgeinfinite`; optimum imports every file here (PEP 420)."""

from __future__ import annotations

import argparse

from optimum.commands.base import BaseOptimumCLICommand, CommandInfo
from optimum.commands.export.base import ExportCommand

from edgeinfinite.cli.main import add_export, run


class EdgeInfiniteExportCommand(BaseOptimumCLICommand):
    """`edgeinfinite export` with all of its options."""

    COMMAND = CommandInfo(
        name="edgeinfinite",
        help="Exports a checkpoint to an artifact that reads texts of any length in a fixed state.",
    )

    @staticmethod
    def parse_args(parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        add_export(parser)

    def run(self) -> None:
        """Exports.

        Raises:
            SystemExit: always, with the exit code of `edgeinfinite export`.
        """
        raise SystemExit(run(self.args))


REGISTER_COMMANDS = [(EdgeInfiniteExportCommand, ExportCommand)]
