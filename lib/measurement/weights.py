"""The weights that a measurement needs, of which memory holds one model's at a time."""

import gc

from lib.models.loading import Loaded, load

_newest: dict[tuple[str, int, str], Loaded] = {}


def first_layers(spec: str, layers: int, dtype: str = "auto") -> Loaded:
    """Load a model once for several figures and measurements; only the newest is kept in memory."""
    wanted = spec, layers, dtype
    if wanted not in _newest:
        let_go()  # before, not after: two of these models may be more than a laptop holds
        _newest[wanted] = load(spec, layers=layers, dtype=dtype)
    return _newest[wanted]


def every_layer(spec: str, dtype: str = "auto") -> Loaded:
    """Load all layers of a model, letting go of what is kept; they are themselves not kept."""
    let_go()
    return load(spec, dtype=dtype, head=False)


def let_go() -> None:
    """Free what is kept, before something else is loaded."""
    _newest.clear()
    gc.collect()  # hooks and configs refer to each other
