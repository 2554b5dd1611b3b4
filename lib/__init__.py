"""Extraction and scoring for the notebooks that reproduce *Meaningless Tokens, Meaningful Gains*.

Each folder's `__init__` says what it is for. A floor imports from its own modules and from the floors above it, and
from no other room of its own floor:

    errors statistics paths progress options
    arm attention
    prompts models grading
    profiles generation figures
    measurement evaluation
    claims
    report reproduce
    __main__

Shapes are written with one alphabet: B batch, L layers asked for, H heads, K key heads, T tokens, Q a block of
queries, R sets of queries, D head width, F MLP width, N problems. Layers and heads count from 1 wherever a person
names them.
"""
