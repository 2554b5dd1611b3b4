"""The figures of a profile's folder, copied beside the page, with their captions."""

from pathlib import Path

from lib import paths
from lib.profiles import Profile

CAPTIONS = paths.DATA / "figures.yaml"
# The first bytes of a file of its kind.
SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "csv": b""}


def publish_figures(profile: Profile, folder: Path) -> list[dict]:
    """Copy the figures that the profile has into `figures` of the folder; return them
    in the order of the paper, strangers last.

    `caption`: what data/figures.yaml says of it, if anything; `files`: places in the
    folder by kind; `rows` of its csv; `missing`: files that cannot be shown, and why.
    """
    pictures = {path.stem: path for path in sorted(profile.figures.glob("*.png"))}
    figures = []
    for group in paths.read_yaml(CAPTIONS).values():
        for caption in group:
            if caption["id"] in pictures:
                picture = pictures.pop(caption["id"])
                figures.append(_publish_figure(picture, caption, folder))
    figures += [_publish_figure(path, None, folder) for path in pictures.values()]
    return figures


def _publish_figure(picture: Path, caption: dict | None, folder: Path) -> dict:
    """Copy a figure's files and return what the page says of it."""
    figure: dict = {"name": picture.stem, "caption": caption, "rows": None}
    files: dict[str, str] = {}
    missing: list[str] = []
    for kind, signature in SIGNATURES.items():
        path = picture.with_suffix(f".{kind}")
        try:
            content = path.read_bytes()
        except OSError as error:
            missing.append(f"{path.name}: {error.strerror}")
            continue
        if not content.startswith(signature):
            missing.append(f"{path.name}: no {kind} file")
            continue
        place = folder / "figures" / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        paths.write_whole(place, content)
        files[kind] = f"figures/{path.name}"
        if kind == "csv":
            figure["rows"] = content.count(b"\n") - 1
    return figure | {"files": files, "missing": missing}
