r"""Grade answers to MATH problems: one grader for every condition, the authors' too.

    grade(r"\frac{1}{2}", r"... $\boxed{0.5}$.")  # Grade(correct=True, extracted="0.5")
    grade_many(pairs)                             # of (gold, response), in their order

Gold answers must be LaTeX. `answer` reads the last closed box and what is round it, and
says where nothing can be compared. In processes whose time and memory `pool`
bounds, `equal` compares what `spelling` wrote in one way and `values`, `words` and
`lists` read, and asks `algebra`, which is math-verify, where typed rules end. `authors`
is the other grader, and `pairs` reads a file to grade. `Grade.method` says what
decided; docs/running.md says what is not read.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "answer": ["STATUSES", "Grade"],
        "pool": ["grade", "grade_many"],
    },
)
