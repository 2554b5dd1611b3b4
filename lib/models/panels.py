"""Which heads the attention figures draw, and which of them a model has."""

from collections.abc import Iterable, Iterator

from pydantic import Field, PositiveInt

from lib.errors import InputError, Settings
from lib.models.names import Card

# (layer, head) of rows that a profile leaves out, as far as its first model has them.
FIRST_HEADS = {
    "fig09": [(1, 1), (2, 1), (3, 1)],
    "fig10": [(1, 1)],
    "fig11": [(1, 1), (1, 2), (1, 3)],
    "fig13": [(1, 1), (1, 2), (1, 3)],
    "fig18": [(1, 4), (1, 5), (1, 6)],
}


class Panel(Settings):
    """One head of one layer of one model; both count from 1. `note` is the caption's, on a head that was replaced."""

    model: str
    layer: PositiveInt
    head: PositiveInt
    note: str | None = None


class Panels(Settings):
    """The heads that a figure draws, from left to right; a row that is left out stands for FIRST_HEADS."""

    fig09: list[Panel] = Field([])
    fig10: list[Panel] = Field([])
    fig11: list[Panel] = Field([])
    fig13: list[Panel] = Field([])
    fig18: list[Panel] = Field([])

    def drawn(self) -> Iterator[tuple[str, Panel]]:
        """Yield every panel with its figure's name."""
        yield from ((figure, panel) for figure, row in self for panel in row)

    def filled(self, known: Card, layers: int) -> "Panels":
        """Return the panels with every row, of a model of which so many layers are loaded."""
        rows = {}
        for figure, places in FIRST_HEADS.items():
            last = known.heads or max(head for _, head in places)
            there = [(x, y) for x, y in places if x <= layers and y <= last] or [(1, last)]
            first = [Panel(model=known.spec, layer=layer, head=head) for layer, head in there]
            rows[figure] = getattr(self, figure) or first
        return Panels(**rows)

    def fitted(self, known: Card) -> "Panels":
        """Return the panels of this model instead of theirs, with the nearest heads and layers that it has."""
        return Panels(**{figure: _nearest(row, known) for figure, row in self})


def missing_heads(figure: str, panel: Panel, known: Card) -> None:
    """Raise InputError when the model lacks a panel's layer or head."""
    for name, number, last in (("layers", panel.layer, known.layers), ("heads", panel.head, known.heads)):
        if last and number > last:
            raise InputError(f"{figure}: {known.spec} has {name} 1 to {last}, not {number}")


def _nearest(row: Iterable[Panel], known: Card) -> list[Panel]:
    """Return a row as the model has it, each head once."""
    found: dict[tuple[int, int], Panel] = {}
    for panel in row:
        layer, head = min(panel.layer, known.layers or panel.layer), min(panel.head, known.heads or panel.head)
        asked, note = f"layer {panel.layer} head {panel.head}", panel.note
        if (layer, head) != (panel.layer, panel.head):
            note = f"Layer {layer} head {head} stands for {asked}, which {known.name} lacks"
        found.setdefault((layer, head), Panel(model=known.spec, layer=layer, head=head, note=note))
    return list(found.values())
