"""What is put to a model: problems, what is inserted into them under each condition,
and the token ids that result.

    problems     where they come from, how they are checked, sampled and named
    conditions   the names of conditions, what each inserts where, and to which layers
                 it is shown: `parse_condition`
    building     a problem and a condition as token ids with spans: `build_prompt`
    batches      many prompts through a function, as many at once as memory allows
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
