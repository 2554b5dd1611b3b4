"""How insertions change what the original tokens receive, what the inserted ones receive, and why layer 1 dilutes.

For a problem, a layer and a head, lambda is the mean received attention of the original tokens with the
insertion over the same without (the paper's W' = lambda W, Sec. 3). The first token is left out because it takes
most of the mass whatever follows, the last because no later token looks at it.

An insertion does two things at once: it adds terms to every later softmax, and it moves the problem away from
the instruction in rotary position. In layer 1, where nothing else has changed yet, positions separate the two:

    both      the prompt with the insertion
    terms     the same, but the instruction moves along: its distance to the problem stays what it was
    distance  the old tokens alone, the problem at the positions it has in `both`

All three are compared with the prompt as it was. The mean runs over later original tokens only, since inserted
ones exist in two of the four; lambda as the paper plots it also averages over what inserted tokens look at.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.attention.received import Observation, observe, observe_uniform, received_attention
from lib.errors import InputError
from lib.measurement.store import CAUSES, EMPTY, VARIABLES
from lib.models.loading import Loaded
from lib.prompts.batches import batch_tokens, in_batches, pad
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem

SPANS, QUERIES = ("original", "problem", "instruction"), ("all", "original")
BY_HEAD = [name for name in VARIABLES["attention"] if name != "lambda_by_span"]
AFFINE = [name for name in VARIABLES["causes"] if name != "cause_lambda"]
# The number of a problem, its prompt, received (L, H, 2, T) and values, L times (K, T, D).
Seen = tuple[int, Prompt, torch.Tensor, list[torch.Tensor]]


def measure_attention(
    loaded: Loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    layers: Sequence[int] | None = None,
    *,
    format: str = "plain",
    filler: Filler | None = None,
    observing: Callable[..., Observation] = observe,
) -> Iterator[xr.Dataset]:
    """Yield for each condition against none the variables `attention` over (condition, problem, layer, head).

    `layers` None: all that are loaded. Costs one forward up to the deepest layer per prompt. Raises InputError for a
    prompt too long for the model and for weights that give no finite attention, naming the problem.
    """
    layers = list(layers or range(1, loaded.layers + 1))

    def seen(condition: str) -> Iterator[Seen]:
        prompts = prompts_of(loaded, problems, condition, format, filler)
        text = f"{loaded.name}, attention under {condition} in {len(layers)} layers"
        return _seen(loaded, problems, prompts, layers, observing, text)

    without = {i: (_original(prompt, received)[:, :, 0], prompt.parts[1:-1]) for i, prompt, received, _ in seen("none")}
    for condition in conditions:
        shape = len(problems), len(layers), loaded.heads
        rows = np.full((len(BY_HEAD), *shape), np.nan, dtype="float32")
        by_span = np.full((*shape, len(SPANS), len(QUERIES)), np.nan, dtype="float32")
        for i, prompt, received, values in seen(condition):
            before, parts = without[i]
            rows[:, i], by_span[i] = (
                _summary(before, received, values, prompt),
                _by_span(before, parts, received, prompt),
            )
        dims = "condition", "problem", "layer", "head"
        found: dict[str, tuple] = {name: (dims, row[None]) for name, row in zip(BY_HEAD, rows, strict=True)}
        found["lambda_by_span"] = (*dims, "span", "query"), by_span[None]
        coords = {"condition": [condition], "problem": [problem.id for problem in problems], "layer": layers}
        coords |= {"head": range(1, loaded.heads + 1), "span": list(SPANS), "query": list(QUERIES)}
        yield xr.Dataset(found, coords)


def prompts_of(
    loaded: Loaded, problems: Sequence[Problem], condition: str, format: str, filler: Filler | None
) -> list[Prompt]:
    """Return the prompt of each problem under a condition."""
    return [build_prompt(loaded.tokenizer, p.problem, condition, format=format, filler=filler) for p in problems]


def _seen(
    loaded: Loaded,
    problems: Sequence[Problem],
    prompts: Sequence[Prompt],
    layers: Sequence[int],
    observing: Callable[..., Observation],
    text: str,
) -> Iterator[Seen]:
    """Yield what each prompt shows, the longest first.

    Of the two means of received attention the first is over all later tokens, the second over the later original ones.
    """

    def run(indices: list[int]) -> Observation:
        ids, lengths = pad([prompts[i].input_ids for i in indices])
        queries = torch.ones(len(indices), len(QUERIES), ids.shape[1], dtype=torch.bool)
        for row, i in enumerate(indices):
            queries[row, 1, prompts[i].spans["inserted"]] = False
        return observing(loaded.model, ids, layers, lengths, queries=queries, values=True)

    with progress.bar(text, len(prompts)) as bar:
        for indices, observation in in_batches([len(prompt) for prompt in prompts], run, batch_tokens(loaded.device)):
            received = observation.received
            for row, i in enumerate(indices):
                if not _original(prompts[i], received[row]).isfinite().all():
                    raise InputError(f"{loaded.name} gives NaN attention on problem {problems[i].id}")
                yield i, prompts[i], received[row], [layer[row].float() for layer in observation.values]
            bar.update(len(indices))


def _original(prompt: Prompt, received: torch.Tensor) -> torch.Tensor:
    """Return what the original tokens but the first and last receive, (L, H, 2, n)."""
    return received[..., prompt.original[1:-1]]


def _summary(before: torch.Tensor, received: torch.Tensor, values: list[torch.Tensor], prompt: Prompt) -> np.ndarray:
    """Return BY_HEAD (9, L, H) of one prompt from its original tokens without the insertion (L, H, n), and a `Seen`."""
    span, heads = prompt.spans["inserted"], received.shape[1]
    original, inserted = _original(prompt, received)[:, :, 0], received[:, :, 0, span]
    level, baseline = original.mean(-1), before.mean(-1)
    dispersion = torch.stack([_dispersion(v[:, span]).repeat_interleave(heads // len(v)) for v in values])
    found = {
        "lambda": level.double() / baseline.double(),
        "level": level,
        "baseline": baseline,
        "irregularity": (original.double() / before).log().std(-1, correction=0),
        "unevenness": original.std(-1, correction=0) / level,
        "mass": received[:, :, 1, span].sum(-1),
        "flatness": inserted.std(-1, correction=0) / inserted.mean(-1),
        "dispersion": dispersion,
        "portion": inserted.mean(-1) / level,
    }
    return torch.stack([found[name].double() for name in BY_HEAD]).cpu().numpy()


def _by_span(before: torch.Tensor, parts: list[str], received: torch.Tensor, prompt: Prompt) -> np.ndarray:
    """Return lambda (L, H, 3, 2) of the tokens of each of SPANS from each of QUERIES; NaN of a span without tokens."""
    after, found = _original(prompt, received).double(), []
    for span in SPANS:
        meant = torch.tensor([span in ("original", part) for part in parts])
        found.append(after[..., meant].mean(-1) / before[:, :, None, meant].double().mean(-1))
    return torch.stack(found, 2).cpu().numpy()


def _dispersion(values: torch.Tensor) -> torch.Tensor:
    """Return (K,): root mean square distance of the vectors (K, n, D) to their mean over that to the origin."""
    spread = (values - values.mean(1, keepdim=True)).square().sum((1, 2))
    return (spread / values.square().sum((1, 2))).sqrt()


def measure_causes(
    loaded: Loaded, problems: Sequence[Problem], *, format: str = "plain", filler: Filler | None = None
) -> xr.Dataset:
    """Measure the slashes in layer 1 in four forwards of one layer per problem.

    Returns the variables `causes` over (problem, head), lambda over (cause, problem, head); the others describe the
    outputs of the original tokens after the insertion.
    """
    before, after = (prompts_of(loaded, problems, name, format, filler) for name in ("none", "mless"))
    found = _causes(loaded, before, after)
    ratio = np.stack([found.pop(cause) for cause in CAUSES]) / found.pop("old")
    arrays: dict[str, tuple] = {name: (("problem", "head"), values) for name, values in found.items()}
    arrays["cause_lambda"] = ("cause", "problem", "head"), ratio
    coords = {"cause": list(CAUSES), "problem": [p.id for p in problems], "head": range(1, loaded.heads + 1)}
    return xr.Dataset(arrays, coords).astype("float32")


def _causes(loaded: Loaded, before: list[Prompt], after: list[Prompt]) -> dict[str, np.ndarray]:
    """Return arrays (N, H): the mean received attention `old` and under each of CAUSES, and AFFINE."""
    names = ("old", *CAUSES, *AFFINE)
    found = {name: np.full((len(before), loaded.heads), np.nan) for name in names}

    def run(indices: list[int]) -> dict[str, Observation]:
        old, new = [before[i] for i in indices], [after[i] for i in indices]
        spans = [prompt.spans["inserted"] for prompt in new]
        apart = [_moved(len(p), slice(s.start, None), s.stop - s.start) for p, s in zip(old, spans, strict=True)]
        close = [_moved(len(p), slice(s.start), s.stop - s.start) for p, s in zip(new, spans, strict=True)]
        return {
            "old": _forward(loaded, old),
            "both": _forward(loaded, new),
            "terms": _forward(loaded, new, close),
            "distance": _forward(loaded, old, apart),
        }

    with progress.bar(f"{loaded.name}, causes in layer 1", len(before)) as bar:
        for indices, seen in in_batches([len(prompt) for prompt in after], run, batch_tokens(loaded.device)):
            for row, i in enumerate(indices):
                for name, observation in seen.items():
                    original = (before if name in ("old", "distance") else after)[i].original
                    found[name][i] = observation.received[row, 0, :, 0, original[1:-1]].mean(-1).cpu().numpy()
                start, last = after[i].spans["inserted"].start, len(before[i])
                old = seen["old"].outputs[0][row, start:last]
                new = seen["both"].outputs[0][row, after[i].original[start:].to(loaded.device)]
                left = _left(loaded, after[i])
                for name, values in zip(AFFINE, _affine(old.float().cpu(), new.float().cpu(), left), strict=True):
                    found[name][i] = values.numpy()
            bar.update(len(indices))
    return found


def _moved(tokens: int, part: slice, shift: int) -> torch.Tensor:
    """Return the positions 0 to tokens - 1 with one part of them moved by `shift`."""
    positions = torch.arange(tokens)
    positions[part] += shift
    return positions


def _forward(loaded: Loaded, prompts: list[Prompt], positions: list[torch.Tensor] | None = None) -> Observation:
    """Observe layer 1 with original tokens as the only queries that count."""
    ids, lengths = pad([prompt.input_ids for prompt in prompts])
    queries = torch.zeros(len(prompts), 1, ids.shape[1], dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        queries[row, 0, prompt.original] = True
    given = None if positions is None else pad(positions)[0]
    return observe(loaded.model, ids, [1], lengths, positions=given, queries=queries, outputs=True)


def _left(loaded: Loaded, prompt: Prompt) -> torch.Tensor:
    """Return (H, n), what the softmax of each token after the insertion leaves for others than the inserted tokens."""
    span = prompt.spans["inserted"]
    later = prompt.original[span.start :]
    queries = torch.nn.functional.one_hot(later, len(prompt))[None].bool()  # (1, n, T): a set of its own for each
    seen = observe(loaded.model, prompt.input_ids, [1], queries=queries)
    return 1 - seen.received[0, 0, :, :, span].sum(-1).double().cpu()


def _affine(old: torch.Tensor, new: torch.Tensor, left: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the measures AFFINE, (H,) each, of head outputs (n, H, D) before and after, and `left` (H, n)."""
    old, new = old.transpose(0, 1).double(), new.transpose(0, 1).double()  # (H, n, D)
    about, wanted = old - old.mean(1, keepdim=True), new - new.mean(1, keepdim=True)
    total = wanted.square().sum((1, 2))
    scale = (about * wanted).sum((1, 2)) / about.square().sum((1, 2))  # least squares lambda
    affine = 1 - (wanted - scale[:, None, None] * about).square().sum((1, 2)) / total
    shifted = 1 - (wanted - about).square().sum((1, 2)) / total
    sigma = new - scale[:, None, None] * old
    direction, component = _first_share(sigma), _first_share(sigma - sigma.mean(1, keepdim=True))
    line = 1 - (1 - direction) * sigma.square().sum((1, 2)) / total
    taken, rest = 1 - left[..., None], new - left[..., None] * old
    value = (taken * rest).sum(1, keepdim=True) / taken.square().sum(1, keepdim=True)  # least squares v
    softmax = 1 - (rest - taken * value).square().sum((1, 2)) / total
    return shifted, affine, line, softmax, direction, component


def _first_share(vectors: torch.Tensor) -> torch.Tensor:
    """Return (H,): the share of the squares of vectors (H, n, D) along their best line through zero."""
    strengths = torch.linalg.svdvals(vectors).square()
    return strengths[:, 0] / strengths.sum(1)


def measure_tokens(
    loaded: Loaded,
    problem: str,
    conditions: Sequence[str],
    layers: Sequence[int],
    *,
    format: str = "plain",
    filler: Filler | None = None,
) -> xr.Dataset:
    """Return the variables `tokens` of one problem's text: what every token receives of every head of these layers."""
    found = []
    for condition in conditions:
        prompt = build_prompt(loaded.tokenizer, problem, condition, format=format, filler=filler)
        received = received_attention(loaded.model, prompt.input_ids, layers)[0].cpu().numpy()
        even = observe_uniform(loaded.model, prompt.input_ids, [1], torch.tensor([len(prompt)])).received[0, 0, 0, 0]
        texts = [prompt.text[start:stop] for start, stop in prompt.offsets]
        arrays = {"received": (("layer", "head", "token"), received), "even": ("token", even.cpu().numpy())}
        arrays |= {"text": ("token", np.array(texts, object)), "part": ("token", np.array(prompt.parts, object))}
        found.append(xr.Dataset(arrays, {"token": range(len(prompt))}))
    joined = xr.concat(found, "condition", join="outer", fill_value=EMPTY)
    return joined.assign_coords(condition=list(conditions), layer=layers, head=range(1, loaded.heads + 1))
