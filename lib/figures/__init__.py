"""Drawing alone: every function takes axes and arrays and returns artists; only `saving` and `pages` touch the disk."""
