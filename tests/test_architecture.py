"""The sources of both packages keep to the order in which their subpackages may import
each other, and the instrument imports nothing of the study.

Imports count at the top of a module, inside a function, and in a package that loads its
modules lazily. Modules that `importlib` loads by name, as for an engine that a user
chose, do not count.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lib
import reproduction
from lib.paths import ROOT

PACKAGES = {"lib": lib, "reproduction": reproduction}
LAYERS = {
    name: [
        line.split() for line in package.__doc__.splitlines() if line.startswith("    ")
    ]
    for name, package in PACKAGES.items()
}


def name_of(path: Path) -> str:
    """Return the dotted name of a module or package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


SOURCES = {
    name_of(path): path.read_text(encoding="utf-8")
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
}


def imports_of(name: str) -> set[str]:
    """Return the modules of both packages that one of their modules imports."""
    is_lazy = "lazy_loader.attach" in SOURCES[name]
    imported = set()
    for node in ast.walk(ast.parse(SOURCES[name])):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported |= {f"{node.module}.{alias.name}" for alias in node.names}
        if is_lazy and isinstance(node, ast.Constant):
            imported.add(f"{name}.{node.value}")
    # `from lib.paths import ROOT` imports the module lib.paths.
    modules = {one if one in SOURCES else one.rpartition(".")[0] for one in imported}
    return modules & set(SOURCES) - {*PACKAGES, name}


def test_without_the_study_the_instrument_imports():
    script = "import sys; sys.modules['reproduction'] = None; from lib import arm,"
    script += " attention, files, generation, grading, models, prompts, statistics"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def layer_of(package: str, subpackage: str) -> int:
    (number,) = (
        number for number, layer in enumerate(LAYERS[package]) if subpackage in layer
    )
    return number


@pytest.mark.parametrize("package", PACKAGES)
def test_every_subpackage_is_in_one_layer(package):
    listed = [name for layer in LAYERS[package] for name in layer]
    found = {name.split(".")[1] for name in SOURCES if name.startswith(f"{package}.")}
    assert sorted(listed) == sorted(found)


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {*PACKAGES}))
def test_a_subpackage_imports_only_itself_and_the_layers_above_it(name):
    package, subpackage = name.split(".")[:2]
    number = layer_of(package, subpackage)
    allowed = {above for layer in LAYERS[package][:number] for above in layer}
    if number == 0:
        allowed |= {"errors"}  # whose exceptions paths and statistics raise
    allowed = {f"{package}.{above}" for above in {subpackage, *allowed}}
    imported = {".".join(other.split(".")[:2]) for other in imports_of(name)}
    if package == "reproduction":
        imported = {other for other in imported if not other.startswith("lib.")}
    assert imported <= allowed
