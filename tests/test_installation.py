"""Commands that install what is missing name what pip can find."""

import importlib.metadata
import json

import pytest
from packaging.requirements import Requirement

from edgeinfinite.installation import install_extra, install_package
from edgeinfinite.version import __version__

FROM_AN_INDEX = f"pip install 'edgeinfinite[serve]=={__version__}'"


class Distribution:
    """What is installed, with the origin that pip wrote down (PEP 610)."""

    def __init__(self, origin):
        self._origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return self._origin if self._origin is None else json.dumps(self._origin)


def installed_from(monkeypatch, origin):
    known = [Distribution(None), Distribution(origin)]
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: known)


@pytest.mark.parametrize(
    ("name", "about", "flag"),
    [
        ("edge infinite", {"dir_info": {"editable": True}}, "-e "),
        ("checkout", {"dir_info": {}}, ""),
        ("edgeinfinite-1-py3-none-any.whl", {"archive_info": {}}, ""),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came_from(
    name, about, flag, tmp_path, monkeypatch
):
    place = tmp_path / name
    installed_from(monkeypatch, {"url": place.as_uri()} | about)
    place.touch()
    assert install_extra("serve") == f"pip install {flag}'{place}[serve]'"
    place.unlink()
    assert install_extra("serve") == FROM_AN_INDEX


@pytest.mark.parametrize("origin", [None, {"url": "https://example.org/a.whl"}])
def test_an_extra_of_a_package_from_elsewhere_is_asked_of_an_index(origin, monkeypatch):
    installed_from(monkeypatch, origin)
    assert install_extra("serve") == FROM_AN_INDEX


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
