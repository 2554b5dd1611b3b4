"""Whatever the project says of its results in sentences, filled from numbers alone.

`conclusion` is the paragraph that notebook 07 closes with, whose first sentence is the
README's headline; `findings` are what README and notebooks 06 and 07 say beside it;
`page_sections` open the sections of the HTML page. `one_verdict` says how a claim
stands, `all_verdicts` how all of them do. `measurements` and `noise` stand under tables
of the notebooks, and `numbers` are what sentences share.
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
