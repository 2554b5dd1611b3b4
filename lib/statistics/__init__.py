"""What numbers over problems say.

`intervals` has the one rule for the interval of a number, `rounding` how it is told,
`p_values` tests and their correction, `power` how many problems decide, and
`prediction` how well a number tells which problems are answered right.
"""
