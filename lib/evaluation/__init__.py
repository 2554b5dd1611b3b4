"""Answer problems under every condition, or score their solutions; store the results,
and tabulate them.

    answers = evaluation.answers(profile, "fillers")  # stored, or generated now
    answer_tables.summarise(answers)  # accuracy by model and condition

A *part* of a profile is one set of answers or scores under the same settings, such as
main, fillers or likelihood. A *draw* is an answer sampled to be weighted.

    profile_parts        the answers and scores of each part, stored or computed now

Answers:

    answer_run                 complete and grade the answers that a folder lacks:
                               `evaluate`
    engine_choice              the engine that generates answers if the settings say
                               auto
    planned_completions        every completion of a run, by its key
    row_keys                   what the keys of answers and scores share
    row_fields                 the fields of rows of answers and scores, and the table
                               of answers
    recorded_settings          the settings that decide a run's numbers, as run.json
                               records them

Scores, which are log-likelihoods of given texts:

    score_run                  score the texts whose scores a folder lacks
    reference_solution_scores  of reference solutions and gold answers:
                               `score_solutions`
    sampled_answer_scores      of draws, whose importance weights need them:
                               `score_draws`
    log_likelihood             log p of texts in a batch, teacher-forced
    next_token_entropy         with each score, the entropy of the next token

Tables:

    answer_tables              accuracy, effects, graders and token limits
    pass_at_k_tables           pass@k and diversity of several samples per problem
    likelihood_tables          changes of log-likelihood and next-token entropy, also
                               when layers or tokens do not see the insertion
    weighted_pass_rates        importance-weighted differences in accuracy, from
                               sampled answers with scores
    pass_rate_tables           these differences with the diagnostics of their weights
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "profile_parts": ["answers", "draws", "scores"],
    },
)
