"""Extraction and scoring for the notebooks that reproduce *Meaningless Tokens,
Meaningful Gains*.

Each subpackage describes itself in its `__init__`. A layer imports only from the layers
above it, and a subpackage never from another one of its layer:

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

Three data structures connect them: `measured`, one Dataset per model
(lib.measurement.variables); `answers`, a DataFrame with a row per completion
(lib.evaluation); and `verdicts`, a Verdict per claim and model (lib.claims.verdict).

What belongs into each subpackage:

- paths, files: the locations of files, and reading and writing them, also row by row.
- statistics: intervals, tests and other numbers over problems.
- attention: computing attention, with tokens hidden from layers; received attention.
- arm: the redistribution of activations.
- prompts: problems, the text inserted into them, and the layers that see it.
- models: resolving a model's name; finding, converting and loading its weights.
- grading: whether an answer is right.
- profiles: the settings that a user can choose, in a profile or on the command line.
- generation: writing answers in batches, with vLLM or in workers.
- measurement: measuring a network over all problems and models.
- evaluation: answers and likelihoods, their storage, and tables of them.
- claims: the claims, and the rule that decides each of them.
- figures: the appearance of figures and printed tables.
- plan: what a run will download and compute, and how much memory it needs.
- report: the content of the HTML page.

CONTRIBUTING.md has an example of each.

Shapes use one alphabet: B batch, L requested layers, H heads, K key heads, T tokens, Q
a block of queries, R sets of queries, D head width, F MLP width, N problems. Layers and
heads count from 1 wherever a person names them.
"""
