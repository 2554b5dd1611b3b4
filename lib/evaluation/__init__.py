"""Answer problems under every condition, or score their solutions; keep what came out,
and say what it shows.

    answers = evaluation.answers(profile, "fillers")  # stored, or generated now
    answer_tables.summarise(answers)

`of_profile` has what a profile asks for, stored or computed now. `run` completes and
grades, by what `plan` asks for and through `graded`, or goes on from a `shorter` run.
`likelihood` scores solutions by `scoring`, and `draw_scores` answers that were drawn.
`store` keeps the `rows` of all, and `provenance` says what made them. `answer_tables`
says what answers show, `sample_tables` what several samples do, and `pass_rates` what
drawn answers do that were scored.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "of_profile": [
            "answers",
            "draws",
            "same_texts",
            "scores",
            "stored_answers",
            "stored_draws",
            "stored_file",
            "stored_scores",
        ],
    },
)
