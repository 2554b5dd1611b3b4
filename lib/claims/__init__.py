"""Every claim of the paper: what it says, what it asks of the measurements, and the rule that decides it."""
