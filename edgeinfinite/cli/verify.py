"""`edgeinfinite verify`: checks an artifact."""

from __future__ import annotations

import argparse
import dataclasses

from edgeinfinite.files import check_writable
from edgeinfinite.rows_file import write_rows


def verify(arguments: argparse.Namespace) -> int:
    """Checks an artifact: checksums, inputs and outputs, parity with the checkpoint."""
    check_writable(arguments.json)
    from edgeinfinite.export.verify import verify_artifact

    checks = verify_artifact(
        arguments.artifact,
        against=arguments.against,
        text=arguments.text,
        model=arguments.model,
        soc=arguments.soc,
    )
    for check in checks:
        limit = "" if check.limit is None else f" (limit {check.limit:.3g})"
        print(f"{'ok' if check.passed else 'FAILED':<7}{check.check:<40}{check.value:.3g}{limit}")
    if arguments.json:
        write_rows(arguments.json, "verify", [dataclasses.asdict(check) for check in checks])
    return 0 if all(check.passed for check in checks) else 1
