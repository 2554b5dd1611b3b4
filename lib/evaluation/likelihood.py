"""How likely a model finds the gold solution, or the gold answer at once, under every condition: nats per problem.

    rows = likelihoods(profile.likelihood, filler, seed, folder)     # continues where an earlier run stopped

Teacher-forced: log p(text | prompt), summed over the text's tokens. The same problem under two conditions differs by
what the condition does to the model, so a few hundred problems say what thousands of answers say about accuracy.
"""

import contextlib
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd
import torch
from transformers import DynamicCache, PreTrainedModel

from lib import progress
from lib.arm.hook import installed
from lib.arm.settings import Arm
from lib.attention.visible import hiding
from lib.errors import InputError
from lib.evaluation.store import SCORES, Store
from lib.models.loading import Loaded, load
from lib.models.names import arm_for
from lib.paths import settings_key
from lib.profiles import Likelihood
from lib.prompts.batches import in_batches
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import INSTRUCTION, Filler, View, parse_condition
from lib.prompts.problems import Problem, describe, digest, load_problems, sampling_order

AT_ONCE = "The final answer is $\\boxed{"  # what the gold answer follows where no reasoning is given
CHUNK = 32  # problems that go through all conditions before the next ones do, so that a run cut short is a sample
BATCH_TOKENS = 2048  # padded tokens at once: bounds the logits of a vocabulary of 150,000 to 1.2 GB


class Scored(NamedTuple):
    """One text to be scored: its prompt, what stands between, and its tokens."""

    key: str
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


def likelihoods(asked: Likelihood, filler: Filler, seed: int, folder: Path) -> list[dict]:
    """Score what `folder` lacks, each kept at once, then return the rows of this run in the problems' order.

    A row has model, condition, problem_id, target, tokens and nats. Problems come in the order of a growing stratified
    sample, all conditions of one chunk before the next chunk. Raises InputError for a problem without a solution, a
    text that does not fit into the context, and a folder that holds a run with other settings.
    """
    problems = sampling_order(load_problems(asked.problems), seed)[: asked.limit]
    for problem in problems:
        if not problem.solution.strip():
            raise InputError(f"{asked.problems}: {problem.id} has no solution, which likelihoods need of each problem")
    store = Store(folder, _settings(asked, filler, seed, problems), _environment(), file=SCORES)
    rows = []
    for spec in asked.models:
        loaded = load(spec, dtype=asked.dtype)
        wanted = _wanted(loaded, asked, filler, problems)
        left_out = len(problems) - len({scored.problem.id for scored in wanted})
        if left_out:
            print(f"{left_out} problems have solutions of over {asked.max_solution_tokens} tokens", file=sys.stderr)
        _score_missing(loaded, asked, wanted, store)
        by_key = {row["key"]: row for row in store.records}
        rows += [by_key[scored.key] for scored in wanted]
    return rows


def as_text(rows: Sequence[dict]) -> str:
    """Return a line per target and condition: its mean in nats, and its difference to the first condition's."""
    lines = []
    for (target, model), table in pd.DataFrame(rows).groupby(["target", "model"], sort=False):
        wide = table.pivot(index="problem_id", columns="condition", values="nats")[list(dict.fromkeys(table.condition))]
        lines.append(f"{model}: nats per {target}, n = {len(wide)}")
        for name, values in wide.items():
            apart = (values - wide.iloc[:, 0]).dropna()
            error = apart.std() / len(apart) ** 0.5
            lines.append(f"  {name}: {values.mean():.2f}, {apart.mean():+.2f} (standard error {error:.2f})")
    return "\n".join(lines)


def _settings(asked: Likelihood, filler: Filler, seed: int, problems: Sequence[Problem]) -> dict:
    """Return what must not change between a run and its continuation; more models, problems or conditions may join."""
    everything = load_problems(asked.problems)
    return {
        "problems": describe(asked.problems),
        "problems_sha256": digest(everything),
        "instruction": INSTRUCTION,
        "filler": filler.model_dump(),
        "seed": seed,
        "max_solution_tokens": asked.max_solution_tokens,
    }


def _environment() -> dict:
    versions = {name: metadata.version(name) for name in ("torch", "transformers", "tokenizers")}
    return {"python": platform.python_version(), **versions}


def _wanted(loaded: Loaded, asked: Likelihood, filler: Filler, problems: Sequence[Problem]) -> list[Scored]:
    """Return every text that this run asks for, problem by problem."""
    return [
        _scored(loaded, asked, filler, problem, condition, target)
        for problem in problems
        if len(_ids(loaded, problem.solution)) <= asked.max_solution_tokens
        for target, conditions in (("solution", asked.conditions), ("answer", asked.at_once))
        for condition in conditions
    ]


def _ids(loaded: Loaded, text: str) -> list[int]:
    return cast(Any, loaded.tokenizer)(text.strip(), add_special_tokens=False)["input_ids"]


def _scored(loaded: Loaded, asked: Likelihood, filler: Filler, problem: Problem, condition: str, target: str) -> Scored:
    parsed = parse_condition(condition)
    style = asked.format if cast(Any, loaded.tokenizer).chat_template else "plain"
    prompt = build_prompt(loaded.tokenizer, problem.problem, condition, format=style, filler=filler)
    solution = _ids(loaded, problem.solution)
    lead = _ids(loaded, AT_ONCE) if target == "answer" else []
    if parsed.thought:
        lead = [*(solution if parsed.thought == "solution" else _ids(loaded, " .") * len(solution)), *lead]
    if style == "plain":  # nothing else ends the question
        lead = [*cast(Any, loaded.tokenizer)("\n", add_special_tokens=False)["input_ids"], *lead]
    text = solution if target == "solution" else _ids(loaded, problem.answer + "}")
    parts: dict[str, Any] = {"prompt": prompt.input_ids.tolist(), "lead": lead, "text": text, "condition": condition}
    arm = parsed.arm and parsed.arm.over(arm_for(loaded.spec, None)).model_copy(update={"statistics": "sequence"})
    if arm:
        parts["arm"] = arm.model_dump()
    key = settings_key(model=loaded.name, revision=loaded.revision, dtype=loaded.dtype, problem=problem.id, **parts)
    found = Scored(key, problem, condition, arm, target, prompt, lead, text)
    if len(found.ids) > loaded.context:
        raise InputError(
            f"{problem.id}: prompt and {target} are {len(found.ids)} tokens, {loaded.name} has room for "
            f"{loaded.context}: lower max_solution_tokens"
        )
    return found


def _score_missing(loaded: Loaded, asked: Likelihood, wanted: list[Scored], store: Store) -> None:
    missing = [scored for scored in wanted if scored.key not in store.done]
    chunk_of = {name: i // CHUNK for i, name in enumerate(dict.fromkeys(scored.problem.id for scored in wanted))}
    groups: dict[tuple, list[Scored]] = {}
    for scored in missing:
        groups.setdefault((chunk_of[scored.problem.id], scored.target, scored.condition), []).append(scored)
    with progress.bar(loaded.name, len(wanted), "score", len(wanted) - len(missing)) as bar:
        for group in groups.values():
            for scored, nats in _nats(loaded, group):
                store.append(cast(Any, _row(loaded, scored, nats)))
                bar.update()


def _row(loaded: Loaded, scored: Scored, nats: float) -> dict:
    cpu = f"CPU with {torch.backends.cpu.get_cpu_capability()}"
    return {
        "key": scored.key,
        "model": loaded.name,
        "revision": loaded.revision,
        "condition": scored.condition,
        "target": scored.target,
        "problem_id": scored.problem.id,
        "level": scored.problem.level,
        "subject": scored.problem.subject,
        "prompt_tokens": len(scored.prompt),
        "tokens": len(scored.text),
        "nats": round(nats, 4),
        "dtype": loaded.dtype,
        "processor": cpu if loaded.device == "cpu" else torch.cuda.get_device_name(loaded.device),
    }


def _nats(loaded: Loaded, group: list[Scored]) -> Iterator[tuple[Scored, float]]:
    """Yield each text of one condition with log p(text | prompt and lead), those of like length in one forward."""
    for indices, nats in in_batches(
        [len(scored.ids) for scored in group],
        lambda chosen: log_likelihoods(loaded, [group[i] for i in chosen]),
        tokens=BATCH_TOKENS,
    ):
        yield from zip([group[i] for i in indices], nats, strict=True)


@torch.inference_mode()
def log_likelihoods(loaded: Loaded, batch: Sequence[Scored]) -> list[float]:
    """Return log p of each text of a batch of one condition; what all rows begin with is computed once."""
    condition = parse_condition(batch[0].condition)
    rows, cache, model = [scored.ids for scored in batch], DynamicCache(), loaded.model
    shared = [] if condition.arm else os.path.commonprefix([s.ids[: -len(s.text) - 1] for s in batch])  # noqa: RUF071
    spans = [scored.prompt.spans["inserted"] for scored in batch]
    view = condition.view or View(1, None)
    rest = [torch.tensor(row[len(shared) :]) for row in rows]
    ids = torch.nn.utils.rnn.pad_sequence(rest, batch_first=True).to(model.device)
    given = {"past_key_values": cache, "use_cache": True}
    with hiding(model, spans, view.hidden(loaded.layers), view.silenced(loaded.layers)):
        if shared:
            model.get_decoder()(input_ids=torch.tensor([shared], device=model.device), **given)
            cache.batch_repeat_interleave(len(batch))
        with _arm_on_prompts(model, batch, ids) as mask, _head_before(model, rest, batch) as (row, at):
            logits = model(input_ids=ids, attention_mask=mask, **given).logits[0].float()  # (N, vocabulary)
    found = logits.gather(1, ids[row, at + 1][:, None])[:, 0] - logits.logsumexp(-1)
    return torch.zeros(len(batch), dtype=torch.float64).index_add_(0, row.cpu(), found.double().cpu()).tolist()


@contextlib.contextmanager
def _head_before(
    model: PreTrainedModel, rest: list[torch.Tensor], batch: Sequence[Scored]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Let a forward give logits (1, N, vocabulary) of the places before the texts' tokens; yield rows and places."""
    pairs = [
        (i, place)
        for i, (ids, scored) in enumerate(zip(rest, batch, strict=True))
        for place in range(len(ids) - len(scored.text) - 1, len(ids) - 1)
    ]
    row, at = torch.tensor(pairs, device=model.device).T
    head = cast(torch.nn.Module, model.get_output_embeddings())
    handle = head.register_forward_pre_hook(lambda _, given: (given[0][row, at][None],))
    try:
        yield row, at
    finally:
        handle.remove()


@contextlib.contextmanager
def _arm_on_prompts(
    model: PreTrainedModel, batch: Sequence[Scored], ids: torch.Tensor
) -> Iterator[torch.Tensor | None]:
    """Let ARM change the prompts' activations alone, as where texts are generated; yield the mask that says which."""
    arm = batch[0].arm
    if arm is None:
        yield None
        return
    lengths = torch.tensor([len(scored.prompt) for scored in batch], device=ids.device)
    draws = [torch.Generator(ids.device).manual_seed(int(scored.key, 16) % 2**63) for scored in batch]
    with installed(model, **arm.model_dump()) as hook, hook.rows(draws, prompt=True):
        # The project's attention asks for no mask: nobody else reads it.
        yield (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]).long()
