"""Statistics of numbers over problems.

intervals             confidence intervals, and the number of problems for a power
proportions           exact intervals of a share and of a difference of shares
p_values              p-values from intervals, and their correction
prediction            the area under the ROC curve
rounding              the precision with which a number is printed
importance_weighting  the difference in accuracy between two prompts from weighted
                      answers
"""
