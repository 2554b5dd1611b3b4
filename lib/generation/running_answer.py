"""The state of an answer while it is generated: a `Row` decides which tokens the model
reads next, when the answer ends, and whether a box is elicited.
"""

from collections.abc import Generator

from lib.generation.engine_interface import (
    Completion,
    Request,
    Sampling,
    Writer,
    elicitation_tokens,
    processor_name,
)
from lib.grading.extraction import last_box


class Row:
    """A running request, whose answer is written token by token.

    After the prompt, the engine passes the tokens in `feed` to the model, chooses the
    next token, and adds it with `take`, until that returns True.
    """

    def __init__(self, writer: Writer, request: Request, sampling: Sampling):
        self.writer = writer
        self.request = request
        self.sampling = sampling
        self.written: list[int] = []
        self.end: list[int] = []  # the end token; empty if the answer has none
        self.elicited: list[int] = []  # the tokens generated after the elicitation
        self.writing = self._write()
        self.feed = next(self.writing)

    def take(self, token: int) -> bool:
        """Add the next token of the answer; return whether the answer is finished."""
        try:
            self.feed = self.writing.send(token)
        except StopIteration:
            return True
        return False

    def _write(self) -> Generator[list[int], int, None]:
        """Write the answer, then elicit a box if it has none.

        A coroutine: for each next token it yields the tokens that the model reads
        before, and receives the token that was chosen.
        """
        sampling = self.sampling
        stops = self.writer.stops
        feed: list[int] = []
        while not self.end and len(self.written) < sampling.max_new_tokens:
            token = yield feed
            if token in stops:
                self.end = [token]
                feed = []
            else:
                self.written.append(token)
                feed = [token]
        if not sampling.elicit or self._closes_a_box("", self.written):
            return

        feed = [*feed, *elicitation_tokens(self.writer.tokenizer, sampling)]
        while len(self.elicited) < sampling.elicit_tokens:
            token = yield feed
            if token in stops:
                return
            self.elicited.append(token)
            feed = [token]
            if self._closes_a_box(sampling.elicit, self.elicited):
                return

    def _text(self, ids: list[int]) -> str:
        """Return tokens as text, including special tokens: one of them may start
        another turn, whose text the grader must not read.
        """
        return self.writer.tokenizer.decode(ids)

    def _closes_a_box(self, before: str, tokens: list[int]) -> bool:
        """Return whether tokens after a text close a box."""
        return last_box(before + self._text(tokens)) is not None

    def completion(self) -> Completion:
        """Return the answer as text, with the elicitation if one was appended."""
        text = self._text(self.written)
        if self.elicited:
            text += self.sampling.elicit + self._text(self.elicited)
        return Completion(
            key=self.request.key,
            text=text,
            finish_reason="stop" if self.end else "length",
            prompt_tokens=len(self.request.input_ids),
            completion_tokens=len(self.written) + len(self.elicited),
            elicited=bool(self.elicited),
            token_ids=(*self.written, *self.end),
            processor=processor_name(self.writer.loaded.device),
        )
