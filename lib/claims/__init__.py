"""Every claim of the paper: what it asks of what was measured, and the rule that
decides it.

    claim              the claims, as data/claims.yaml has them: `load_claims`
    network_measures   the numbers that a claim asks for, of measurements: a value for
                       each problem
    answer_measures    those of answers and likelihoods
    rule               the rule that decides on such numbers
    judging            what is known of each model, `gather`, and a verdict for every
                       claim and model, beside its controls, `judge`
    verdict            what a `Verdict` holds; verdicts in files, as a table and counted
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "claim": ["load_claims"],
        "judging": ["gather", "judge"],
        "verdict": ["models_of", "verdict_table", "write_verdicts"],
    },
)
