"""Every claim of the paper: what it asks of what was measured, the rule that decides it, and what is said of it."""


class Untestable(ValueError):
    """Says why what was measured cannot test a claim."""
