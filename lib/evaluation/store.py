"""For a while: what lies in lib.store."""

from lib.evaluation.records import COMPLETIONS, SCORES, SUMMARY
from lib.store import opened, read

__all__ = ["COMPLETIONS", "SCORES", "SUMMARY", "opened", "read"]
