"""Extraction and scoring for the notebooks that reproduce *Meaningless Tokens, Meaningful Gains*.

A module imports only from modules above it:

    errors, paths          one-line errors; where things are
    problems               embedded set, MATH-500, any JSONL
    attention_function, attention
                           what every token receives, for any model of transformers
    hub_errors, checkpoints, hub, models
                           load a model, whole or only its first layers
    activations, arm       what the first MLP's activation function gives; moving it without inserted tokens
    prompts, token_classes, profiles
                           what is inserted where; digits, operators, conjunctions; what to run
    results, array_cache   keep every completion, and every measurement, once
    statistics             intervals, paired tests, power
    batches, dilution, causes
                           many prompts at once; lambda over all problems; what it is made of
    redistribution         how insertions and ARM change activations, over all problems
    panels, measurement, activation_measurement
                           the curves of the paper's figures; all measurements of a profile, as tables
    grading                is this answer right
    slot_cache, generation prompts in, completions out
    summary, best_of, evaluate
                           what completions show; what choosing shows; complete, grade and keep them
    verdicts, evidence, claims
                           the rule that decides; what it is asked of; every claim of the paper
    sample_files           completions that other programs kept
    figures, effect_figures, activation_figures
                           drawing alone: the paper's figures; what is measured beside them
    reproduce, report, __main__
                           papermill driver; one HTML page; command line

Shapes are written with one alphabet: B batch, L layers asked for, H heads, K key heads, T tokens, Q a block of
queries, R sets of queries, D head width, F MLP width, N problems. Layers and heads count from 1 wherever a person
names them.
"""

import warnings

# A terminal and a stored notebook have no widgets; without this the warning carries this machine's paths into outputs.
warnings.filterwarnings("ignore", message="IProgress not found")
