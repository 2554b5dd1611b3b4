"""The numbers and words of the rule that decides a claim (verdicts.py), for those too that only tell of it."""

STATED = 0.05  # the rate of either wrong verdict that the simulations hold every rule to
NO_EFFECT = "no effect of that size"  # undecided, but the interval lies within a claim's equivalence margin
VERDICTS = ("supported", "contradicted", NO_EFFECT, "undecided")
UNJUDGED = ("too few", "not tested")  # what is said of a claim with fewer problems, or none
