"""Extraction and scoring for the notebooks that reproduce *Meaningless Tokens, Meaningful Gains*.

A module imports only from modules above it:

    errors, paths, profiles, problems, hub, models, prompts, attention, generation, grading,
    results, statistics, figures, evaluate, reproduce, __main__

Shapes are written with one alphabet: B batch, L layers asked for, H heads, T tokens, Q a block of
queries, D head width, N problems. Layers and heads count from 1 wherever a person names them.
"""
