"""`edgeinfinite push`: puts an artifact on the Hugging Face hub."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from edgeinfinite.cli.arguments import given, option
from edgeinfinite.cli.options import ARTIFACT

PUSH: dict[str, dict[str, Any]] = ARTIFACT | {
    "--repo": option("the repository; made if it isn't there", required=True, metavar="ORG/NAME"),
    "--revision": option("a branch that is there (default: the main one)", metavar="BRANCH"),
    "--private": option("a new repository is private", action="store_true"),
    "--message": option("of the commit", metavar="TEXT"),
}


def push(arguments: argparse.Namespace) -> int:
    """Uploads an artifact with its card to the Hugging Face hub."""
    from huggingface_hub.utils import disable_progress_bars

    from edgeinfinite.export.hub import PushOptions, push_artifact

    if not sys.stderr.isatty():
        disable_progress_bars()
    print(push_artifact(PushOptions(**given(arguments, PushOptions))))
    return 0
