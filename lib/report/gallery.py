"""The figures of a profile's folder, with their captions and files."""

import base64
from pathlib import Path

from lib import paths
from lib.profiles import Profile

CAPTIONS = paths.DATA / "figures.yaml"
MIME_TYPES = {"png": "image/png", "pdf": "application/pdf", "csv": "text/csv"}
# The first bytes of a file of its kind.
SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "csv": b""}


def read_figures(profile: Profile) -> tuple[list[dict], list[dict]]:
    """Return the figures that the profile's folder holds: of the paper in its order,
    then those that go beyond it, strangers last.

    `caption`: what data/figures.yaml says of it, if anything; `files`: data URIs by
    kind; `rows` of its csv; `missing`: files that cannot be shown, and why.
    """
    captions = paths.read_yaml(CAPTIONS)
    strangers = {path.stem: path for path in sorted(profile.figures.glob("*.png"))}
    groups = {}
    for group in ("paper", "beyond"):
        known = [caption for caption in captions[group] if caption["id"] in strangers]
        groups[group] = [
            _read_figure(strangers.pop(caption["id"]), caption) for caption in known
        ]
    others = [_read_figure(path, None) for path in strangers.values()]
    return groups["paper"], groups["beyond"] + others


def _read_figure(picture: Path, caption: dict | None) -> dict:
    """Return a figure as the page shows it, from its files beside the picture."""
    figure: dict = {"name": picture.stem, "caption": caption, "rows": None}
    files: dict[str, str] = {}
    missing: list[str] = []
    for kind, mime_type in MIME_TYPES.items():
        path = picture.with_suffix(f".{kind}")
        try:
            content = path.read_bytes()
        except OSError as error:
            missing.append(f"{path.name}: {error.strerror}")
            continue
        if not content.startswith(SIGNATURES[kind]):
            missing.append(f"{path.name}: no {kind} file")
            continue
        encoded = base64.b64encode(content).decode()
        files[kind] = f"data:{mime_type};base64,{encoded}"
        if kind == "csv":
            figure["rows"] = content.count(b"\n") - 1
    return figure | {"files": files, "missing": missing}
