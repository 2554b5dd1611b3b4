"""Plan a run of a profile before anything runs: its downloads, computations and memory,
and the reasons why it would be refused.

    plan = make_plan(load_profile("laptop"))
    print(as_text(plan))
    for line in downloads(plan):  # each step of the loop downloads a model's weights
        print(line)

    tasks        the computations of a run, and how much of each is stored
    model_sizes  the size of a model, its part on this disk, and the memory of a task
    plan         `make_plan`, the `Plan` that it returns, its text, and `downloads`

An unavailable model or file is reported within seconds, before torch is imported.
"""

from lib.plan.plan import Plan, as_text, downloads, make_plan, require_memory, summary

__all__ = [
    "Plan",
    "as_text",
    "downloads",
    "make_plan",
    "require_memory",
    "summary",
]
