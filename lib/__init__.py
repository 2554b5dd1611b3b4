"""Extraction and scoring for the notebooks that reproduce *Meaningless Tokens,
Meaningful Gains*.

Each folder's `__init__` says what it is for. A floor imports from its own modules and
from the floors above it, and from no other room of its own floor:

    errors statistics paths progress
    files attention
    arm
    prompts models grading
    profiles generation figures
    measurement evaluation
    claims
    plan
    report reproduce
    __main__

Three shapes pass between them: `measured`, one Dataset per model
(lib.measurement.variables); `answers`, a DataFrame with a row per completion
(lib.evaluation); `verdicts`, a Verdict per claim and model (lib.claims.verdict).

Where a change belongs:

- paths, files: where a file lies; how it is read and written, also row by row.
- statistics: an interval, a test or another number over problems.
- attention: how it is computed, with tokens hidden from layers; what tokens receive.
- arm: how ARM moves activations.
- prompts: problems, what is inserted into them where, and which layers see it.
- models: what a model's name means; how its weights are found, converted and loaded.
- grading: whether an answer is right.
- profiles: what a user may ask for, in a profile or on the command line.
- generation: how a model writes, in batches, by vllm or in workers.
- measurement: what is read off a network over all problems and models.
- evaluation: what answers and likelihoods are, how they are kept, what they show.
- claims: what is asked of all of it, and the rule that decides.
- figures: how a figure or a printed table looks.
- plan: what a run will fetch and compute, and what memory it needs.
- report: what the HTML page shows and draws.

CONTRIBUTING.md has an example of each.

Shapes are written with one alphabet: B batch, L layers asked for, H heads, K key heads,
T tokens, Q a block of queries, R sets of queries, D head width, F MLP width, N
problems. Layers and heads count from 1 wherever a person names them.
"""
