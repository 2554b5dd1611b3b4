"""Extraction and scoring for the notebooks that reproduce *Meaningless Tokens, Meaningful Gains*.

A module imports only from modules above it:

    errors, paths          one-line errors; where things are
    problems               embedded set, MATH-500, any JSONL
    attention_function, attention
                           what every token receives, for any model of transformers
    hub_errors, checkpoints, hub, models
                           load a model, whole or only its first layers
    prompts, profiles      what is inserted where; what to run
    results, array_cache   keep every completion, and every measurement, once
    statistics             intervals, paired tests, power
    batches, dilution, causes
                           many prompts at once; lambda over all problems; what it is made of
    panels, measurement    the curves of the paper's figures; all measurements of a profile, as tables
    grading                is this answer right
    slot_cache, generation prompts in, completions out
    summary, evaluate      what completions show; complete, grade and keep them
    sample_files           completions that other programs kept
    figures, effect_figures
                           drawing alone: the paper's figures; what is measured beside them
    reproduce, __main__    papermill driver; command line

Shapes are written with one alphabet: B batch, L layers asked for, H heads, K key heads, T tokens, Q a block of
queries, R sets of queries, D head width, N problems. Layers and heads count from 1 wherever a person names them.
"""

import warnings

# A terminal and a stored notebook have no widgets; without this the warning carries this machine's paths into outputs.
warnings.filterwarnings("ignore", message="IProgress not found")
