"""The command line: one function per command, which imports its dependencies when it runs."""

from edgeinfinite.cli.main import main

__all__ = ["main"]
