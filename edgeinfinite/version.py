"""The version of the package; artifacts, row files and trained files name it."""

__version__ = "0.1.0"
