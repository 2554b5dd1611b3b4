"""The weights that a measurement needs, of which memory holds one model's at a time."""

import gc

from lib.models.loading import Loaded, load

_newest: dict[tuple[str, int], Loaded] = {}


def first_layers(spec: str, layers: int) -> Loaded:
    """Load a model once for several figures and measurements; only the newest is kept in memory."""
    if (spec, layers) not in _newest:
        let_go()  # before, not after: two of these models may be more than a laptop holds
        _newest[spec, layers] = load(spec, layers=layers)
    return _newest[spec, layers]


def every_layer(spec: str) -> Loaded:
    """Load a whole model, letting go of what is kept; it is itself not kept."""
    let_go()
    return load(spec)


def let_go() -> None:
    """Free what is kept, before something else is loaded."""
    _newest.clear()
    gc.collect()  # hooks and configs refer to each other
