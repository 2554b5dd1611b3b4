"""Measure what inserted tokens do to a language model, and reproduce the figures and
claims of *Meaningless Tokens, Meaningful Gains* (arXiv 2510.01032).

>>> from lib import attention, models, prompts
>>> demo = models.load("demo", layers=1)
>>> prompt = prompts.build_prompt(demo.tokenizer, "What is $3 + 4$?", "mless")
>>> attention.received_attention(demo.model, prompt.input_ids).shape

The package has two halves. The first half measures language models, and does not depend
on the paper's claims. It works with problems of any source, and with decoders of
transformers (lib.attention.equivalence_check refuses those whose attention it cannot
reproduce):

- models: resolving a model's name; finding, converting and loading its weights.
- prompts: problems, the text inserted into them, and the layers that attend to it.
- attention: received attention, and hiding tokens in some layers.
- arm: ARM, the Activation Redistribution Module of the paper.
- generation: answering prompts in batches, with transformers or vLLM, also in workers.
- grading: whether an answer is right.
- statistics: intervals, tests and importance weighting, over problems.
- files, paths: reading and writing files, also row by row, and their locations.
- errors, progress: messages for a user's mistakes, and progress bars.

The second half reproduces the paper, in this order:

- profiles: the settings that a user can choose, in a profile or on the command line.
- measurement: attention and activations over all problems and models.
- evaluation: answers and log-likelihoods, their storage, and tables of them.
- claims: the claims, and the rule that decides each of them.
- figures: the appearance of figures and printed tables.
- plan: what a run will compute, and how much of it is stored.
- reproduce, __main__: running the notebooks; the command line, `python -m lib`.

Four data structures connect them: `measured`, one Dataset per model
(lib.measurement.dataset); `answers` and `scores`, DataFrames with a row per
completion, and per scored text and condition (lib.evaluation); and `verdicts`, a
Verdict per claim and model (lib.claims.verdicts). Each subpackage describes its modules
in its `__init__`, and CONTRIBUTING.md shows with an example where a change belongs.

Layers and heads count from 1, except inside the attention function. Shapes use these
letters: B batch, L requested layers, H heads, K key heads, T tokens, Q the queries of a
block, R groups of querying tokens, D head width, F MLP width, N items (problems, rows
or answers).

A subpackage imports only from the lines above it:

    errors statistics paths progress
    files attention
    arm
    models grading
    prompts
    profiles generation figures
    measurement evaluation
    claims
    plan
    reproduce
    __main__
"""
