"""The settings of a run: a validated `Profile`, its overrides, and its folders.

run = profile_with_overrides("demo", limit=3)  # data/profiles/demo.yaml, changed
check(run)                                     # raises InputError if it cannot run
run.results, run.figures                       # its folders

sections             the sections of a profile
profile              reads a profile, and finds the folders of its run
preflight_checks     checks that a profile can run, before any weights are read
overrides            changes a profile, and checks the parameters of notebooks
command_options      the options of the command line
"""

from reproduction.profiles.overrides import (
    Overrides,
    profile_with_overrides,
    require_known_parameters,
    validate_prompt_parameters,
)
from reproduction.profiles.preflight_checks import check, check_accuracy
from reproduction.profiles.profile import Profile, load_profile, profile_names
from reproduction.profiles.sections import (
    SAMPLING_CONDITIONS,
    VARIATIONS,
    Accuracy,
    Attention,
    Figure,
    Likelihood,
    Panel,
    PassRates,
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
    "check",
    "check_accuracy",
    "load_profile",
    "profile_names",
    "profile_with_overrides",
    "require_known_parameters",
    "validate_prompt_parameters",
]
