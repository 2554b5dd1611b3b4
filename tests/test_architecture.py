"""The order in which lib's rooms may import each other, held against the sources.

An import counts wherever it stands: at the top, inside a function, or in a folder that
loads its modules when they are first asked for. What `importlib` loads by a name that
somebody chose, as an engine is, does not.
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
FLOORS = [line.split() for line in lib.__doc__.splitlines() if line.startswith("    ")]
ROOMS = [room for floor in FLOORS for room in floor]

# What may have the name of something else: each is read where its module is named.
DOUBLES = {
    "Engine": "Each way to generate has its own, which is loaded by the engine's name.",
    "evaluate": "The command, and what it calls, are one thing to a user.",
    "grade": "The command, and what it calls, are one thing to a user.",
    "reproduce": "The command, and what it calls, are one thing to a user.",
}


def name_of(path: Path) -> str:
    """Return the dotted name of a module, which of a package is its folder's."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


SOURCES = {
    name_of(path): path.read_text(encoding="utf-8") for path in LIB.rglob("*.py")
}


def imports_of(name: str) -> set[str]:
    """Return the modules of lib that one of them imports."""
    is_lazy = "lazy_loader.attach" in SOURCES[name]
    imported = set()
    for node in ast.walk(ast.parse(SOURCES[name])):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported |= {f"{node.module}.{alias.name}" for alias in node.names}
        if is_lazy and isinstance(node, ast.Constant):
            imported.add(f"{name}.{node.value}")
    # `from lib.paths import ROOT` imports lib.paths, and a name of it.
    modules = {one if one in SOURCES else one.rpartition(".")[0] for one in imported}
    return modules & set(SOURCES) - {"lib", name}


def defined_in(source: str) -> set[str]:
    """Return the names at the top of a source that others may import from it."""
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
    assert sorted(several) == sorted(DOUBLES)


def test_the_instrument_needs_nothing_of_the_reproduction():
    first, second = lib.__doc__.split("The second is the reproduction")
    named = [re.findall(r"^- ([\w, ]+):", half, re.M) for half in (first, second)]
    instrument, reproduction = (", ".join(names).split(", ") for names in named)
    assert sorted(instrument + reproduction) == sorted(ROOMS)
    for name in SOURCES.keys() - {"lib"}:
        if room(name) in instrument:
            assert not {room(other) for other in imports_of(name)} & {*reproduction}


def room(module: str) -> str:
    return module.split(".")[1]


def test_every_room_stands_on_one_floor_and_the_top_is_small():
    assert sorted(ROOMS) == sorted({room(name) for name in SOURCES if name != "lib"})
    entries = [path for path in LIB.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 21
    assert sum(path.is_file() for path in entries) <= 9


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {"lib"}))
def test_a_room_imports_only_itself_and_the_floors_above_it(name):
    (here,) = (number for number, floor in enumerate(FLOORS) if room(name) in floor)
    allowed = {room(name), *(above for floor in FLOORS[:here] for above in floor)}
    if here == 0:
        allowed |= {"errors"}  # in whose words paths and statistics report
    assert {room(module) for module in imports_of(name)} <= allowed
