"""Extraction and scoring for the notebooks that reproduce *Meaningless Tokens,
Meaningful Gains*.

Each folder's `__init__` says what it is for. A floor imports from its own modules and
from the floors above it, and from no other room of its own floor:

    errors statistics paths progress
    attention
    arm
    prompts models grading
    profiles generation figures
    measurement evaluation
    claims
    sentences
    plan
    report reproduce
    __main__

Three shapes pass between them: `measured`, one Dataset per model
(lib.measurement.plan); `answers`, a DataFrame with a row per completion
(lib.evaluation); `verdicts`, a Verdict per claim and model (lib.claims.verdict).

Where a change belongs: what a prompt holds, and which layers a condition hides its
inserted tokens from, prompts; how attention is computed, with tokens hidden from
layers, and what it gives each token, attention; how ARM moves activations, arm; what is
read off a network over all problems and models, measurement; what answers and
likelihoods are, evaluation; whether an answer is right, grading; what is asked of all
of it, and the rule that decides, claims; every sentence with numbers, also those that
the HTML page and notebooks print, sentences; what a run will take, plan; how a table
looks, figures; what the page shows and draws, report. CONTRIBUTING.md has an example of
each.

Shapes are written with one alphabet: B batch, L layers asked for, H heads, K key heads,
T tokens, Q a block of queries, R sets of queries, D head width, F MLP width, N
problems. Layers and heads count from 1 wherever a person names them.
"""
