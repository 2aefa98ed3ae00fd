"""Puts an artifact on the Hugging Face hub, or on another server with its interface."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils import httpx

from edgeinfinite.artifact.manifest import MANIFEST_FILE, MODEL_CARD, load_manifest
from edgeinfinite.errors import EdgeInfiniteError

_CARD_FOLDER = "card/*"
_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN to a token that may write there"

# A loop of redirects, an address that is none, and answers of another shape.
_NO_HUB = (*(httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, AttributeError),)


@dataclass(frozen=True)
class PushOptions:
    """What goes where.

    Args:
        artifact: the folder.
        repo: `ORG/NAME`; made if it isn't there.
        revision: a branch that is there; None for the main one.
        private: whether a new repository is; False leaves it to the server's settings.
        message: of the commit.
    """

    artifact: Path
    repo: str
    revision: str | None = None
    private: bool = False
    message: str = "Upload an EdgeInfinite artifact"


def push_artifact(options: PushOptions) -> str:
    """Uploads what the manifest names, the manifest, and the card with its rows and pictures.

    Anything else in the folder, such as a session, stays here. `HF_ENDPOINT` and `HF_TOKEN` are
    huggingface_hub's variables.

    Returns:
        The address of the commit.

    Raises:
        EdgeInfiniteError: the artifact is damaged, the server can't be reached, or it refuses.
    """
    manifest = load_manifest(options.artifact)
    own = [*manifest.files, MANIFEST_FILE, MODEL_CARD, _CARD_FOLDER]
    api = HfApi()
    try:
        api.create_repo(options.repo, private=options.private or None, exist_ok=True)
        commit = api.upload_folder(
            repo_id=options.repo,
            folder_path=options.artifact,
            allow_patterns=own,
            revision=options.revision,
            commit_message=options.message,
        )
    except HFValidationError as error:
        raise EdgeInfiniteError(f"--repo {options.repo!r}: {error}; give ORG/NAME") from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        hint = f"; {_LOG_IN}" if status in (401, 403) else ""
        reason = error.server_message or str(error).strip().splitlines()[0]
        raise EdgeInfiniteError(
            f"{api.endpoint} refuses {options.repo} ({status}): {reason}{hint}"
        ) from error
    except (httpx.TransportError, OSError) as error:
        raise EdgeInfiniteError(f"{api.endpoint} can't be reached: {error}") from error
    except _NO_HUB as error:
        reason = " ".join(str(error).split())[:200]
        raise EdgeInfiniteError(
            f"{api.endpoint} doesn't answer as a hub does ({type(error).__name__}: {reason}); "
            "check the variable HF_ENDPOINT and the proxy"
        ) from error
    return str(commit.commit_url)
