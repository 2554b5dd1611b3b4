"""Statistics of numbers over problems.

intervals             confidence intervals, p-values from them, Holm's correction, and
                      the number of problems for 80 % power
proportions           intervals of a proportion and of a difference of paired ones
roc_auc               the area under the ROC curve
rounding              the precision with which a number is printed
importance_weighting  the difference in accuracy between two prompts from weighted
                      answers
"""
