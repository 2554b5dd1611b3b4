"""Markdown that is written by code: tables, lists, and documents with marked blocks.

What stands between `<!-- begin NAME -->` and `<!-- end NAME -->` is written anew.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from lib.errors import InputError

BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", re.S)


def with_blocks(text: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """Return a document with each marked block as the function of its name writes it.

    Raises InputError for a block that is not among them.
    """
    names = {name for _, name, _ in BLOCK.findall(text)}
    if unknown := names - set(blocks):
        raise InputError(
            f"unknown block {min(unknown)!r}: choose from {', '.join(blocks)}"
        )

    def renewed(block: re.Match) -> str:
        begin, name, end = block.groups()
        return f"{begin}{blocks[name]()}\n{end}"

    return BLOCK.sub(renewed, text)


def as_markdown(rows: Sequence[tuple], columns: Sequence[str]) -> str:
    """Return a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"|{'|'.join(map(str, line))}|" for line in lines)


def as_list(*lines: str) -> str:
    """Return lines as a list in Markdown."""
    return "\n".join(f"- {line}" for line in lines)
