"""Prompts in, completions out, through one small interface with two engines."""

from lib.generation.engines import ENGINES, engine_class, make_engine
from lib.generation.interface import Completion, Request, Sampling

__all__ = ["ENGINES", "Completion", "Request", "Sampling", "engine_class", "make_engine"]
