"""Every claim of the paper: what it asks of what was measured, and the rule that
decides it.

`claim` has the claims, `evidence` what a profile knows, `network_measures` and
`answer_measures` the numbers that a claim asks for; `rule` decides, `judging` makes a
`verdict` of each, which `verdict_tables` keep and count. `contrasts` shows the
likelihoods, and `points` the pass rates. What is said of it all is in `lib.sentences`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "claim": ["load_claims"],
        "evidence": ["gather"],
        "judging": ["judge"],
        "verdict_tables": [
            "counts",
            "read_verdicts",
            "verdict_table",
            "write_verdicts",
        ],
    },
)
