r"""Grade answers to MATH problems: one grader for every condition, the authors' too.

    grade(r"\frac{1}{2}", r"... $\boxed{0.5}$.")  # Grade(correct=True, extracted="0.5")
    grade_many(pairs)                             # of (gold, response), in their order
    submit(gold, response).result()               # beside generation

`answer` reads the last closed box up to a run-on, and `values` its number and units.
`equal` compares it by typed rules, else `algebra` does, whose time and memory `pool`
bounds; `authors` is the other grader, and `pairs` reads a file to grade. `Grade.method`
says what decided, `Grade.evaluated` whether the answer is worked out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "status": ["STATUSES", "Grade"],
        "pool": ["grade", "grade_many"],
    },
)
