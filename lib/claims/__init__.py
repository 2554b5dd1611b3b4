"""Every claim of the paper: what it asks of what was measured, the rule that decides
it, and what is said of it.
"""

import lazy_loader

WORDS = ["accuracies", "cell_text", "counts", "found", "inside", "lead", "listing"]

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "claim": ["gather", "load_claims"],
        "verdict": ["judge", "read_verdicts", "write_verdicts"],
        "words": WORDS,
    },
)
