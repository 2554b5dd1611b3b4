"""A run with a higher token limit goes on where a shorter one was cut.

Greedy decoding writes the same tokens whatever the limit is. So finished answers are taken over as they are, and those
that were cut are continued behind their last token, which costs only the tokens that they lack.
"""

from pathlib import Path
from typing import Any

from lib.errors import InputError
from lib.evaluation.records import Record
from lib.evaluation.store import read_run, records_in


def shorter_run(folder: Path, settings: dict) -> dict[str, Record]:
    """Return by key the records of a run that differs from `settings` in a lower token limit alone.

    Raises InputError for a folder without a run, other settings, a limit that is not lower, and answers that are drawn
    or end in an elicitation, where going on is not the same as never having been cut.
    """
    was = read_run(folder)
    if settings["temperature"] > 0 or settings["elicit"]:
        raise InputError("only greedy answers without elicitation can be continued: leave the shorter run out")
    if differing := [name for name in settings if name != "max_new_tokens" and was.get(name) != settings[name]]:
        name = differing[0]
        raise InputError(f"{folder} was made with {name} = {was.get(name)}, not {settings[name]}: it cannot go on")
    if was["max_new_tokens"] >= settings["max_new_tokens"]:
        raise InputError(f"{folder} allows {was['max_new_tokens']} new tokens already: ask for more")
    return {record["key"]: record for record in records_in(folder)}


def begun(tokenizer: Any, record: Record) -> tuple[int, ...]:
    """Return the tokens that a cut answer was written in; none, to start anew, where its text does not give them."""
    ids = tokenizer(record["response"], add_special_tokens=False)["input_ids"]
    same = len(ids) == record["completion_tokens"] and tokenizer.decode(ids) == record["response"]
    return tuple(ids) if same and "arm" not in record else ()
