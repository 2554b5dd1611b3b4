r"""Grade answers to MATH problems, by one grader for every condition.

    grade(r"\frac{1}{2}", r"... $\boxed{0.5}$.")  # Grade(correct=True, extracted="0.5")
    grade_many(pairs)                             # of (gold, response), in their order

Gold answers must be LaTeX. `Grade.method` names the rule that decided; docs/running.md
lists the answers that cannot be graded.

    answer     extracts the last closed box, and gives a status if nothing can be graded
    pool       compares answers in processes with limited time and memory
    equal      compares two answers by typed rules, or else by `algebra`
    spelling   rewrites an answer in one LaTeX spelling
    values     parses numbers, units and names; `words` texts, `lists` lists and points
    algebra    compares expressions with math-verify
    authors    the grader of the paper's authors
    pairs      reads a file to grade
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "answer": ["STATUSES", "Grade"],
        "pool": ["grade", "grade_many"],
    },
)
