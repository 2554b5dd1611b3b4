"""Statistics of numbers over problems.

`intervals` has confidence intervals and the number of problems for a given power,
`rounding` the precision with which a number is printed, `p_values` tests and their
correction, `prediction` the area under the ROC curve, and `importance_weighting` the
difference in accuracy between two prompts from weighted answers.
"""
