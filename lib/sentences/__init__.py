"""Whatever the project says of its results in sentences, filled from numbers alone.

    conclusion      the paragraph that notebook 07 closes with
    findings        for README, report, notebooks 06 and 07: controls, graders, accuracy
    all_verdicts    how many claims hold, in how many models
    one_verdict     how one claim stands in one model
    measurements    under tables of attention and its causes, in notebooks 01 and 02
    noise           under the table of what asking again changes, in notebook 03
    numbers         what sentences share: words for counts, ranges

The first sentence of the conclusion is the README's headline.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "all_verdicts": ["claim_sentences", "inside", "lead", "listing", "verdicts_on"],
        "conclusion": ["conclude", "shares_drawn"],
        "findings": ["accuracies", "checks", "graders_apart"],
        "measurements": [
            "causes_sentence",
            "drawn_heads_sentence",
            "heads_sentence",
            "later_heads_sentence",
            "length_sentence",
        ],
        "noise": ["noise_sentences"],
    },
)
