"""The order in which lib's rooms may import each other, held against the sources, and
how many and long these are.
"""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import lib
from lib.paths import ROOT

LIB = ROOT / "lib"
SOURCES = sorted(LIB.rglob("*.py"))
FLOORS = [line.split() for line in lib.__doc__.splitlines() if line.startswith("    ")]
ROOMS = [room for floor in FLOORS for room in floor]


def room(path: Path) -> str:
    return path.relative_to(LIB).parts[0].removesuffix(".py")


def imports(path: Path) -> list[str]:
    """Return the modules or rooms of lib that a file imports, inside functions too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "lib"
        ):
            found += (
                [node.module]
                if node.module != "lib"
                else [f"lib.{alias.name}" for alias in node.names]
            )
    return found


IMPORTS = {path: imports(path) for path in SOURCES}


def test_every_room_stands_on_one_floor_and_the_top_is_small():
    assert sorted(ROOMS) == sorted({room(path) for path in SOURCES} - {"__init__"})
    files = [path.is_file() for path in LIB.iterdir() if path.name != "__pycache__"]
    assert sum(files) <= 9 and len(files) <= 20


def test_rooms_import_upwards_only():
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    edges = {
        (room(path), module.split(".")[1])
        for path in SOURCES
        for module in IMPORTS[path]
    }
    # The ground floor may use its own: statistics and paths report in errors' words.
    assert not {
        (a, b)
        for a, b in edges
        if a != b and floor[b] >= floor[a] and a not in FLOORS[0]
    }


def test_modules_import_without_circles():
    names = {
        path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in SOURCES
    }
    TopologicalSorter({names[path]: IMPORTS[path] for path in SOURCES}).prepare()
