r"""Grade answers to MATH problems: one frozen grader for every arm of a comparison, the authors' beside it.

    grade(r"\frac{1}{2}", r"... $\boxed{0.5}$.")  # Grade(correct=True, extracted="0.5", method="decimal", ...)
    with GradingPool() as pool:  # grades beside generation
        futures = [pool.submit(gold, response) for gold, response in pairs]

Stages: cut a run-on, take the last closed box (`extract`), refuse a huge one (`stages`), one spelling
(`normalise`), typed rules (`rules`, `quantity`, `sequences`), and algebra by math-verify (`verify`,
`shortcuts`) in processes that are killed when they take too long (`worker`, `pool`). `Grade.method` says
what decided, `Grade.evaluated` whether the answer is worked out (`operations`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"pool": ["GradingPool", "grade", "grade_many"], "stages": ["STATUSES", "Grade"]},
)
