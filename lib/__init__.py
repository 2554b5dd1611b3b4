"""Measure what inserted tokens do to a language model: the attention that each token
receives, the log-likelihood of a text, and whether answers are right.

This package is the instrument. It knows no paper, profile or figure; the package
`reproduction` beside it is the study of *Meaningless Tokens, Meaningful Gains* (arXiv
2510.01032) that uses it. It works with problems of any source, and with decoders of
transformers (lib.attention.equivalence_check refuses those whose attention it cannot
reproduce).

>>> from lib import attention, models, prompts
>>> demo = models.load("demo", layers=1)
>>> prompt = prompts.build_prompt(demo.tokenizer, "What is $3 + 4$?", "mless")
>>> attention.received_attention(demo.model, prompt.input_ids).shape

- models: resolving a model's name; finding, converting and loading its weights.
- prompts: problems, the text inserted into them, and the layers that attend to it.
- attention: received attention, and hiding tokens in some layers.
- arm: ARM, the Activation Redistribution Module of the paper.
- generation: answering prompts in batches, with transformers or vLLM, also in workers.
- grading: whether an answer is right.
- statistics: intervals, tests and importance weighting, over problems.
- files, paths: reading and writing files, also row by row, and their locations.
- errors, progress: messages for a user's mistakes, and progress bars.

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
    generation
    __main__
"""
