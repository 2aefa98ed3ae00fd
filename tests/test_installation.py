"""Commands that install what is missing name what pip can find."""

import importlib.metadata
import json

import pytest
from packaging.requirements import Requirement

from edgeinfinite.installation import install_extra, install_package
from edgeinfinite.version import __version__


class Distribution:
    """What is installed, with the origin that pip wrote down (PEP 610)."""

    def __init__(self, origin):
        self._origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return self._origin if self._origin is None else json.dumps(self._origin)


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (
            {"url": "file:///srv/edge%20infinite", "dir_info": {"editable": True}},
            "pip install -e '/srv/edge infinite[serve]'",
        ),
        ({"url": "file:///srv/ei", "dir_info": {}}, "pip install '/srv/ei[serve]'"),
        (
            {"url": "file:///w/edgeinfinite-1-py3-none-any.whl", "archive_info": {}},
            "pip install '/w/edgeinfinite-1-py3-none-any.whl[serve]'",
        ),
        (None, f"pip install 'edgeinfinite[serve]=={__version__}'"),
        ({"url": "https://example.org/a.whl"}, f"pip install 'edgeinfinite[serve]=={__version__}'"),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came_from(origin, wanted, monkeypatch):
    known = [Distribution(None), Distribution(origin)]
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: known)
    assert install_extra("serve") == wanted


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("prompt_toolkit", "prompt-toolkit"),
        ("llama-cpp-python", "llama-cpp-python"),
        ("uvicorn.config", "uvicorn"),
        ("safetensors", "safetensors"),
    ],
)
def test_a_package_is_installed_in_the_versions_that_this_one_takes(module, package):
    command = install_package(module)
    wanted = Requirement(command.removeprefix("pip install ").strip("'"))
    assert wanted.name == package and wanted.specifier and "extra" not in command


def test_a_package_that_no_extra_names_is_named_alone():
    assert install_package("something_else") == "pip install something_else"
