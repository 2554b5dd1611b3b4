"""Answer problems under every condition, or score their solutions; store the results,
and tabulate them.

    answers = evaluation.answers(profile, "fillers")  # stored, or generated now
    answer_tables.summarise(answers)

    parts            a profile's answers and scores by part, stored or computed now
    run              complete and grade the answers that a folder lacks: `evaluate`
    engine           which engine answers where the settings say auto
    records          the settings that decide a run's numbers, the fields of its rows
    wanted           every completion of a run, with the common parts of keys and rows
    likelihood       score reference solutions and gold answers: `likelihoods`
    draw_scores      score sampled answers, whose weights need it: `score_draws`
    log_probability  log p of texts in batches
    answer_tables    tables of accuracy, effects, graders and log-likelihoods
    several_samples  tables of several samples per problem
    pass_rates       importance-weighted accuracy from sampled answers with scores
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "parts": ["answers", "draws", "scores"],
    },
)
