"""Compute how a condition changes the distribution of the next token along a given
text: its entropy, and its Kullback-Leibler divergence from the distribution under
`none`, both in nats, as exact sums over the vocabulary.

They come from the same forward passes as the log-likelihood of the text. A filler that
makes a model branch (consider several continuations) raises the entropy of the text's
first tokens (arXiv 2605.11936).
"""

from collections.abc import Generator, Mapping

import torch

from lib.evaluation.log_likelihood import TextToScore, score_batch, sizes_of
from lib.evaluation.row_fields import WINDOWS
from lib.evaluation.score_run import grouped_keys, score_row
from lib.generation.key_value_caches import raise_if_nan
from lib.models.loading import Loaded
from lib.prompts.batches import in_batches

BASELINE = "none"
FIRST_TOKENS = max(window.stop for window in WINDOWS.values())


def entropies(log_p: torch.Tensor) -> torch.Tensor:
    """Return the entropies (T,) in nats of distributions given as log p (T,
    vocabulary).
    """
    return -(log_p.exp() * log_p).nansum(-1)


def divergences(log_p: torch.Tensor, baseline: torch.Tensor) -> torch.Tensor:
    """Return the Kullback-Leibler divergences KL(p || baseline), (T,) in nats, of
    distributions given as log p (T, vocabulary).
    """
    return (log_p.exp() * (log_p - baseline)).nansum(-1)


def window_means(values: torch.Tensor) -> list[float | None]:
    """Return the mean of a text's values (T,) in each of WINDOWS, rounded to 5
    decimals; None for a window that begins after the text ends.
    """
    values = values.cpu()  # so that only this waits for a GPU, and not every mean
    parts = [values[window] for window in WINDOWS.values()]
    return [round(float(part.mean()), 5) if len(part) else None for part in parts]


def next_token_rows(
    loaded: Loaded,
    missing: Mapping[str, TextToScore],
    wanted: Mapping[str, TextToScore],
) -> Generator[dict, None, None]:
    """Yield the row of scores.jsonl of each missing text, with its mean `entropy` and
    `divergence` in each of WINDOWS.

    wanted: all texts of the run, stored or missing. Those under `none` are the
    baselines; if a baseline is stored, its distributions are computed again, because
    rows do not contain them.
    """
    baselines = {
        (text.problem.id, text.target): key
        for key, text in wanted.items()
        if str(text.condition) == BASELINE
    }
    # The distributions under `none` of the current problems, as log p, by key.
    baseline_log_p: dict[str, torch.Tensor] = {}
    for keys in grouped_keys(missing, sizes_of(loaded).baselines):
        texts = {key: missing[key] for key in keys}
        needed = [baselines[text.problem.id, text.target] for text in texts.values()]
        if not baseline_log_p.keys() >= set(needed):
            # The group belongs to the next chunk or target.
            baseline_log_p.clear()
            baseline_texts = {key: wanted[key] for key in needed}
            for key, _, log_p in _distributions(loaded, baseline_texts):
                baseline_log_p[key] = log_p
        for key, nats, log_p in _distributions(loaded, texts):
            text = texts[key]
            baseline = baseline_log_p[baselines[text.problem.id, text.target]]
            row = score_row(loaded, key, text, nats)
            row["entropy"] = window_means(entropies(log_p))
            row["divergence"] = window_means(divergences(log_p, baseline))
            yield row


def _distributions(
    loaded: Loaded, texts: Mapping[str, TextToScore]
) -> Generator[tuple[str, float, torch.Tensor], None, None]:
    """Yield the key, the log-likelihood and the first FIRST_TOKENS distributions, as
    log p (T, vocabulary), of each of several texts under the same condition.
    """
    keys = list(texts)
    lengths = [len(texts[key].ids) for key in keys]

    def score(indices: list[int]) -> list[tuple[str, float, torch.Tensor]]:
        batch = {keys[index]: texts[keys[index]] for index in indices}
        results = []
        for key, (nats, logits) in zip(batch, score_batch(loaded, batch), strict=True):
            log_p = logits[:FIRST_TOKENS].log_softmax(-1)
            raise_if_nan(log_p)
            results.append((key, nats, log_p))
        return results

    for _, results in in_batches(lengths, score, tokens=sizes_of(loaded).tokens):
        yield from results
