"""What the documents say of a profile's fields, from the code that reads them."""

from collections.abc import Sequence

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docs.markdown import as_markdown
from lib.profiles import Accuracy, Attention, Likelihood, PassRates, Profile
from lib.prompts.conditions import Filler

LONGEST_DEFAULT = 20  # characters
SECTIONS: dict[str, type[BaseModel]] = {
    "": Profile,
    "filler.": Filler,
    "attention.": Attention,
    "accuracy.": Accuracy,
    "likelihood.": Likelihood,
    "pass_rates.": PassRates,
}
# What most profiles set; docs/profiles.md has all.
USUAL_FIELDS = (
    "attention.models",
    "attention.layers",
    "attention.problems",
    "attention.limit",
    "accuracy.conditions",
    "accuracy.max_new_tokens",
)


def profile_fields(only: Sequence[str] = ()) -> str:
    """Return the fields of a profile, or some of them.

    With their defaults and what they mean.
    """
    rows = []
    for section, model in SECTIONS.items():
        for name, info in model.model_fields.items():
            field = f"{section}{name}"
            is_section = f"{name}." in SECTIONS
            if not is_section and (not only or field in only):
                rows.append((f"`{field}`", default_text(info), info.description))
    return as_markdown(rows, ["field", "default", "meaning"])


def usual_fields() -> str:
    """Return the fields of a profile that most profiles set."""
    return profile_fields(USUAL_FIELDS)


def default_text(info: FieldInfo) -> str:
    """Return a field's default in YAML, cut to LONGEST_DEFAULT characters."""
    if info.is_required():
        return "required"
    text = yaml.safe_dump(info.default, default_flow_style=True, width=1000)
    text = text.removesuffix("...\n").strip()
    if len(text) > LONGEST_DEFAULT:
        text = f"{text[:LONGEST_DEFAULT]}…"
    return f"`{text}`"
