"""What a run of a profile fetches, computes and needs of memory, before anything runs,
and why it would be refused.

    plan = make_plan(load_profile("laptop"))
    print(as_text(plan))
    for line in fetch(plan):  # weights onto this disk, so that a run needs no network
        print(line)

    tasks     what a run computes, and how much of it is stored
    sizes     how large a model is, what of it is here, and what memory a task needs
    plan      all of it: `make_plan`, the `Plan` that it gives, and its text

What cannot be had is refused before torch is imported, within seconds.
"""

from lib.plan.plan import Plan, as_text, fetch, make_plan, refuse, summary

__all__ = [
    "Plan",
    "as_text",
    "fetch",
    "make_plan",
    "refuse",
    "summary",
]
