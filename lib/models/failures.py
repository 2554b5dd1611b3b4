"""What goes wrong around model hubs and checkpoints, said in one line that names a way out.

with hub_errors("org/name", revision): ...     # requests to the hub
with checkpoint_errors(folder): ...            # reading what is on disk
"""

import errno
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx2
from huggingface_hub import constants, errors

from lib.errors import InputError
from lib.paths import cache_folder

LOG_IN = "log in with `hf auth login` or set HF_TOKEN"
AGAIN = "what was fetched stays: try again later, or give a local folder, or a model that is in the cache already"
UNREACHABLE = (httpx2.TransportError, ConnectionError, TimeoutError)
UNREACHABLE += (errors.RevisionResolutionError, errors.LocalEntryNotFoundError)


def hub_errors(repo: str, revision: str | None = None) -> AbstractContextManager[None]:
    """Turn what the hub refuses, and what transformers makes of it, into InputError."""
    return _told(lambda error: explain_hub_error(repo, revision, error))


def checkpoint_errors(where: str | Path) -> AbstractContextManager[None]:
    """Turn what transformers and safetensors raise for an unusable checkpoint into InputError."""

    def explain(error: Exception) -> str:
        # A broken file makes each library fail in its own way, tokenizers with no class at all.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        reason = "it is damaged, or a part of it is missing" if isinstance(error, struct.error) else reason
        return _disk_full(error) or f"{where}: cannot be loaded: {reason}"

    return _told(explain)


@contextmanager
def _told(explain: Callable[[Exception], str | None]) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if message := explain(error):
            raise InputError(message) from error
        raise


def explain_hub_error(repo: str, revision: str | None, error: BaseException) -> str | None:
    """Return one line on why `repo` could not be read; None when the hub is not the reason."""
    # transformers wraps the hub's errors in an OSError of its own; the reason stays in the chain.
    chain = [error]
    while cause := chain[-1].__cause__ or chain[-1].__context__:
        chain.append(cause)
    for one in chain:
        if message := _disk_full(one) or _refused(repo, revision, one):
            return message
    if any(isinstance(one, UNREACHABLE) for one in chain):
        return f"{repo}: cannot be fetched, {constants.ENDPOINT} does not answer or HF_HUB_OFFLINE is set; {AGAIN}"
    return None


def _refused(repo: str, revision: str | None, error: BaseException) -> str | None:
    access = f"request access on {constants.ENDPOINT}/{repo}, then {LOG_IN}"
    match error:
        case errors.HFValidationError():
            return f"{repo!r} is not a hub id: {str(error).splitlines()[0]}"
        case errors.GatedRepoError():
            return f"{repo} is gated: {access}"
        case errors.RevisionNotFoundError():
            return f"{repo} has no revision {revision!r}: give a branch, a tag or a commit"
        case errors.RepositoryNotFoundError():
            return f"{repo} was not found on {constants.ENDPOINT}: check the id; if it is private, {LOG_IN}"
        case errors.RemoteEntryNotFoundError():
            return f"{repo} has no file {error.response.url.path.rsplit('/', 1)[-1]}"
        case errors.HfHubHTTPError():
            refused = error.response.status_code in (401, 403)
            return f"{repo}: the hub answered {error.response.status_code}; {access if refused else AGAIN}"
    return None


def _disk_full(error: BaseException) -> str | None:
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    places = f"{cache_folder()} and {constants.HF_HUB_CACHE}"
    return f"disk full: free space in {places} and run again; what was fetched stays"
