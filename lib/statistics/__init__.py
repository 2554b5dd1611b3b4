"""Statistics of numbers over problems.

intervals             confidence intervals, and the number of problems for 80 % power
proportions           intervals of a proportion and of a difference of paired ones
p_values              p-values from intervals, and Holm's correction
roc_auc               the area under the ROC curve
rounding              the precision with which a number is printed
importance_weighting  the difference in accuracy between two prompts from weighted
                      answers
"""
