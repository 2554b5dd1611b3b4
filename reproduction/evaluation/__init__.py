"""Answer problems under every condition, or score their solutions; store the results,
and tabulate them.

    answers = evaluation.answers(profile, "fillers")  # stored, or generated now
    answer_tables.summarise(answers)  # accuracy by model and condition

A *part* of a profile is one set of answers or scores under the same settings, such as
main, fillers or likelihood. A *draw* is an answer sampled to be weighted.

    profile_parts        the answers and scores of each part, stored or computed now

Rows:

    answer_run           complete and grade the answers that a folder lacks: `evaluate`,
                         which resumes a run by leaving out the stored keys
    rows                 the fields of rows, the table of answers, which of them are
                         truncated (`is_truncated`), and what run.json records

Scores, which are log-likelihoods of given texts:

    score_run            score the texts whose scores a folder lacks
    scored_texts         reference solutions and gold answers: `score_solutions`;
                         sampled answers, whose weights need scores: `score_draws`

Tables:

    answer_tables        accuracy, effects, graders, token limits, pass@k
    likelihood_tables    changes of log-likelihood, also when layers or tokens do not
                         see the insertion
    weighted_pass_rates  importance-weighted differences in accuracy, from sampled
                         answers with scores
    pass_rate_tables     these differences with the diagnostics of their weights
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "profile_parts": ["answers", "draws", "scores", "stored_scores"],
    },
)
