"""Which tokens of a problem are digits, operators, conjunctions or others (the paper's Fig. 7).

The paper does not list its classes. Here they are read from the text, so that every tokenizer is judged by the
same characters: a token belongs to the class of the first character in it that is not a space.
"""

import re
from collections.abc import Sequence

CONJUNCTIONS = (
    "and|or|nor|but|yet|so|if|then|else|unless|until|when|whenever|while|whereas|where|because|since|although|though|"
    "whether|that|than|as|before|after|once|therefore|thus|hence|given|such"
)
# LaTeX commands stand beside the signs they print.
COMMANDS = (
    "times|cdot|div|pm|mp|frac|dfrac|tfrac|sqrt|le|leq|ge|geq|lt|gt|ne|neq|equiv|approx|sim|in|notin|subset|cup|cap|"
    "sum|prod|int|lim|log|ln|sin|cos|tan|to|pmod|bmod|mod|mid|circ|oplus"
)
CLASSES = {
    "digits": re.compile(r"\d+"),
    "operators": re.compile(rf"\\(?:{COMMANDS})(?![a-zA-Z])|[-+*/=<>^!|%±×÷·∓≤≥≠≈√∑∏∫−]"),
    "conjunctions": re.compile(rf"(?<![\\\w])(?:{CONJUNCTIONS})(?!\w)", re.IGNORECASE),
}
OTHERS = "others"
NAMES = (*CLASSES, OTHERS)


def token_classes(text: str, offsets: Sequence[tuple[int, int]]) -> list[str]:
    """Return the class, one of NAMES, of each token, given its (start, stop) in the text; spaces alone are others."""
    by_character = [OTHERS] * len(text)
    for name, pattern in CLASSES.items():
        for match in pattern.finditer(text):
            by_character[match.start() : match.end()] = [name] * (match.end() - match.start())
    found = []
    for start, stop in offsets:
        first = next((i for i in range(start, stop) if not text[i].isspace()), None)
        found.append(OTHERS if first is None else by_character[first])
    return found
