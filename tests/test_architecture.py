"""The sources of lib keep to the order in which its subpackages may import each other.

Imports count at the top of a module, inside a function, and in a package that loads its
modules lazily. Modules that `importlib` loads by name, as for an engine that a user
chose, do not count.
"""

import ast
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lib
from lib.paths import ROOT

LIB = ROOT / "lib"
LAYERS = [line.split() for line in lib.__doc__.splitlines() if line.startswith("    ")]
SUBPACKAGES = [name for layer in LAYERS for name in layer]

# Names that two modules may define, and why.
DEFINED_TWICE = {
    "Engine": "Each engine has a class of this name, loaded by the engine's name.",
    "evaluate": "The command and the function that it calls do the same.",
    "grade": "The command and the function that it calls do the same.",
    "reproduce": "The command and the function that it calls do the same.",
}


def name_of(path: Path) -> str:
    """Return the dotted name of a module or package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


SOURCES = {
    name_of(path): path.read_text(encoding="utf-8") for path in LIB.rglob("*.py")
}


def imports_of(name: str) -> set[str]:
    """Return the modules of lib that a module of lib imports."""
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
    return modules & set(SOURCES) - {"lib", name}


def defined_in(source: str) -> set[str]:
    """Return the public names that a module defines at its top level."""
    names = set()
    for node in ast.parse(source).body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


def test_modules_import_without_circles():
    TopologicalSorter({name: imports_of(name) for name in SOURCES}).prepare()


def test_one_name_means_one_thing():
    defined = Counter(name for text in SOURCES.values() for name in defined_in(text))
    several = [name for name, modules in defined.items() if modules > 1]
    assert sorted(several) == sorted(DEFINED_TWICE)


def test_the_instrument_imports_nothing_of_the_reproduction():
    first, second = lib.__doc__.split("The second half reproduces")
    named = [re.findall(r"^- ([\w, ]+):", half, re.M) for half in (first, second)]
    instrument, reproduction = (", ".join(names).split(", ") for names in named)
    assert sorted(instrument + reproduction) == sorted(SUBPACKAGES)
    for name in SOURCES.keys() - {"lib"}:
        if subpackage(name) in instrument:
            assert not {subpackage(other) for other in imports_of(name)} & {
                *reproduction
            }


def subpackage(module: str) -> str:
    return module.split(".")[1]


def test_every_subpackage_is_in_one_layer_and_the_top_folder_is_small():
    assert sorted(SUBPACKAGES) == sorted(
        {subpackage(name) for name in SOURCES if name != "lib"}
    )
    entries = [path for path in LIB.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 21
    assert sum(path.is_file() for path in entries) <= 9


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {"lib"}))
def test_a_subpackage_imports_only_itself_and_the_layers_above_it(name):
    package = subpackage(name)
    (number,) = (number for number, layer in enumerate(LAYERS) if package in layer)
    allowed = {package, *(above for layer in LAYERS[:number] for above in layer)}
    if number == 0:
        allowed |= {"errors"}  # whose exceptions paths and statistics raise
    assert {subpackage(module) for module in imports_of(name)} <= allowed
