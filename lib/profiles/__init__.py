"""The settings of a run: a validated `Profile`, its overrides, and its folders.

    run = profile_with_overrides("demo", limit=3)  # of data/profiles, with an override
    check(run)                          # refuses a profile that cannot run
    run.results, run.figures            # its folders

`sections` are the parts of a profile, `profile` reads and checks one, `overrides`
changes it and checks the parameters of notebooks, and `command_options`
has the options of the command line.
"""

from lib.profiles.overrides import (
    Overrides,
    profile_with_overrides,
    require_known_parameters,
    validate_prompt_parameters,
)
from lib.profiles.profile import (
    Profile,
    check,
    check_accuracy,
    load_profile,
    profile_names,
)
from lib.profiles.sections import (
    SAMPLING_CONDITIONS,
    VARIATIONS,
    Accuracy,
    Attention,
    Figure,
    Likelihood,
    Panel,
    PassRates,
    Variation,
)

__all__ = [
    "SAMPLING_CONDITIONS",
    "VARIATIONS",
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
    "profile_with_overrides",
    "require_known_parameters",
    "validate_prompt_parameters",
]
