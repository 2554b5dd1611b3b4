"""Every claim of the paper: what it asks of what was measured, the rule that decides
it, and what is said of it.

`claim` has the claims, `evidence` what a profile knows, `network_measures` and
`answer_measures` the numbers that a claim asks for; `rule` decides, `judging` makes a
`verdict` of each, which `verdict_tables` keep. `words` say one, `summary` counts them,
`findings` tell what was found, and `conclusion` answers in one paragraph; `contrasts`
shows the likelihoods, and `points` the pass rates.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "claim": ["load_claims"],
        "conclusion": ["conclude", "shares_drawn"],
        "evidence": ["gather"],
        "judging": ["judge"],
        "verdict_tables": ["read_verdicts", "verdict_table", "write_verdicts"],
        "findings": ["accuracies", "checks", "graders_apart"],
        "summary": [
            "counts",
            "in_sentences",
            "inside",
            "lead",
            "listing",
            "verdicts_on",
        ],
    },
)
