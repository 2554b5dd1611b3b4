"""The input of a model: problems, the text inserted into them, and the resulting token
ids.

    problems     the sources of problems, their validation, samples and names
    conditions   the names of conditions: the inserted text, its position, and the
                 layers that see it: `parse_condition`
    building     a problem and a condition as token ids with spans: `build_prompt`
    batches      run many prompts through a function in batches that fit the memory
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
