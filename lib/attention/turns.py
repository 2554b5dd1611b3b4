"""Which of many forwards is running, where they take turns in one model.

In a sweep (lib.models.streaming) forwards wait for each other before each layer. A hook
belongs to the module that all of them share, so one that a forward installs for itself
must let the others pass.
"""

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

# The forward that is running; None where none takes turns.
forward_running: ContextVar[object | None] = ContextVar("forward", default=None)


def in_own_turn(hook: Callable) -> Callable:
    """Let a hook act on the forwards alone among which it was made."""
    owner = forward_running.get()

    @functools.wraps(hook)
    def acting(*args, **options) -> Any:
        if forward_running.get() is owner:
            return hook(*args, **options)
        return None  # which changes nothing

    return acting
