"""`edgeinfinite soak`: a million tokens through one artifact."""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from contextlib import ExitStack
from pathlib import Path

from edgeinfinite.cli.answer import reading_bar
from edgeinfinite.cli.arguments import given
from edgeinfinite.cli.notes import note
from edgeinfinite.evaluation.soak.options import SoakOptions
from edgeinfinite.export.default_text import default_text
from edgeinfinite.files import check_writable, held_alone, read_text_file


def soak(arguments: argparse.Namespace) -> int:
    """Reads a long text and looks at memory, speed, norms, forks, saved states and cut texts."""
    options = SoakOptions(**given(arguments, SoakOptions))
    for path in (arguments.json, arguments.plot):
        check_writable(path)
    check_writable(arguments.session, again=True)
    from edgeinfinite.evaluation.soak.report import failures, plot, summary
    from edgeinfinite.evaluation.soak.run import Soak
    from edgeinfinite.evaluation.soak.stream import TextStream
    from edgeinfinite.rows_file import write_rows
    from edgeinfinite.runtime_py.engines import load_engine
    from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

    text = read_text_file(options.text) if options.text else default_text()
    with ExitStack() as stack:
        if arguments.session is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            session = Path(folder) / "soak.session"
        else:
            session = arguments.session
            stack.enter_context(held_alone(session))
        engine = load_engine(arguments.artifact, threads=arguments.threads)
        stream = TextStream(load_tokenizer(arguments.artifact), text, options.seed)
        run = Soak(engine, stream, options, session)
        if run.rows:
            note(f"{session}: {run.tokens_read:,} tokens were read before; going on there")
        bar = stack.enter_context(reading_bar(options.tokens, read=run.tokens_read))
        while not run.done:
            run.read_stretch(bar.update)
            rows = [dataclasses.asdict(row) for row in run.rows]
            if arguments.json:
                write_rows(arguments.json, "soak", rows)
        bar.close()
    for line in summary(run.rows, engine.geometry):
        print(line)
    if arguments.plot:
        plot(run.rows, arguments.plot)
    found = failures(run.rows)
    for line in found:
        print(f"FAILED {line}")
    return 1 if found else 0
