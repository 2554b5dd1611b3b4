"""How likely a model finds the gold solution, or the gold answer at once, under every
condition: nats per problem.

Teacher-forced: log p(text | prompt), summed over the text's tokens. The same problem
under two conditions differs by what the condition does to the model, so a few hundred
problems say what thousands of answers say about accuracy.
"""

import contextlib
import functools
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd
import torch

from lib import progress
from lib.arm.moving import installed
from lib.arm.settings import Arm
from lib.attention.function import hiding
from lib.errors import InputError
from lib.evaluation.run import arm_of, provenance, run_settings, versions
from lib.evaluation.store import SCORE_FIELDS, SCORES, opened
from lib.generation.prefill import prefill
from lib.models.loading import Loaded, load
from lib.paths import settings_key
from lib.profiles import Likelihood
from lib.prompts.batches import in_batches
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import Problem, load_problems, sampling_order
from lib.statistics import format_interval, interval

# what the gold answer follows where no reasoning is given
AT_ONCE = "The final answer is $\\boxed{"
# problems that go through all conditions before the next ones do, so that a run cut
# short is a sample
CHUNK = 32
# padded tokens at once: bounds the logits of a vocabulary of 150,000 to 1.2 GB
BATCH_TOKENS = 2048


class Scored(NamedTuple):
    """One text to be scored: its prompt, what stands between, and its tokens."""

    problem: Problem
    condition: Condition
    arm: Arm | None
    target: str  # solution or answer
    prompt: Prompt
    lead: list[int]  # tokens between prompt and text, which are not scored
    text: list[int]

    @property
    def ids(self) -> list[int]:
        return [*self.prompt.input_ids.tolist(), *self.lead, *self.text]


def likelihoods(
    asked: Likelihood, filler: Filler, seed: int, folder: Path
) -> pd.DataFrame:
    """Score what `folder` lacks, each kept at once, then return the run's rows, in the
    order of a growing sample.

    Raises InputError for a problem without a solution, a text without room in the
    context, and other settings there.
    """
    problems = sampling_order(load_problems(asked.problems), seed)[: asked.limit]
    for problem in problems:
        if not problem.solution.strip():
            raise InputError(
                f"{asked.problems}: {problem.id} has no solution, which likelihoods"
                " need of each problem"
            )
    settings = run_settings(asked.problems, filler, seed) | {
        "max_solution_tokens": asked.max_solution_tokens
    }
    keys = []
    with opened(folder, settings, versions(), file=SCORES) as store:
        for spec in asked.models:
            loaded = load(spec, dtype=asked.dtype)
            some = [
                problem
                for problem in problems
                if len(_ids(loaded, problem.solution)) <= asked.max_solution_tokens
            ]
            if left_out := len(problems) - len(some):
                print(
                    f"{left_out} problems have solutions of over"
                    f" {asked.max_solution_tokens} tokens",
                    file=sys.stderr,
                )
            wanted = _wanted(loaded, asked, filler, some)
            store.fill(loaded.name, "score", wanted, functools.partial(_rows, loaded))
            keys += wanted
    return pd.DataFrame([store.rows[key] for key in keys], columns=SCORE_FIELDS)


def as_text(scores: pd.DataFrame) -> str:
    """Return a line per model, target and condition: its mean in nats, and its
    difference to the first condition's.
    """
    lines = []
    for (target, model), table in scores.groupby(["target", "model"], sort=False):
        wide = table.pivot(index="problem_id", columns="condition", values="nats")[
            list(dict.fromkeys(table.condition))
        ]
        lines.append(f"{model}: nats per {target}, n = {len(wide)}")
        for name, values in wide.items():
            apart = (values - wide.iloc[:, 0]).dropna()
            found = interval(apart, apart.index)
            lines.append(
                f"  {name}: {values.mean():.2f},"
                f" {format_interval(found.estimate, found.low, found.high, '+')}"
            )
    return "\n".join(lines)


def _ids(loaded: Loaded, text: str) -> list[int]:
    return cast(Any, loaded.tokenizer)(text.strip(), add_special_tokens=False)[
        "input_ids"
    ]


def _wanted(
    loaded: Loaded, asked: Likelihood, filler: Filler, problems: Sequence[Problem]
) -> dict[str, Scored]:
    """Return by key every text that this run asks for, problem by problem; raises
    InputError where one does not fit.
    """
    style = asked.format if cast(Any, loaded.tokenizer).chat_template else "plain"
    # Nothing else ends the question of a plain prompt.
    ended = (
        cast(Any, loaded.tokenizer)("\n", add_special_tokens=False)["input_ids"]
        if style == "plain"
        else []
    )
    texts = [("solution", name) for name in asked.conditions] + [
        ("answer", name) for name in asked.at_once
    ]
    made_by = {"model": loaded.name, "revision": loaded.revision, "dtype": loaded.dtype}
    found = {}
    for problem in problems:
        solution = _ids(loaded, problem.solution)
        for target, condition in texts:
            arm = arm_of(condition, loaded)
            prompt = build_prompt(
                loaded.tokenizer,
                problem.problem,
                condition,
                format=style,
                filler=filler,
            )
            thoughts = {
                None: [],
                "solution": solution,
                "dots": _ids(loaded, " .") * len(solution),
            }
            lead = [
                *ended,
                *thoughts[condition.thought],
                *(_ids(loaded, AT_ONCE) if target == "answer" else []),
            ]
            text = (
                solution if target == "solution" else _ids(loaded, problem.answer + "}")
            )
            one = Scored(problem, condition, arm, target, prompt, lead, text)
            if len(one.ids) > loaded.context:
                what = f"{problem.id}: prompt and {target} are {len(one.ids)} tokens"
                raise InputError(
                    f"{what}, {loaded.name} has room for {loaded.context}: lower"
                    " max_solution_tokens"
                )
            parts = {
                "prompt": prompt.input_ids.tolist(),
                "lead": lead,
                "text": text,
                "condition": str(condition),
            }
            parts |= {"problem": problem.id} | (
                {"arm": arm.model_dump()} if arm else {}
            )
            found[settings_key(**made_by, **parts)] = one
    return found


def _rows(
    loaded: Loaded, missing: dict[str, Scored], bar: progress.Bar
) -> Generator[dict, None, None]:
    """Yield the row of each missing text: chunk by chunk, in it by condition, those of
    like length in one forward.
    """
    places = {
        name: i
        for i, name in enumerate(
            dict.fromkeys(one.problem.id for one in missing.values())
        )
    }
    batches: dict[tuple, list[str]] = {}
    for key, one in missing.items():
        batches.setdefault(
            (places[one.problem.id] // CHUNK, one.target, one.condition), []
        ).append(key)
    for keys in batches.values():
        lengths = [len(missing[key].ids) for key in keys]

        def score(chosen: list[int], keys: list[str] = keys) -> list[float]:
            return log_likelihoods(loaded, {keys[i]: missing[keys[i]] for i in chosen})

        for chosen, nats in in_batches(lengths, score, tokens=BATCH_TOKENS):
            for key, found in zip([keys[i] for i in chosen], nats, strict=True):
                one = missing[key]
                row = provenance(loaded) | one.problem.model_dump() | one._asdict()
                row |= {
                    "key": key,
                    "condition": str(one.condition),
                    "problem_id": one.problem.id,
                    "prompt_tokens": len(one.prompt),
                }
                row |= {"tokens": len(one.text), "nats": round(found, 4)}
                yield {name: row[name] for name in SCORE_FIELDS}


@torch.inference_mode()
def log_likelihoods(loaded: Loaded, by_key: dict[str, Scored]) -> list[float]:
    """Return log p of each text of a batch of one condition; what all rows begin with
    is computed once.

    ARM changes the prompts' activations alone, as where texts are generated; the keys
    seed what it draws.
    """
    batch, model = list(by_key.values()), loaded.model
    arm, view = batch[0].arm, batch[0].condition.view
    spans = [one.prompt.spans["inserted"] for one in batch]
    sizes = [len(one.text) for one in batch]
    rows = [one.ids for one in batch]
    before = [
        range(len(ids) - size - 1, len(ids) - 1)
        for ids, size in zip(rows, sizes, strict=True)
    ]
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            hiding(
                model, spans, view.hidden(loaded.layers), view.silenced(loaded.layers)
            )
        )
        if arm:
            draws = [
                torch.Generator(model.device).manual_seed(int(key, 16) % 2**63)
                for key in by_key
            ]
            stack.enter_context(installed(model, **arm.model_dump())).generators = draws
        logits = prefill(
            model, rows, before, [len(one.prompt) for one in batch] if arm else None
        )[1]
    texts = torch.tensor(
        [token for one in batch for token in one.text], device=model.device
    )
    found = logits.gather(1, texts[:, None])[:, 0] - logits.logsumexp(-1)
    return [float(part.sum()) for part in found.double().cpu().split(sizes)]
