"""Answer problems under every condition, or score their solutions; keep what came out,
and say what it shows.

    answers = evaluation.answers(profile, "fillers")  # stored, or generated now
    answer_tables.summarise(answers)

    parts            what a profile asks for, by part, as it is stored or computed now
    run              completes and grades what a folder lacks: `evaluate`
    records          settings that decide a run's numbers, and fields of its rows
    wanted           every completion that a run asks for; what all keys and rows share
    likelihood       how likely solutions are, or answers that were drawn: `likelihoods`
    log_probability  log p of texts in batches
    answer_tables    what answers and likelihoods show: accuracy, effects, graders, nats
    several_samples  what several samples of an answer show
    pass_rates       what drawn answers show that were scored
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "parts": ["answers", "draws", "scores"],
    },
)
