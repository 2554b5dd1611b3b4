r"""Measure what inserted tokens do to a language model: the attention that each token
receives, the log-likelihood of a text, and whether answers are right.

This package is the instrument, for decoders of transformers and problems of any source.
It knows no paper, profile or figure; the package `reproduction` beside it is the study
of *Meaningless Tokens, Meaningful Gains* (arXiv 2510.01032) that uses it.

The attention that each token receives from later ones in every layer (B, L, H, T; NaN
for the last token), under a filler of your own. `prompt.texts` has the tokens' texts:

>>> from lib import attention, generation, grading, models, prompts
>>> demo = models.load("demo")  # also a hub id, a folder or a .gguf file
>>> own = prompts.Filler(mless="ok", length=20)
>>> problem = "What is $3 + 4$?"
>>> prompt = prompts.build_prompt(demo.tokenizer, problem, "mless", filler=own)
>>> attention.received_attention(demo.model, prompt.input_ids).shape
torch.Size([1, 30, 9, 45])

The log-likelihood of a text in nats, also with the filler hidden from layer 1:

>>> print(f"{generation.log_likelihood(demo, prompt, ' It is 7.'):.2f}")
-9.27
>>> hidden = "hidden-from-layer-1"
>>> print(f"{generation.log_likelihood(demo, prompt, ' It is 7.', hidden):.2f}")
-9.26

Grades of responses to a problem with the gold answer 1/2:

>>> responses = [r"It is $\boxed{0.5}$.", r"$\boxed{2}$", "It is 0.5."]
>>> grades = grading.grade_many([(r"\frac{1}{2}", one) for one in responses])
>>> [(grade.correct, grade.method) for grade in grades]
[(True, 'decimal'), (False, 'decimal'), (False, 'no-box')]

Where to go next: `pydoc lib.NAME` describes the modules of a subpackage.
CONTRIBUTING.md shows where a filler, a condition or a model family belongs. `python -m
reproduction evaluate` and `likelihood` run many problems without any code.

- models: resolving a model's name; finding, converting and loading its weights.
- prompts: problems, the text inserted into them, and the layers that attend to it.
- attention: received attention, and hiding tokens in some layers.
- arm: ARM, the Activation Redistribution Module of the paper.
- generation: answering prompts in batches, also in workers; log-likelihoods.
- grading: whether an answer is right.
- statistics: intervals, tests and importance weighting, over problems.
- files, paths: reading and writing files, also row by row, and their locations.
- errors, progress: messages for a user's mistakes, and progress bars.

Layers and heads count from 1, except inside the attention function. Shapes use these
letters: B batch, L requested layers, H heads, K key heads, T tokens, Q the queries of a
block, R groups of querying tokens, D head width, F MLP width, N items (problems, rows
or answers). A subpackage imports only from the lines above it:

    errors statistics paths progress
    files attention
    arm
    models grading
    prompts
    generation
    __main__
"""
