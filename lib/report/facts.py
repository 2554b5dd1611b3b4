"""What a report says of its run: models, problems, time and code."""

import subprocess
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from lib import paths
from lib.claims.verdict import Verdict, models_of
from lib.errors import InputError
from lib.models.names import resolve
from lib.profiles import Accuracy, Attention, Profile
from lib.prompts.problems import describe

# Of the code, wherever results are kept.
PROJECT_FILE = Path(__file__).resolve().parents[2] / "pyproject.toml"


def facts(
    profile: Profile, verdicts: list[Verdict], revisions: dict[str, str]
) -> dict[str, list[str]]:
    """Return what was run, by the name of the fact.

    A model has one revision, and the n of its claims.
    """
    attention = profile.attention
    accuracy = profile.accuracy
    weights = _weights_of([*attention.models, *accuracy.models])
    models = []
    for name in models_of(verdicts):
        label = f"{name} @ {revisions[name]}" if name in revisions else name
        if weights.get(name):
            label += f", {weights[name]}"
        sizes = [row.n for row in verdicts if row.model == name and row.n]
        n = f"n = {min(sizes)} to {max(sizes)}" if sizes else "nothing was measured"
        models.append(f"{label}; {n}")

    decoding = "greedy"
    if accuracy.temperature:
        decoding = f"temperature {accuracy.temperature:g}"
    seconds = (profile.results / "claims.json").stat().st_mtime
    judged = datetime.fromtimestamp(seconds, UTC)
    layers = f"{attention.layers} first layers"
    return {
        "Models, weights, problems of a claim": models,
        "Problems of attention": [f"{_problems_text(attention)}, {layers}"],
        "Problems to answer": [f"{_problems_text(accuracy)}, {decoding}"],
        "Claims judged": [f"{judged:%Y-%m-%d %H:%M} UTC"],
        "Code": [f"commit {_commit()}"],
    }


def addresses() -> dict[str, str]:
    """Return where the repository and its page are published, by name."""
    text = PROJECT_FILE.read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["urls"]


def _weights_of(specs: Sequence[str]) -> dict[str, str]:
    """Return by model what is said of its weights; nothing where a folder is not on
    this machine.
    """
    try:
        sources = [resolve(spec) for spec in specs]
    except InputError:
        return {}
    return {source.name: source.weights for source in sources}


def _commit() -> str:
    """Return the commit of the code, "unknown" in a copy without git."""
    command = ["git", "-C", str(paths.ROOT), "rev-parse", "--short=12", "HEAD"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()


def _problems_text(section: Attention | Accuracy) -> str:
    """Return which problems a section asks for, and in what form."""
    try:
        name = describe(section.problems)
    except InputError:  # a file that is not on this machine
        name = Path(section.problems).name
    return f"{name}, {section.limit or 'all'} problems, {section.format} prompt"
