"""Why a model cannot be had, in one line: a damaged checkpoint, a hub that refuses."""

import errno
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import constants, errors

from lib import paths
from lib.errors import InputError, unusable_variable

LOG_IN = "log in with `hf auth login` or set HF_TOKEN"
TRY_LATER = (
    "what was fetched stays: try again later, or give a local folder, or a model that"
    " is in the cache already"
)
UNREACHABLE = (
    httpx2.TransportError,
    ConnectionError,
    TimeoutError,
    errors.RevisionResolutionError,
    errors.LocalEntryNotFoundError,
)
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def checkpoint_errors(name: str | Path, folder: Path | None = None) -> Iterator[None]:
    """Turn what the libraries raise for an unusable checkpoint into an InputError.

    A broken file makes each library fail in its own way, tokenizers with no exception
    class at all, so every exception counts. What speaks of the checkpoint's folder,
    which may be one of a cache, speaks of its name.
    """
    try:
        yield
    except Exception as error:
        message = str(error)
        if not isinstance(error, InputError):
            reason = (message.strip() or type(error).__name__).splitlines()[0]
            if reason.startswith("Couldn't instantiate the backend tokenizer"):
                reason = "no tokenizer.json"
            message = _disk_full(error) or f"{name}: cannot be loaded: {reason}"
        if folder:
            message = message.replace(str(folder), str(name))
        raise InputError(message) from error


def require_whole(
    report: Mapping[str, Collection[Any]], holder: str, layers: int | None = None
) -> None:
    """Raise InputError where transformers reports tensors that were not there, or have
    another shape, which it would fill with random numbers and only a warning.

    layers: the first ones, where they alone were asked for.
    """
    for name, stored, wanted in sorted(report["mismatched_keys"]):
        part = f" of the first {layers} layers: load the whole model" if layers else ""
        raise InputError(
            f"{holder} has {name} in the shape {list(stored)}, but config.json asks for"
            f" {list(wanted)}{part}"
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            f"{holder} lacks {len(missing)} tensors, the first is {missing[0]}"
        )


@contextmanager
def hub_errors(repo: str, revision: str | None = None) -> Iterator[None]:
    """Turn what the hub refuses into an InputError; what is not the hub's stays."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        chain = _with_causes(error)
        refusals = [_refusal(repo, revision, cause) for cause in chain]
        if any(isinstance(cause, UNREACHABLE) for cause in chain):
            refusals.append(
                f"{repo}: cannot be fetched, {constants.ENDPOINT} does not answer or"
                f" HF_HUB_OFFLINE is set; {TRY_LATER}"
            )
        variable = unusable_variable()
        if variable:
            refusals.append(f"{repo}: cannot be fetched: {variable}")
        for message in filter(None, refusals):
            raise InputError(message) from error
        raise


def _refusal(repo: str, revision: str | None, error: BaseException) -> str | None:
    """Return in one line why an exception hinders a fetch; None for any other."""
    access = f"request access on {constants.ENDPOINT}/{repo}, then {LOG_IN}"
    match error:
        case errors.HFValidationError():
            return f"{repo!r} is not a hub id: {str(error).splitlines()[0]}"
        case errors.GatedRepoError():
            return f"{repo} is gated: {access}"
        case errors.RevisionNotFoundError():
            return (
                f"{repo} has no revision {revision!r}: give a branch, a tag or a commit"
            )
        case errors.RepositoryNotFoundError():
            return (
                f"{repo} was not found on {constants.ENDPOINT}: check the id; if it is"
                f" private, {LOG_IN}"
            )
        case errors.RemoteEntryNotFoundError():
            file = error.response.url.path.rsplit("/", 1)[-1]
            return f"{repo} has no file {file}"
        case errors.NotASafetensorsRepoError():
            return f"{repo}: no weights; a checkpoint needs *.safetensors"
        case errors.SafetensorsParsingError():
            return f"{repo}: {str(error).splitlines()[0]}"
        case errors.HfHubHTTPError():
            status = error.response.status_code
            advice = access if status in (401, 403) else TRY_LATER
            return f"{repo}: the hub answered {status}; {advice}"
    return _disk_full(error)


def _with_causes(error: BaseException) -> list[BaseException]:
    """Return an exception and what it was raised from: the reason may be wrapped."""
    chain = [error]
    while cause := chain[-1].__cause__ or chain[-1].__context__:
        chain.append(cause)
    return chain


def _disk_full(error: BaseException) -> str | None:
    if not isinstance(error, OSError) or error.errno not in FULL_DISK:
        return None
    return (
        f"disk full: free space in {paths.CACHE} and {constants.HF_HUB_CACHE} and run"
        " again; what was fetched stays"
    )
