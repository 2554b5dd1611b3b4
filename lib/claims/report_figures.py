"""The report's figures: pictures, captions of data/figures.yaml, and what the notebooks found."""

import base64
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, TypeAdapter, ValidationError

from lib import paths
from lib.errors import Settings, valid
from lib.paths import read_yaml, shown
from lib.profiles import Profile

CAPTIONS = paths.DATA / "figures.yaml"
PNG = b"\x89PNG\r\n\x1a\n"
KINDS = {"png": "image/png", "pdf": "application/pdf", "csv": "text/csv"}
SIGNATURES = {"png": PNG, "pdf": b"%PDF-"}


class Caption(Settings):
    """What data/figures.yaml says of a figure."""

    id: str
    title: str
    shows: str
    read: str
    notebook: str
    claims: list[str]


class Captions(Settings):
    """Figures of the paper in its order, and those that go beyond it."""

    paper: list[Caption]
    beyond: list[Caption]


class Found(BaseModel):
    """What a notebook published of a figure."""

    figure: str
    model: str
    n: int
    found: str


@dataclass(frozen=True)
class Figure:
    """A figure as the page shows it: `files` as data URIs by kind, `missing` says what cannot be shown and why."""

    name: str
    caption: Caption | None
    files: dict[str, str]
    rows: int | None
    found: list[Found]
    missing: list[str] = field(default_factory=list)


def read_captions(path: Path = CAPTIONS) -> Captions:
    """Return the captions; raises InputError naming what is wrong with them."""
    return valid(Captions, read_yaml(path), shown(path))


def read_figures(profile: Profile, captions: Captions) -> tuple[list[Figure], list[Figure]]:
    """Return the figures that the profile's folder holds: of the paper in its order, then those that go beyond it."""
    present = {path.stem: path for path in sorted(profile.figures.glob("*.png"))}
    found = _found(profile, {caption.notebook for caption in [*captions.paper, *captions.beyond]})
    shown = []
    for group in (captions.paper, captions.beyond):
        shown.append([_figure(present.pop(c.id), c, found) for c in group if c.id in present])
    shown[1] += [_figure(path, None, found) for path in present.values()]
    return shown[0], shown[1]


def _found(profile: Profile, notebooks: set[str]) -> list[Found]:
    """Return what the notebooks published, passing over what is missing or damaged."""
    rows = []
    for notebook in sorted(notebooks):
        try:
            rows += TypeAdapter(list[Found]).validate_json((profile.results / f"{notebook}.json").read_bytes())
        except (OSError, ValidationError):
            continue
    return rows


def _figure(path: Path, caption: Caption | None, found: list[Found]) -> Figure:
    files, missing, rows = {}, [], None
    for kind, mime in KINDS.items():
        file = path.with_suffix(f".{kind}")
        try:
            content = file.read_bytes()
            if not content.startswith(SIGNATURES.get(kind, b"")):
                raise ValueError(f"no {kind} file")
            if kind == "csv":
                rows = len(pd.read_csv(file))
        except OSError as error:
            missing.append(f"{file.name}: {error.strerror}")
        except ValueError as error:
            missing.append(f"{file.name} cannot be read: {' '.join(str(error).split())}")
        else:
            files[kind] = f"data:{mime};base64,{base64.b64encode(content).decode()}"
    return Figure(path.stem, caption, files, rows, [row for row in found if row.figure == path.stem], missing)
