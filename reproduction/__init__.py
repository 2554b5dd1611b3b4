"""Reproduce the figures and claims of *Meaningless Tokens, Meaningful Gains* (arXiv
2510.01032) with the instruments of the package `lib`.

- paths: the locations of notebooks, profiles, figures and results.
- profiles: the settings that a user can choose, in a profile or on the command line.
- measurement: attention and activations over all problems and models.
- row_keys: the keys of answers and scores, by which stored ones are found.
- evaluation: answers and log-likelihoods, their storage, and tables of them.
- claims: the claims, and the rule that decides each of them.
- figures: the appearance of figures and printed tables.
- plan: what a run will compute, and how much of it is stored.
- run, __main__: running the notebooks; the command line, `python -m reproduction`.

Four data structures connect them: `measured`, one Dataset per model
(reproduction.measurement.dataset); `answers` and `scores`, DataFrames with a row per
completion, and per scored text and condition (reproduction.evaluation); and `verdicts`,
a Verdict per claim and model (reproduction.claims.verdicts). Each subpackage describes
its modules in its `__init__`, and CONTRIBUTING.md shows with an example where a change
belongs.

A subpackage imports only from `lib` and from the lines above it:

    paths
    profiles figures
    measurement row_keys
    evaluation
    claims
    plan
    run
    __main__
"""
