"""Test every claim of the paper: compute its measure, and decide its verdict by a rule.

claim              the claims of data/claims.yaml: `load_claims`
network_measures   the measures of claims on attention and activations, functions that
                   return a value for each problem
answer_measures    the measures of claims on answers and likelihoods
decision_rule      the rule that turns these values into a verdict
judging            `gather` collects the evidence about each model, `judge` returns a
                   verdict for every claim and model, corrected by Holm's method, with
                   control networks
verdicts           the fields of a `Verdict`; lists of verdicts, their files, and the
                   table of the numbers behind them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "claim": ["load_claims"],
        "judging": ["gather", "judge"],
        "verdicts": [
            "models_of",
            "numbers_table",
            "statements",
            "verdict_table",
            "write_verdicts",
        ],
    },
)
