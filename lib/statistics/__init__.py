"""Statistics of numbers over problems.

intervals             confidence intervals, p-values from them, Holm's correction, and
                      the number of problems for 80 % power
proportions           intervals of a proportion and of a difference of paired ones
rounding              the precision with which a number is printed
importance_weighting  the difference in accuracy between two prompts from weighted
                      answers
"""
