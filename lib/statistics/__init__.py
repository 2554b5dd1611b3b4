"""What numbers over problems say.

`intervals` has the one rule for the interval of a number and how many problems it
takes, `rounding` how a number is told, `p_values` tests and their correction, and
`prediction` how well a number tells which problems are answered right.
"""
