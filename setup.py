"""Refuse to build a wheel: profiles, data and notebooks lie beside lib, not in it.

All else is in pyproject.toml. An editable installation, as `make` does it, imports lib
from the repository and finds them.
"""

import sys

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel


class NoWheel(bdist_wheel):
    """What would run without profiles, data and notebooks is not built."""

    def run(self) -> None:
        sys.exit(
            "error: a wheel would lack profiles, data and notebooks: run `make`, or"
            " `pip install --editable .` in a clone of the repository"
        )


setup(cmdclass={"bdist_wheel": NoWheel})
