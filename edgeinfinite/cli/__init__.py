"""The command line: one function a command; what a command needs is imported when it runs."""

from edgeinfinite.cli.main import main

__all__ = ["main"]
