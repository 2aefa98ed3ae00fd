"""README's and docs' tables are those of their committed rows, and the default's are its own."""

from __future__ import annotations

import json
import sys

import pytest
from tree import ROOT

from edgeinfinite.export.backend import backend_named
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.export.plan import model_options
from edgeinfinite.models.defaults import cache_type_of
from edgeinfinite.models.geometry_options import CARRY_LENGTHS, CARRY_SLOTS, GeometryOptions

sys.path.insert(0, str(ROOT / "scripts"))
import results
import results_catalog
import results_default
import results_pages
import results_sources
import results_tables


def test_every_table_says_what_its_rows_say() -> None:
    assert results.problems() == []


def test_every_table_of_a_results_page_is_made_from_rows() -> None:
    for page in (ROOT / "docs" / "results").glob("*.md"):
        text = results_pages._TABLE.sub("", page.read_text(encoding="utf-8"))
        assert page.stem == "README" or "| --- |" not in text, (
            f"{page.name} has a table without a marker"
        )


def test_every_transcribed_table_is_shown_and_shown_once() -> None:
    shown = [
        name
        for page in results_pages.pages()
        for name in results_pages.names(page.read_text(encoding="utf-8"))
    ]
    assert len(shown) == len(set(shown))
    typed = {
        f"{file.stem}/{slug}"
        for file in (ROOT / "benchmarks" / "typed").glob("*.json")
        for slug in json.loads(file.read_text(encoding="utf-8"))["tables"]
    }
    assert typed | set(results_catalog.GRIDS) == set(shown)


def test_a_figure_that_is_changed_in_a_page_is_found(monkeypatch, tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- table: readme/speed -->\n| 1 |\n<!-- end -->\n", encoding="utf-8")
    made = results_pages.written(page)
    line = "| **EdgeInfinite int4** | "
    assert line in made
    page.write_text(made.replace(line, f"{line}0"), encoding="utf-8")
    monkeypatch.setattr(results, "pages", lambda: [page])
    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert results.problems() == [
        "page.md differs from its rows: change those, then run `make results`"
    ]


def _default(monkeypatch, **changes) -> list[str]:
    default = results_tables.document("default.json")
    default["since"] |= changes.pop("since", {})
    default["settings"] |= changes
    real = results_tables.document
    monkeypatch.setattr(
        results_default,
        "document",
        lambda file: default if file == "default.json" else real(file),
    )
    return results_default.complaints()


@pytest.mark.parametrize("backend", ["onnx", "executorch"])
def test_the_default_that_figures_are_held_to_is_what_export_takes(backend, tmp_path) -> None:
    default = results_tables.document("default.json")
    assert f"--quantize {default['settings']['quantization']}" in default["command"]
    options = ExportOptions("any", tmp_path / "a", backend=backend, quantize="int4")
    taken = cache_type_of(model_options(options, backend_named(backend, None)))
    assert taken == default["backends"][backend]["cache_type"]
    geometry = GeometryOptions().resolve(scorer=True, cache_type=taken)
    slots = CARRY_SLOTS[taken]
    assert geometry.average_slots == slots
    wanted = {"policy": geometry.policy, "recall_slots": f"trained:{slots}"}
    wanted |= {name: getattr(geometry, name) for name in CARRY_LENGTHS}
    assert default["settings"] == wanted | {"quantization": "int4"}


def test_figures_of_the_default_that_are_older_than_it_are_found(monkeypatch) -> None:
    found = _default(monkeypatch, since={"date": "2026-11-27"})
    assert any("recall/speed-int8 calls figures of 2026-11-26" in line for line in found)
    assert not any("recall/results" in line for line in found)  # of the 29th


def test_figures_of_another_default_are_found(monkeypatch) -> None:
    found = _default(monkeypatch, window_length=384)
    assert any("of window_length 448; it is 384" in line for line in found)


def test_rows_that_were_changed_without_their_date_are_found(monkeypatch) -> None:
    sources = results_tables.document("sources.json")
    sources["8000.json"]["sha256"] = "0" * 64
    monkeypatch.setattr(results_sources, "document", lambda _: sources)
    (found,) = results_sources.changed()
    assert found.startswith("benchmarks/8000.json has other rows")


def test_a_marker_without_a_table_is_refused(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- table: recall/nothing -->\n<!-- end -->\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="no table has the name recall/nothing"):
        results_pages.written(page)
