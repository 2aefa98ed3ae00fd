"""What the programs in this folder share: they run one task after the other and say how each went.

Each program is called with the server's address and runs in an environment of its own, so it
imports nothing but its client and the standard library. A task's name reaches the recorder before
its requests do (`record_clients.py`).
"""

from __future__ import annotations

import json
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable
from importlib.metadata import version

URL = sys.argv[1] if len(sys.argv) > 1 else ""
MODEL = "tiny"
TOKENS = 8


def run(package: str, tasks: dict[str, Callable[[], object]], number: str = "") -> None:
    """Runs tasks by their names; prints a line of JSON for each, with its answer or its error.

    Args:
        package: the client's name.
        tasks: by name.
        number: the client's version, where it is no Python package.
    """
    for name, task in tasks.items():
        client = f"{package} {number or version(package)}"
        told = urllib.parse.urlencode({"client": client, "task": name})
        urllib.request.urlopen(f"{URL.removesuffix('/v1')}/recorder?{told}").read()
        try:
            said: dict[str, object] = {"answer": str(task())[:200]}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        print(json.dumps({"client": client, "task": name} | said), flush=True)
