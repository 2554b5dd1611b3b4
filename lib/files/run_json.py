"""Record the settings of a run in the folder of its results, and compare them.

The settings that all rows of a folder share are in `run.json`; `settings_key` returns
the key of a row, a digest of everything that it depends on.
"""

import hashlib
import json
from pathlib import Path

from lib.errors import InputError

RUN = "run.json"
ADVICE = "use another folder, or delete this one with its results"


def require_same_settings(folder: Path, settings: dict) -> None:
    """Raise InputError if a folder was made with other settings; the message names the
    first difference. A folder without `run.json` is accepted.
    """
    if (folder / RUN).exists():
        difference = first_difference(read_settings(folder), settings)
        if difference:
            raise InputError(f"{folder} was made with {difference}: {ADVICE}")


def first_difference(before: dict, now: dict) -> str:
    """Return the first setting that differs, as `name = old, not new`; "" for none."""
    old = _flat(before)
    new = _flat(now)
    for name in old | new:
        old_value = old.get(name, "(absent)")
        new_value = new.get(name, "(absent)")
        if old_value != new_value:
            return f"{name} = {old_value}, not {new_value}"
    return ""


def _flat(settings: dict, prefix: str = "") -> dict[str, str]:
    """Return each setting as JSON by its name, which is group.name in a group."""
    flat = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = json.dumps(value)
    return flat


def read_settings(folder: Path) -> dict:
    """Return the settings of the run in a folder; raise InputError if there is none."""
    path = folder / RUN
    if not path.is_file():
        raise InputError(f"{folder} holds no run: it has no {RUN}")
    try:
        return {**json.loads(path.read_text(encoding="utf-8"))["settings"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is broken: {ADVICE}") from error


def settings_key(**settings: object) -> str:
    """Return a digest of settings (16 hex digits), independent of their order."""
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
