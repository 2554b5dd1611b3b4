"""The order in which lib's rooms may import each other, held against the import graph of the sources."""

import ast
from pathlib import Path

import lib
from lib.paths import ROOT

LIB = ROOT / "lib"
FLOORS = [line.split() for line in lib.__doc__.splitlines() if line.startswith("    ")]
ROOMS = [room for floor in FLOORS for room in floor]


def imports(path: Path) -> list[tuple[str, str, bool]]:
    """Return (importing room, imported room, inside a function) for each import of lib in a file."""
    tree = ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "lib":
            parts = node.module.split(".")[1:]
            names = [parts[0]] if parts else [alias.name for alias in node.names]
            found += [(room(path), name, id(node) not in top) for name in names]
    return found


def room(path: Path) -> str:
    return path.relative_to(LIB).parts[0].removesuffix(".py")


PROGRAMS = {LIB / "__main__.py"}  # it answers --help before it imports
# What is stored is drawn without the libraries that run a network: seconds for each notebook.
STORED = {LIB / "measurement" / "run.py", LIB / "evaluation" / "of_profile.py"}


GRAPH = [edge for path in sorted(LIB.rglob("*.py")) for edge in imports(path)]


def test_every_room_stands_on_one_floor():
    rooms = {room(path) for path in LIB.rglob("*.py")} - {"__init__"}
    assert sorted(ROOMS) == sorted(rooms) and len(set(ROOMS)) == len(ROOMS)


def test_the_top_of_lib_is_small():
    entries = [path for path in LIB.iterdir() if path.name != "__pycache__"]
    assert sum(path.is_file() for path in entries) <= 9 and sum(path.is_dir() for path in entries) <= 11


def test_rooms_import_upwards_only():
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    wrong = {(a, b) for a, b, _ in GRAPH if a != b and floor[b] >= floor[a]}
    # The ground floor may use its own: statistics and paths report in errors' words.
    assert not {(a, b) for a, b in wrong if a not in FLOORS[0]}


def test_only_programs_and_what_is_stored_import_inside_functions():
    lazy = {path for path in LIB.rglob("*.py") if any(inside for *_, inside in imports(path))}
    assert lazy <= PROGRAMS | STORED


def test_modules_within_a_folder_import_without_circles():
    graph: dict[str, set[str]] = {}
    for path in LIB.rglob("*.py"):
        name = ".".join(path.relative_to(LIB.parent).with_suffix("").parts)
        graph[name] = {
            node.module
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("lib.")
        }
    done: set[str] = set()
    while ready := {name for name in graph if name not in done and graph[name] & graph.keys() <= done}:
        done |= ready
    assert not graph.keys() - done
