r"""Read what a response answers: its last closed `\boxed{...}`, and what is round it.

The grader never sees the problem. So a header such as "Problem:" before any box may
restate what was asked, and is left; behind a box it begins another problem, and what
follows is cut. Special tokens of a user's turn are the end of the answer anywhere.
"""

import re
from collections.abc import Iterator

_BRACE = re.compile(
    r"(?P<opens>(?P<box>\\(?:boxed|fbox)\s*)?\{)|\\.|(?P<closes>\})", re.DOTALL
)
# What chat templates put between turns, as text: <|im_end|>, <｜User｜>, [INST], </s>.
_TOKEN = re.compile(
    r"(?:<[|｜][A-Za-z_▁ ]{2,40}[|｜]?>|<[A-Za-z]{2,40}\|>|</?s>|<[be]os>"
    r"|<(?:start|end)_of_turn>|\[/?INST\])"
)
_USER_TURN = re.compile(
    rf"{_TOKEN.pattern}\s*(?:user|human)\b|<[|｜](?:User|user)[|｜]>|\[INST\]"
)
_ROLES = (
    "Problem|Question|Exercise|Example|Task|Instruction|Input|User|Human|System|Q"
    "|题目|问题|例题|例|练习|用户|问|第.{1,3}题|下一题"
)
_BEFORE_ROLE = (
    r"^[ \t>#*_(\[【-]*(?:\\[a-z]+\*?\{)?(?:\d+[.)] )?"
    r"(?:(?:the|an?|here|is|now|solve|new|next|another|this|following|similar) )*"
)
# A line of its own, or a line's beginning: "### Problem 2", "**Question:**", "Q: find".
_HEADER = re.compile(
    rf"{_BEFORE_ROLE}(?:{_ROLES})[ \t]*(?:[#(]?\d+[ \t)]*(?:[.)]|-[ \t])"
    r"|(?:[#(]?\d+|one|two|three)?[ \t*_#)\]】}]*(?:[:：]|$))",
    re.MULTILINE | re.IGNORECASE,
)
_BARE_ROLE = re.compile(r"^[ \t]*(?:assistant|model|system)[ \t]*:?$", re.MULTILINE)
_OWN_TURN = re.compile(rf"(?:\s|{_TOKEN.pattern}|assistant|model)*+")

_THOUGHTS = "think|thinking|thought|reasoning|reflection|scratchpad|seed:think"
_THOUGHT_BEGINS = re.compile(
    rf"<\|?(?:(?:start|begin)[_▁](?:of[_▁])?)?(?:{_THOUGHTS})\|?>|◁think▷|\[THINK\]"
    r"|<\|channel\|>analysis|<\|channel>thought|\Aanalysis(?=[A-Z])|<unused94>"
    r"|<\|im_start\|>think",
    re.IGNORECASE,
)
_THOUGHT_ENDS = re.compile(
    rf"<\|?(?:/|end[_▁](?:of[_▁])?)(?:{_THOUGHTS})\|?>|◁/think▷|\[/THINK\]|<\|answer\|>"
    r"|<\|channel\|>final *<\|message\|>|<channel\|>|assistantfinal|<unused95>"
    r"|<\|im_start\|>answer",
    re.IGNORECASE,
)


def read_answer(response: str) -> tuple[str | None, bool]:
    """Return the content of the last closed box of a response's answer, and whether
    another problem or turn follows, which is cut. It takes time linear in the response.
    """
    said = _without_thought(response)
    end = _end_of_answer(said)
    rest = _TOKEN.sub("", said[end:])
    return last_box(said[:end]), bool(rest.strip())


def _without_thought(response: str) -> str:
    """Return what follows the response's own thought, if there is one.

    Where no box follows it, or it never ends, the thought is searched, too. A thought
    behind a box belongs to another turn.
    """
    end = _THOUGHT_ENDS.search(response)
    begin = _THOUGHT_BEGINS.search(response)
    before = response[: begin.start()] if begin else ""
    if not (begin or end) or last_box(before) is not None:
        return response
    said = response[end.end() :] if end else response
    return response if last_box(said) is None else said


def _end_of_answer(said: str) -> int:
    """Return where another problem or turn begins, or the text ends.

    A response may begin with the tokens of its own turn, and with an empty box.
    """
    own_turn = _OWN_TURN.match(said)
    ends = [_USER_TURN.search(said, own_turn.end() if own_turn else 0)]
    filled = [end for begin, end in _boxes(said) if said[begin:end].strip()]
    if filled:
        behind = min(filled)
        ends += [mark.search(said, behind) for mark in (_HEADER, _BARE_ROLE, _TOKEN)]
    return min((match.start() for match in ends if match), default=len(said))


def last_box(text: str) -> str | None:
    r"""Return the content of the last closed `\boxed{...}` or `\fbox{...}`, if any.

    Of two nested boxes it is the inner one; a space may stand before the brace, and
    escaped braces do not count.
    """
    begin, end = max(_boxes(text), default=(-1, -1))
    return text[begin:end] if begin >= 0 else None


def _boxes(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the content of each closed box begins and ends, as they close."""
    # Where the content of each open brace begins, -1 where the brace is no box's.
    opened: list[int] = []
    for token in _BRACE.finditer(text):
        if token["opens"]:
            opened.append(token.end() if token["box"] else -1)
        elif token["closes"] and opened:
            begin = opened.pop()
            if begin >= 0:
                yield begin, token.start()
