r"""Whether the models have seen MATH-500: can they complete its problems?

A model that was trained on a problem may continue its beginning word by word. After the
first 60 % of each problem, Qwen2.5-Math-7B wrote the rest of 54.6 % of them exactly,
and Llama-3.1-8B of 3.8 % (arXiv 2507.10532). These rules were written before the first
continuation:

    python -m studies.contamination continue math500 --model demo --out runs/continued
    python -m studies.contamination compare runs/continued...

- The model gets the first 60 % of a problem by characters, up to the end of the last
  complete word, without instruction and chat template. It continues them greedily in
  float32.
- The rest is reproduced if the continuation begins with it, ignoring white space. A
  short rest can also be guessed, so this does not purely measure memory. Problems whose
  rest has more than LONGEST tokens are left out; n is the number of the others.
- ROUGE-L is the share of the rest's words that occur in the same order among the first
  words of the continuation, as many as the rest has.
- The change by slashes in the stored log p of the reference solution is compared
  between problems whose rest is reproduced and others, if there are ENOUGH of both.

Writes two tables to studies/results, without texts of problems: contamination.csv with
a row per model, and reproduced.csv with a row per problem, which says for each model
whether it reproduced the rest (1) or not (0).
"""

import argparse
import re
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pandas as pd

from lib.files.row_store import open_store, settings_key
from lib.files.text_files import read
from lib.generation.engine_interface import Request, Sampling, engine_class
from lib.models.loading import Loaded, load_without_weights
from lib.prompts.problems import Problem, digest_of, load_problems
from lib.statistics.intervals import ENOUGH, POINTS
from reproduction import evaluation
from reproduction.evaluation.answer_tables import mean_and_bounds
from reproduction.evaluation.rows import versions
from reproduction.profiles import load_profile
from studies.keeping import RESULTS, keep

GIVEN = 0.6
LONGEST = 96  # tokens
SPARE = 4  # tokens: in a continuation a rest may have more tokens than by itself
BATCH = 100
ROWS = "continuations.jsonl"


def parted(text: str) -> tuple[str, str]:
    """Return the first 60 % of a text, and the rest, which begins with white space.

    The first part is empty if the first word of the text is longer than that.
    """
    text = text.strip()
    whole_words = re.match(r".*\S(?=\s)", text[: int(GIVEN * len(text)) + 1], re.DOTALL)
    end = whole_words.end() if whole_words else 0
    return text[:end], text[end:]


def reproduces(continuation: str, rest: str) -> bool:
    """Return whether a continuation begins with the rest, ignoring white space."""
    return " ".join(continuation.split()).startswith(" ".join(rest.split()))


def rouge_l(continuation: str, rest: str) -> float:
    """Return the share of the rest's words, in %, that occur in the same order among
    the first words of a continuation, as many as the rest has.
    """
    words = rest.split()
    # The length of the longest common subsequence with each prefix of the rest.
    longest = [0] * (len(words) + 1)
    for written in continuation.split()[: len(words)]:
        by_match = [
            before + 1 if written == word else 0
            for before, word in zip(longest, words, strict=False)
        ]
        longest_so_far = [0]
        for without, match in zip(longest[1:], by_match, strict=True):
            longest_so_far.append(max(longest_so_far[-1], without, match))
        longest = longest_so_far
    return POINTS * longest[-1] / len(words)


def model_identity(loaded: Loaded) -> dict[str, str]:
    """Return the name, revision and dtype of a model, as in rows and keys."""
    return {
        "model": loaded.name,
        "revision": loaded.revision,
        "dtype": loaded.dtype,
    }


def continued(spec: str, source: str, folder: Path) -> None:
    """Generate a model's continuations of the problems that its folder lacks."""
    loaded = load_without_weights(spec, dtype="float32")
    wanted = {
        settings_key(**model_identity(loaded), problem=problem.id, given=GIVEN): problem
        for problem in load_problems(source)
        if 0 < length_of_rest(loaded, problem) <= LONGEST
    }
    settings = {"problems_sha256": digest_of(source), "given": GIVEN}

    def make(missing: dict[str, Problem]) -> Generator[dict, None, None]:
        return continuations(loaded, missing)

    with open_store(folder, settings, versions(), file=ROWS) as store:
        store.fill(wanted, make, loaded.name, "continuation")


def length_of_rest(loaded: Loaded, problem: Problem) -> int:
    """Return the number of tokens of a problem's rest; 0 if nothing is given."""
    given, rest = parted(problem.problem)
    return len(loaded.tokenizer.tokenize(rest)) if given else 0


def continuations(
    loaded: Loaded, problems: dict[str, Problem]
) -> Generator[dict, None, None]:
    """Yield a row per problem by its key, short rests first, without any text."""
    engine_of = engine_class("transformers")
    engine = engine_of(engine_of.load(loaded), BATCH)
    lengths = {key: length_of_rest(loaded, one) for key, one in problems.items()}
    keys = sorted(problems, key=lambda key: lengths[key])
    begins = [*range(0, len(keys), BATCH), len(keys)]
    for begin, end in pairwise(begins):
        requests = []
        for key in keys[begin:end]:
            given, _ = parted(problems[key].problem)
            requests.append(Request(key, loaded.tokenizer(given)["input_ids"]))
        sampling = Sampling(max_new_tokens=lengths[keys[end - 1]] + SPARE)
        for completion in engine.complete(requests, sampling):
            problem = problems[completion.key]
            _, rest = parted(problem.problem)
            yield {
                "key": completion.key,
                **model_identity(loaded),
                "problem_id": problem.id,
                "reproduced": reproduces(completion.text, rest),
                "rouge_l": rouge_l(completion.text, rest),
                "processor": completion.processor,
            }


def compared(rows: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model: the share of rests that it reproduces, in %, and the
    change by slashes in the log p of the solutions of such problems and of others, in
    nats.

    scores: those of reference solutions under none and mless.
    """
    table = []
    for model, of_model in rows.groupby("model", sort=False):
        by_problem = of_model.set_index("problem_id")
        is_reproduced = by_problem["reproduced"].astype(bool)
        row: dict[str, object] = {"model": model, "n": len(of_model)}
        row["reproduced"] = int(is_reproduced.sum())
        ends = ["share", "low", "high"]
        row |= mean_and_bounds(ends, POINTS * is_reproduced.astype(float))
        row["rouge_l"] = by_problem["rouge_l"].mean()

        nats = scores[scores["model"] == model].pivot(
            index="problem_id", columns="condition", values="nats"
        )
        change = (nats["mless"] - nats["none"]).astype(float).dropna()
        of_problem = is_reproduced.reindex(change.index)
        groups = {
            "seen": change[of_problem.eq(True)],
            "others": change[of_problem.eq(False)],
        }
        are_enough = min(map(len, groups.values())) >= ENOUGH
        for name, values in groups.items():
            row[f"n_{name}"] = len(values)
            ends = [f"slashes_{name}{end}" for end in ("", "_low", "_high")]
            row |= dict.fromkeys(ends)
            if are_enough:
                row |= mean_and_bounds(ends, values, "mean")
        table.append(row)
    return pd.DataFrame(table)


def main() -> None:
    """Continue problems, or write the tables of such runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    to_continue = commands.add_parser("continue")
    to_continue.add_argument("source", help="math500, or a JSONL file in its schema")
    to_continue.add_argument("--model", required=True)
    to_continue.add_argument("--out", required=True, type=Path)
    commands.add_parser("compare").add_argument("folders", nargs="+", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "continue":
        continued(arguments.model, arguments.source, arguments.out)
        return
    rows = pd.DataFrame(read(*[folder / ROWS for folder in arguments.folders]))
    every = evaluation.scores(load_profile("families"))
    table = compared(rows, every[every["target"] == "solution"])
    keep(RESULTS / "contamination.csv", table)
    flags = rows.pivot(index="problem_id", columns="model", values="reproduced")
    flags.astype("Int8").to_csv(RESULTS / "reproduced.csv")


if __name__ == "__main__":
    main()
