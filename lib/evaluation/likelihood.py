"""How likely a model finds the gold solution, or the gold answer at once, under every condition: nats per problem.

    scores = likelihoods(profile.likelihood, filler, seed, folder)     # continues where an earlier run stopped

Teacher-forced: log p(text | prompt), summed over the text's tokens. The same problem under two conditions differs by
what the condition does to the model, so a few hundred problems say what thousands of answers say about accuracy.
"""

import contextlib
import functools
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd
import torch
from transformers import DynamicCache, PreTrainedModel

from lib import progress
from lib.arm.moving import installed
from lib.arm.settings import Arm
from lib.attention.function import hiding
from lib.errors import InputError
from lib.evaluation.run import about, arm_of, made_on, versions
from lib.evaluation.store import SCORE_FIELDS, SCORES, opened
from lib.generation.engine import logits_at
from lib.models.loading import Loaded, load
from lib.paths import settings_key
from lib.profiles import Likelihood
from lib.prompts.batches import in_batches
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler, View, parse_condition
from lib.prompts.problems import Problem, load_problems, sampling_order
from lib.statistics import interval, told

AT_ONCE = "The final answer is $\\boxed{"  # what the gold answer follows where no reasoning is given
CHUNK = 32  # problems that go through all conditions before the next ones do, so that a run cut short is a sample
BATCH_TOKENS = 2048  # padded tokens at once: bounds the logits of a vocabulary of 150,000 to 1.2 GB


class Scored(NamedTuple):
    """One text to be scored: its prompt, what stands between, and its tokens."""

    problem: Problem
    condition: str
    arm: Arm | None
    target: str  # solution or answer
    prompt: Prompt
    lead: list[int]  # tokens between prompt and text, which are not scored
    text: list[int]

    @property
    def ids(self) -> list[int]:
        return [*self.prompt.input_ids.tolist(), *self.lead, *self.text]


def likelihoods(asked: Likelihood, filler: Filler, seed: int, folder: Path) -> pd.DataFrame:
    """Score what `folder` lacks, each kept at once, then return the rows of this run in the problems' order.

    A row has model, condition, problem_id, target, tokens and nats. Problems come in the order of a growing stratified
    sample, all conditions of one chunk before the next chunk. Raises InputError for a problem without a solution, a
    text that does not fit into the context, and a folder that holds a run with other settings.
    """
    problems = sampling_order(load_problems(asked.problems), seed)[: asked.limit]
    for problem in problems:
        if not problem.solution.strip():
            raise InputError(f"{asked.problems}: {problem.id} has no solution, which likelihoods need of each problem")
    settings = about(asked.problems, filler, seed) | {"max_solution_tokens": asked.max_solution_tokens}
    keys = []
    with opened(folder, settings, versions("torch", "transformers", "tokenizers"), file=SCORES) as store:
        for spec in asked.models:
            loaded = load(spec, dtype=asked.dtype)
            some = [problem for problem in problems if len(_ids(loaded, problem.solution)) <= asked.max_solution_tokens]
            if left_out := len(problems) - len(some):
                print(f"{left_out} problems have solutions of over {asked.max_solution_tokens} tokens", file=sys.stderr)
            wanted = _wanted(loaded, asked, filler, some)
            chunk_of = {problem.id: place // CHUNK for place, problem in enumerate(some)}
            store.fill(loaded.name, "score", wanted, functools.partial(_rows, loaded, chunk_of))
            keys += wanted
    return pd.DataFrame([store.rows[key] for key in keys], columns=SCORE_FIELDS)


def as_text(scores: pd.DataFrame) -> str:
    """Return a line per model, target and condition: its mean in nats, and its difference to the first condition's."""
    lines = []
    for (target, model), table in scores.groupby(["target", "model"], sort=False):
        wide = table.pivot(index="problem_id", columns="condition", values="nats")[list(dict.fromkeys(table.condition))]
        lines.append(f"{model}: nats per {target}, n = {len(wide)}")
        for name, values in wide.items():
            apart = (values - wide.iloc[:, 0]).dropna()
            found = interval(apart, apart.index)
            lines.append(f"  {name}: {values.mean():.2f}, {told(found.estimate, found.low, found.high, '+')}")
    return "\n".join(lines)


def _wanted(loaded: Loaded, asked: Likelihood, filler: Filler, problems: Sequence[Problem]) -> dict[str, Scored]:
    """Return by key every text that this run asks for, problem by problem."""
    return dict(
        _scored(loaded, asked, filler, problem, condition, target)
        for problem in problems
        for target, conditions in (("solution", asked.conditions), ("answer", asked.at_once))
        for condition in conditions
    )


def _ids(loaded: Loaded, text: str) -> list[int]:
    return cast(Any, loaded.tokenizer)(text.strip(), add_special_tokens=False)["input_ids"]


def _scored(
    loaded: Loaded, asked: Likelihood, filler: Filler, problem: Problem, condition: str, target: str
) -> tuple[str, Scored]:
    """Return a text with its key; raises InputError where it does not fit into the context."""
    thought, arm = parse_condition(condition).thought, arm_of(condition, loaded)
    style = asked.format if cast(Any, loaded.tokenizer).chat_template else "plain"
    prompt = build_prompt(loaded.tokenizer, problem.problem, condition, format=style, filler=filler)
    solution = _ids(loaded, problem.solution)
    lead = _ids(loaded, AT_ONCE) if target == "answer" else []
    if thought:
        lead = [*(solution if thought == "solution" else _ids(loaded, " .") * len(solution)), *lead]
    if style == "plain":  # nothing else ends the question
        lead = [*cast(Any, loaded.tokenizer)("\n", add_special_tokens=False)["input_ids"], *lead]
    text = solution if target == "solution" else _ids(loaded, problem.answer + "}")
    found = Scored(problem, condition, arm, target, prompt, lead, text)
    if len(found.ids) > loaded.context:
        what = f"{problem.id}: prompt and {target} are {len(found.ids)} tokens"
        raise InputError(f"{what}, {loaded.name} has room for {loaded.context}: lower max_solution_tokens")
    parts: dict[str, Any] = {"prompt": prompt.input_ids.tolist(), "lead": lead, "text": text, "condition": condition}
    parts |= {"arm": arm.model_dump()} if arm else {}
    made_by = {"model": loaded.name, "revision": loaded.revision, "dtype": loaded.dtype}
    return settings_key(**made_by, problem=problem.id, **parts), found


def _rows(
    loaded: Loaded, chunk_of: dict[str, int], missing: dict[str, Scored], bar: progress.Bar
) -> Generator[dict, None, None]:
    """Yield the row of each missing text: chunk by chunk, in it by condition, those of like length in one forward."""
    batches: dict[tuple, list[str]] = {}
    for key, one in missing.items():
        batches.setdefault((chunk_of[one.problem.id], one.target, one.condition), []).append(key)
    for keys in batches.values():
        lengths = [len(missing[key].ids) for key in keys]

        def score(chosen: list[int], keys: list[str] = keys) -> list[float]:
            return log_likelihoods(loaded, {keys[i]: missing[keys[i]] for i in chosen})

        for chosen, nats in in_batches(lengths, score, tokens=BATCH_TOKENS):
            yield from (_row(loaded, keys[i], missing[keys[i]], found) for i, found in zip(chosen, nats, strict=True))


def _row(loaded: Loaded, key: str, scored: Scored, nats: float) -> dict:
    """Return a line of scores.jsonl: SCORE_FIELDS, in their order."""
    problem = scored.problem
    row = {"key": key, "model": loaded.name, "revision": loaded.revision} | made_on(loaded)
    row |= {"condition": scored.condition, "target": scored.target, "problem_id": problem.id}
    row |= {"level": problem.level, "subject": problem.subject, "prompt_tokens": len(scored.prompt)}
    row |= {"tokens": len(scored.text), "nats": round(nats, 4)}
    return {name: row[name] for name in SCORE_FIELDS}


@torch.inference_mode()
def log_likelihoods(loaded: Loaded, by_key: dict[str, Scored]) -> list[float]:
    """Return log p of each text of a batch of one condition; what all rows begin with is computed once.

    The keys seed what ARM draws.
    """
    batch = list(by_key.values())
    condition = parse_condition(batch[0].condition)
    rows, cache, model = [scored.ids for scored in batch], DynamicCache(), loaded.model
    shared = [] if condition.arm else os.path.commonprefix([s.ids[: -len(s.text) - 1] for s in batch])  # noqa: RUF071
    spans = [scored.prompt.spans["inserted"] for scored in batch]
    view = condition.view or View(1, None)
    rest = [torch.tensor(row[len(shared) :]) for row in rows]
    ids = torch.nn.utils.rnn.pad_sequence(rest, batch_first=True).to(model.device)
    # Logits are asked for at the places before the texts' tokens alone.
    before = [(i, n) for i, one in enumerate(batch) for n in range(len(rest[i]) - len(one.text) - 1, len(rest[i]) - 1)]
    row, at = torch.tensor(before, device=model.device).T
    given = {"past_key_values": cache, "use_cache": True}
    with hiding(model, spans, view.hidden(loaded.layers), view.silenced(loaded.layers)):
        if shared:
            model.get_decoder()(input_ids=torch.tensor([shared], device=model.device), **given)
            cache.batch_repeat_interleave(len(batch))
        with _arm_on_prompts(model, by_key, ids) as mask, logits_at(model, row, at):
            logits = model(input_ids=ids, attention_mask=mask, **given).logits[0].float()  # (N, vocabulary)
    found = logits.gather(1, ids[row, at + 1][:, None])[:, 0] - logits.logsumexp(-1)
    return torch.zeros(len(batch), dtype=torch.float64).index_add_(0, row.cpu(), found.double().cpu()).tolist()


@contextlib.contextmanager
def _arm_on_prompts(
    model: PreTrainedModel, by_key: dict[str, Scored], ids: torch.Tensor
) -> Iterator[torch.Tensor | None]:
    """Let ARM change the prompts' activations alone, as where texts are generated; yield the mask that says which."""
    arm = next(iter(by_key.values())).arm
    if arm is None:
        yield None
        return
    lengths = torch.tensor([len(scored.prompt) for scored in by_key.values()], device=ids.device)
    draws = [torch.Generator(ids.device).manual_seed(int(key, 16) % 2**63) for key in by_key]
    with installed(model, **arm.model_dump()) as hook, hook.rows(draws, prompt=True):
        # The project's attention asks for no mask: nobody else reads it.
        yield (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]).long()
