r"""Grade answers to MATH problems, with the same grader under every condition.

    grade(r"\frac{1}{2}", r"... $\boxed{0.5}$.")  # Grade(correct=True, extracted="0.5")
    grade_many(pairs)                             # of (gold, response), in their order

Gold answers must be LaTeX. `Grade.method` names the rule that decided; docs/running.md
lists the answers that cannot be graded.

    extraction         extracts the last closed box, or says why there is none to grade
    worker_pool        `grade`, in processes with limited time and memory
    equality           compares two answers by typed rules, or else by `algebra`
    latex_spelling     rewrites an answer in one LaTeX spelling
    numbers_and_units  parses numbers, units and names of values
    words_and_lists    compares choices, names and other words; splits lists, points and
                       intervals
    algebra            compares expressions with math-verify
    authors_grader     the grader of the paper's authors
    answer_file        reads a file to grade
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "extraction": ["STATUSES", "Grade"],
        "worker_pool": ["grade", "grade_many"],
    },
)
