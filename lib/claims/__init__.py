"""Test every claim of the paper: its measure, and the rule that gives the verdict.

claim              the claims of data/claims.yaml: `load_claims`
network_measures   the measures of a claim on attention and activations: a value
                   for each problem
answer_measures    the measures on answers and likelihoods
decision_rule      the rule that turns these values into a verdict
judging            the evidence about each model, `gather`, and a verdict for every
                   claim and model with its controls, `judge`
verdicts           the fields of a `Verdict`; verdicts in files, tables and totals
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "claim": ["load_claims"],
        "judging": ["gather", "judge"],
        "verdicts": ["models_of", "verdict_table", "write_verdicts"],
    },
)
