"""What to run: a validated `Profile`, what may override it, where its results go.

    run = run_profile("demo", limit=3)  # of data/profiles, with an override
    check(run)                          # refuses what cannot run
    run.results, run.figures            # its folders

`sections` are what a profile is made of, `profile` reads one and says what of it cannot
run, `overrides` changes it and checks the parameters of notebooks, and `options` are
how a command line gives all of it.
"""

from lib.profiles.overrides import (
    Overrides,
    require_known_parameters,
    require_prompt,
    run_profile,
)
from lib.profiles.profile import (
    Profile,
    check,
    check_accuracy,
    load_profile,
    profile_names,
)
from lib.profiles.sections import (
    HALVES,
    PARTS,
    Accuracy,
    Attention,
    Figure,
    Likelihood,
    Panel,
    PassRates,
    Variation,
)

__all__ = [
    "HALVES",
    "PARTS",
    "Accuracy",
    "Attention",
    "Figure",
    "Likelihood",
    "Overrides",
    "Panel",
    "PassRates",
    "Profile",
    "Variation",
    "check",
    "check_accuracy",
    "load_profile",
    "profile_names",
    "require_known_parameters",
    "require_prompt",
    "run_profile",
]
