r"""Find what a response answers: its text up to a run-on, and the content of its last `\boxed{...}`; linear."""

import re

# A new problem on its own line, or a chat turn, that a model goes on to write after its answer.
_RUN_ON = re.compile(
    r"\n[ \t]*[#*]*[ \t]*(?:Problem|Question|Exercise|Instruction|User|Human)[ \t]*\d*[ \t]*[#*]*[ \t]*:"
    r"|<\|[A-Za-z_ ]{1,40}\|>"
)
_SPECIAL = re.compile(r"<\|[A-Za-z_ ]{1,40}\|>")
_HEADER = re.compile(r"(?:\s|<\|[A-Za-z_ ]{1,40}\|>|assistant)*+")
_BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)


def cut_run_on(response: str) -> tuple[str, bool]:
    """Return the response up to the first new problem or chat turn, and whether anything came after it.

    A header at the very start is the response's own; end-of-text tokens alone are no run-on.
    """
    marker = _RUN_ON.search(response, next(_HEADER.finditer(response)).end())
    if marker is None:
        return response, False
    rest = _SPECIAL.sub("", response[marker.start() :])
    return response[: marker.start()], bool(rest.strip())


def last_box(text: str) -> str | None:
    r"""Return the content of the last closed `\boxed{...}` or `\fbox{...}`, None when there is none.

    Of two nested boxes it is the inner one; a space may stand before the brace, and escaped braces do not count.
    """
    opened: list[tuple[int, bool]] = []
    last = (-1, -1)
    for token in _BRACES.finditer(text):
        found = token.group()
        if found == "}":
            start, is_box = opened.pop() if opened else (0, False)
            if is_box and start > last[0]:
                last = (start, token.start())
        elif found.endswith("{") and found != r"\{":
            opened.append((token.end(), found != "{"))
    return None if last[0] < 0 else text[last[0] : last[1]]
