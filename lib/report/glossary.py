"""Words of the page that a reader may not know, explained where they first stand."""

import re

from markupsafe import Markup, escape

TERMS = {
    "λ": "λ (lambda): the attention that the original tokens get with an insertion,"
    " divided by the same without it. Below 1 they get less.",
    "attention": "How strongly a model looks back at each earlier token while it reads"
    " or writes. What all tokens get from a later one sums to 100 %.",
    "original tokens": "The pieces of text of instruction and problem, as the model"
    " reads them; the inserted ones do not count.",
    "first layer": "A model passes the text through layers, one after another; the"
    " first one sees it as it was written.",
    "head": "Each layer looks back in several ways at once; each way is a head.",
    "nat": "The unit of log likelihood: one nat more makes a text 2.7 times as likely.",
    "points": "The difference of two shares in per cent: from 10 % to 12 % are two"
    " points.",
    "worked solution": "The solution that the data set gives with its problem. We ask"
    " how likely a model finds it, word for word.",
    "Untrained": "Networks of the same shape with random weights, that have learned"
    " nothing.",
    "Weighted answers": "Answers that are sampled once, and counted under each prompt"
    " by how likely that prompt makes them.",
    "interval": "The range in which the true value lies, at a confidence of 95 %.",
    "surely": "The whole interval (at a confidence of 95 %) lies on this side.",
}
WORDS = re.compile(
    r"\b("
    + "|".join(re.escape(term) for term in sorted(TERMS, key=len, reverse=True))
    + r")(s?)\b"
)


class Glossary:
    """Marks each term in texts once, where it stands first."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def marked(self, text: str) -> Markup:
        """Return a text as HTML, with what explains its terms for pointer and focus."""
        parts = []
        end = 0
        for match in WORDS.finditer(text):
            parts.append(escape(text[end : match.start()]))
            parts.append(self._term(match[0], match[1]))
            end = match.end()
        return Markup("").join([*parts, escape(text[end:])])

    def _term(self, word: str, term: str) -> Markup:
        if term in self.seen:
            return escape(word)
        self.seen.add(term)
        return Markup(
            '<dfn tabindex="0" data-term="{}" aria-description="{}">{}</dfn>'
        ).format(TERMS[term], TERMS[term], word)
