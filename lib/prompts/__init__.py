"""What is put to a model: problems, what is inserted into them under each condition,
and the token ids that result.
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
