"""`edgeinfinite serve`: an artifact, or a checkpoint read exactly, as an HTTP server."""

from __future__ import annotations

import argparse
import os

from edgeinfinite.cli.arguments import given
from edgeinfinite.cli.mom import check_engine, served_checkpoint
from edgeinfinite.cli.notes import note
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.installation import install_extra
from edgeinfinite.runtime_py.server.options import ServeOptions

_KEY_VARIABLE = "EDGEINFINITE_API_KEY"


def serve(arguments: argparse.Namespace) -> int:
    """Serves OpenAI's chat and completions routes and a page to ask about documents."""
    check_engine(arguments)
    values = {"api_key": os.environ.get(_KEY_VARIABLE)} | given(arguments, ServeOptions)
    options = ServeOptions(**values)
    try:
        from edgeinfinite.runtime_py.server.app import bind, run
        from edgeinfinite.runtime_py.server.served import served_artifact
        from edgeinfinite.runtime_py.server.service import Service
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("edgeinfinite"):
            raise
        raise EdgeInfiniteError(
            f"serve needs the package {error.name}; install it with: {install_extra('serve')}"
        ) from error
    with bind(options) as listener:
        if arguments.engine == "mom":
            served = served_checkpoint(arguments, options)
        else:
            served = served_artifact(arguments.artifact, options, threads=arguments.threads)
        service = Service(served, options)
        port = listener.getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        note(
            f"{service.model} answers at http://{host}:{port}/v1, its page is http://{host}:{port}/"
        )
        try:
            run(service, listener)
        finally:
            if service.jobs.hanging:  # in a library, for lack of memory: Python would wait for ever
                note("a request doesn't end; the server ends without it")
                os._exit(1)
    return 0
