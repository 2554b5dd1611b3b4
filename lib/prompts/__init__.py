"""Build the input of a model: problems, the text inserted into them, and the resulting
token ids.

    problem_schema   the fields of a problem, and its text under a condition
    problem_sets     problems of an embedded, remote or local source: `load_problems`
    problem_samples  stratified samples of problems that grow with their size
    fillers          the texts that conditions insert, with their length and position
    conditions       the names of conditions: the inserted text, its position, and the
                     layers that attend to it: `parse_condition`
    rendering        the text that a model reads, plain or by its chat template
    insertions       a filler repeated to a number of tokens, and positions for it
    building         a problem and a condition as token ids with spans: `build_prompt`
    batches          run many prompts in batches that fit into memory
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "building": ["Prompt", "build_prompt"],
        "conditions": ["Condition", "parse_condition"],
        "fillers": ["CONDITIONS", "Filler"],
        "problem_schema": ["Problem"],
        "problem_sets": ["load_problems"],
    },
)
