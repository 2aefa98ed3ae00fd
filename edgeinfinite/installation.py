"""How to install what is missing, from where this package itself was installed."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from edgeinfinite.version import __version__

_NAME = "edgeinfinite"
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(\[[^\]]*\])?\s*([^;]*?)\s*(?:;(.*))?$")


def install_extra(extra: str) -> str:
    """The command that installs what an extra of this package names.

    A checkout or a wheel on this machine is named by its path, so that pip needn't find this
    package on an index; otherwise this version is asked for.
    """
    origin = _origin()
    if origin is None:
        return f"pip install {shlex.quote(f'{_NAME}[{extra}]=={__version__}')}"
    path, editable = origin
    return f"pip install {'-e ' if editable else ''}{shlex.quote(f'{path}[{extra}]')}"


def install_package(package: str) -> str:
    """The command that installs a package in the versions that this one was tested with.

    Args:
        package: the name of the package, or of the module that wasn't found.
    """
    wanted = _plain(package)
    for line in importlib.metadata.requires(_NAME) or []:
        match = _REQUIREMENT.match(line)
        if match and _plain(match[1]) == wanted:
            return f"pip install {shlex.quote(match[1] + (match[2] or '') + match[3])}"
    return f"pip install {package}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.partition(".")[0]).lower()


def _origin() -> tuple[str, bool] | None:
    """The path that this package was installed from, if that is still there, and whether it is
    editable (PEP 610).
    """
    for found in importlib.metadata.distributions(name=_NAME):
        text = found.read_text("direct_url.json")
        if text is None:
            continue
        stated = json.loads(text)
        url = urlsplit(stated.get("url", ""))
        path = url2pathname(url.path)
        if url.scheme == "file" and Path(path).exists():
            return path, bool(stated.get("dir_info", {}).get("editable"))
    return None
