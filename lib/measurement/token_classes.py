"""Classify tokens as digits, operators, conjunctions or others.

The paper does not list its classes of tokens (Fig. 7). Here the first character of a
token that is not a space decides its class, so that the classes do not depend on the
tokenizer.
"""

import re
from collections.abc import Sequence

from lib.measurement.dataset_variables import OTHERS

CONJUNCTIONS = (
    "and|or|nor|but|yet|so|if|then|else|unless|until|when|whenever|while|whereas|where"
    "|because|since|although|though|whether|that|than|as|before|after|once|therefore"
    "|thus|hence|given|such"
)
# LaTeX commands that print an operator.
OPERATOR_COMMANDS = (
    "times|cdot|div|pm|mp|frac|dfrac|tfrac|sqrt|le|leq|ge|geq|lt|gt|ne|neq|equiv|approx"
    "|sim|in|notin|subset|cup|cap|sum|prod|int|lim|log|ln|sin|cos|tan|to|pmod|bmod|mod"
    "|mid|circ|oplus"
)
CLASS_PATTERNS = {
    "digits": re.compile(r"\d+"),
    "operators": re.compile(
        rf"\\(?:{OPERATOR_COMMANDS})(?![a-zA-Z])"
        r"|[-+*/=<>^!|%±×÷·∓≤≥≠≈√∑∏∫−]"
    ),
    "conjunctions": re.compile(rf"(?<![\\\w])(?:{CONJUNCTIONS})(?!\w)", re.IGNORECASE),
}
TOKEN_CLASSES = (*CLASS_PATTERNS, OTHERS)


def token_classes(text: str, offsets: Sequence[tuple[int, int]]) -> list[str]:
    """Return the class of each token, one of TOKEN_CLASSES; tokens of only spaces are
    "others".

    offsets: the (start, stop) of each token in the text, in characters.
    """
    by_character = [OTHERS] * len(text)
    for name, pattern in CLASS_PATTERNS.items():
        for match in pattern.finditer(text):
            length = match.end() - match.start()
            by_character[match.start() : match.end()] = [name] * length

    classes = []
    for start, stop in offsets:
        visible = [i for i in range(start, stop) if not text[i].isspace()]
        classes.append(by_character[visible[0]] if visible else OTHERS)
    return classes
