"""What numbers over problems say.

`intervals` has the one rule for the interval of a number and how many problems it
takes, `rounding` how a number is told, `p_values` tests and their correction,
`prediction` how well a number tells which problems are answered right, and
`importance_weighting` the difference in accuracy between two prompts, from weighted
answers.
"""
