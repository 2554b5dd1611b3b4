"""Go on where a run with a lower token limit was cut.

Greedy decoding writes the same tokens whatever the limit is: finished answers are taken
over, cut ones continued behind their tokens.
"""

from pathlib import Path
from typing import Any

from lib.errors import InputError
from lib.evaluation.settings import read_run
from lib.evaluation.store import read


def rows_of_shorter(folder: Path, settings: dict) -> dict[str, dict]:
    """Return by key the rows of a run that differs from `settings` in a lower token
    limit alone, else raise InputError.

    Where answers are drawn or end in an elicitation, going on is not the same as never
    having been cut.
    """
    was = read_run(folder)
    if settings["temperature"] > 0 or settings["elicit"]:
        raise InputError(
            "only greedy answers without elicitation can be continued: leave the"
            " shorter run out"
        )
    for name in settings:
        if name != "max_new_tokens" and was.get(name) != settings[name]:
            raise InputError(
                f"{folder} was made with {name} = {was.get(name)}, not"
                f" {settings[name]}: it cannot go on"
            )
    if was["max_new_tokens"] >= settings["max_new_tokens"]:
        raise InputError(
            f"{folder} allows {was['max_new_tokens']} new tokens already: ask for more"
        )
    return {row["key"]: row for row in read(*folder.glob("completions*.jsonl"))}


def resumed_tokens(tokenizer: Any, row: dict) -> tuple[int, ...]:
    """Return the tokens that a cut answer was written in; none, to start anew, where
    its text does not give them.
    """
    ids = tokenizer(row["response"], add_special_tokens=False)["input_ids"]
    complete = len(ids) == row["completion_tokens"]
    if "arm" in row or not complete or tokenizer.decode(ids) != row["response"]:
        return ()
    return tuple(ids)
