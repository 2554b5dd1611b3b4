"""Prompts in, completions out, through one small interface with two engines, here or in many processes."""
