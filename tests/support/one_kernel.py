"""Run several notebooks in one kernel, which starts and imports once."""

from collections.abc import Sequence
from pathlib import Path

import nbformat
import papermill
import pytest


def run_in_one_kernel(
    folder: Path, notebooks: Sequence[Path], before: str = "", **parameters: object
) -> nbformat.NotebookNode:
    """Run the code of several notebooks, each with these parameters, and return them as
    one notebook with its outputs.

    folder: a copy of the repository, whose package the kernel imports.
    before: code that runs first.
    """
    given = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    cells = [nbformat.v4.new_code_cell(before)]
    for path in notebooks:
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type != "code":
                continue
            cells.append(nbformat.v4.new_code_cell(cell.source))
            if "parameters" in cell.metadata.get("tags", []):
                cells.append(nbformat.v4.new_code_cell(given))

    joined = folder / "joined.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), joined)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        return papermill.execute_notebook(
            joined, None, cwd=folder, kernel_name="python3", progress_bar=False
        )
