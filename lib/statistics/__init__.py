"""Statistics of numbers over problems.

intervals             confidence intervals, p-values from them, Holm's correction
                      (`holm`), and the precision with which a number is printed
proportions           intervals of a proportion and of a difference of paired ones
importance_weighting  the difference in accuracy between two prompts from weighted
                      answers
"""
