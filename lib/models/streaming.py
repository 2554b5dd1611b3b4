"""Many forwards through a model of which one layer at a time is in memory.

    loaded = load("Qwen/Qwen2.5-Math-7B", streamed=True)
    losses = loaded.sweep([functools.partial(loss, text) for text in texts])

All forwards wait before layer k; its weights are read, all pass, it is let go: weights
are read once a sweep, however many forwards there are. Each forward is a coroutine that
waits in a hook, so every family's own forward runs unchanged: masks, rotary embeddings,
windows, experts. The embedding and the output head wait in the same way.

A call may run several forwards, each of which costs a sweep unless it goes `behind`
another, and should keep no cache: that of all layers is what memory lacks.
"""

import contextlib
import contextvars
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from greenlet import getcurrent, greenlet

from lib.attention.function import attending
from lib.attention.turns import forward_running
from lib.models.stages import Stages

Result = TypeVar("Result")


class Stream:
    """A model whose weights are read where forwards need them."""

    def __init__(self, stages: Stages):
        self.stages = stages
        self._present: int | None = None
        # By the coroutine of a forward: that of the one which goes just before it.
        self._ahead: dict[greenlet, greenlet] = {}
        for number, module in enumerate(stages.modules):
            wait = self._waiting_for(number)
            module.register_forward_pre_hook(wait, prepend=True)

    def sweep(self, calls: Sequence[Callable[[], Result]]) -> list[Result]:
        """Return what each of the calls returns, each stage's weights read once."""
        results: dict[int, Any] = {}
        # By the stage that they wait for: which call it is, and its coroutine.
        waiting: dict[int, list[tuple[int, greenlet]]] = defaultdict(list)

        def run_until_it_waits(number: int, forward: greenlet) -> None:
            returned = forward.switch()
            if forward.dead:
                results[number] = returned
            else:
                waiting[returned].append((number, forward))

        # Inference mode and what `attending` writes into the config belong to all: the
        # first call that ends would else take them from the others.
        decoder = self.stages.model.get_decoder()
        with torch.inference_mode(), attending(decoder):
            try:
                for number, call in enumerate(calls):
                    run_until_it_waits(number, _coroutine(call))
                while any(waiting.values()):
                    # Those at a later stage wait for the ones behind them.
                    stage = min(number for number, ready in waiting.items() if ready)
                    with self._holding(stage):
                        while waiting[stage]:
                            run_until_it_waits(*waiting[stage].pop(0))
            finally:
                # Of what an error or a kill leaves, every `with` block ends.
                for forwards in waiting.values():
                    for _, forward in forwards:
                        forward.throw()
        return [results[number] for number in range(len(calls))]

    @contextlib.contextmanager
    def behind(self, first: Callable[[], object]) -> Iterator[None]:
        """Have another forward go through each stage just before the one of this
        block, in the same sweep.
        """
        current = getcurrent()
        ahead = greenlet(first)
        ahead.gr_context = contextvars.copy_context()
        self._ahead[current] = ahead
        try:
            yield
        finally:
            del self._ahead[current]
            ahead.throw()

    @contextlib.contextmanager
    def _holding(self, stage: int) -> Iterator[None]:
        """Have the weights of a stage in memory until the block ends."""
        self.stages.put(stage)
        self._present = stage
        try:
            yield
        finally:
            self._present = None
            self.stages.free(stage)

    def _waiting_for(self, stage: int) -> Callable:
        def wait(module, inputs) -> None:
            sweep = getcurrent().parent
            if sweep is None:
                raise RuntimeError("weights that are streamed are read in a sweep only")
            if self._present != stage:
                sweep.switch(stage)
            ahead = self._ahead.get(getcurrent())
            if ahead is not None and not ahead.dead:
                # Through this stage, until it waits for the next one.
                ahead.switch()

        return wait


def _coroutine(call: Callable[[], Any]) -> greenlet:
    """Return a coroutine of a call, with a context of its own."""

    def run() -> Any:
        forward_running.set(object())
        return call()

    forward = greenlet(run)
    forward.gr_context = contextvars.copy_context()
    return forward
