"""Build the input of a model: problems, the text inserted into them, and the resulting
token ids.

    problems    problems of an embedded, remote or local source, their samples, and
                their text under a condition: `load_problems`
    conditions  the names of conditions: the filler that is inserted, its length and
                position, and the layers that attend to it: `parse_condition`; the
                prompt's formats
    insertions  a filler repeated to a number of tokens, and positions for it
    building    a problem and a condition as the text that a model reads and as token
                ids with spans, between spaces or glued as in the authors' code:
                `build_prompt`
    batches     run many prompts in batches that fit into memory
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "building": ["Prompt", "build_prompt"],
        "conditions": ["CONDITIONS", "Condition", "Filler", "parse_condition"],
        "problems": ["Problem", "load_problems"],
    },
)
