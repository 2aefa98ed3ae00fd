"""What `edgeinfinite evaluate` does, from Python, without the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_artifact import tiny_artifact
from tiny_texts import tiny_texts

from edgeinfinite import evaluation
from edgeinfinite.cli import main

LENGTHS = ["--policy", "carry", "--segment-length", "16", "--sink-length", "4"]
LENGTHS += ["--window-length", "16", "--recall-slots", "16", "--scorer", "untrained"]
CODE = """
import json, sys
from edgeinfinite.evaluation import (
    CheckpointOptions, PasskeyOptions, PerplexityOptions, open_artifact, open_checkpoint,
    passkey_table, run_passkey, run_perplexity,
)
from edgeinfinite.models.geometry_options import GeometryOptions
from pathlib import Path

checkpoint, artifact, texts = map(Path, sys.argv[1:])
cache = GeometryOptions("carry", 16, 4, 16, recall_slots=16)
source = open_checkpoint(
    CheckpointOptions(str(checkpoint), cache, scorer="untrained", cache_type="int8")
)
asked = PerplexityOptions(("edgeinfinite",), tokens=200, documents=2, bin_length=50)
facts = PasskeyOptions(("edgeinfinite", "full"), (420,), samples=1, facts=2)
found = [
    run_perplexity(source, [texts], asked).rows,
    run_perplexity(open_artifact(artifact), [texts], asked).rows,
    run_passkey(source, [texts], facts).rows,
]
assert "| edgeinfinite" in passkey_table(found[2])
assert not [name for name in sys.modules if name.startswith("edgeinfinite.cli")]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list]:
    """A checkpoint, texts, and the rows that a program of a user's own gets of them."""
    folder = tmp_path_factory.mktemp("python")
    artifact = tiny_artifact(folder / "tiny", *LENGTHS, "--cache-type", "int8")
    checkpoint, texts = folder / "tiny-checkpoint", folder / "texts"
    texts.mkdir()
    tiny_texts(texts, 4)
    done = subprocess.run(
        [sys.executable, "-c", CODE, checkpoint, artifact, texts],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return checkpoint, texts, json.loads(done.stdout.splitlines()[-1])


def test_rows_from_python_are_those_of_the_command_line(
    measured: tuple[Path, Path, list], tmp_path: Path
) -> None:
    checkpoint, texts, (losses, _, facts) = measured
    out = tmp_path / "loss.json", tmp_path / "facts.json"
    of = ["--model", str(checkpoint), "--data", str(texts), *LENGTHS, "--cache-type", "int8"]
    text = ["--tokens", "200", "--documents", "2", "--bin-length", "50"]
    more = ["--methods", "edgeinfinite", "--json", str(out[0])]
    assert main(["evaluate", "perplexity", *of, *text, *more]) == 0
    planted = ["--lengths", "420", "--samples", "1", "--facts", "2"]
    more = ["--methods", "edgeinfinite,full", "--json", str(out[1])]
    assert main(["evaluate", "passkey", *of, *planted, *more]) == 0
    assert [json.loads(path.read_text())["rows"] for path in out] == [losses, facts]


def test_a_checkpoints_int8_cache_is_that_of_its_artifact(
    measured: tuple[Path, Path, list],
) -> None:
    """Scales, rounding and bytes of the state: onnxruntime's operator says what is right."""
    _, _, (losses, of_artifact, _) = measured
    ours, theirs = (
        np.array([row["nats_per_token"] for row in rows]) for rows in (losses, of_artifact)
    )
    assert len(ours) == 8
    np.testing.assert_allclose(ours, theirs, atol=2e-3)
    assert {row["state_bytes"] for row in losses} == {row["state_bytes"] for row in of_artifact}


def test_every_name_of_the_package_is_there() -> None:
    assert all(callable(getattr(evaluation, name)) for name in evaluation.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evaluation.nothing  # noqa: B018
