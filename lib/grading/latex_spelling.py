r"""Rewrite an answer in one LaTeX spelling, which the other modules compare.

Gold answers must be LaTeX. Other answers may be in plain notation (`sqrt(2)`, `x**2`),
in any font, and in the layout of a page. `spelled` changes no value.
"""

import re
from unicodedata import normalize

# Superscripts, fractions and others, before NFKC replaces them by plain digits.
BEFORE_NFKC = r"""
([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)  =>  ^{\1}
([¼½¾⅐-⅞])  =>  <space>\1<space>
"""
# Signs and the LaTeX commands that replace them.
SIGN_COMMANDS = (
    "× times ÷ div · cdot ⋅ cdot ∙ cdot ∗ cdot π pi θ theta ∞ infty √ sqrt ≤ leq ≥ geq"
    " ≠ neq ∪ cup ∩ cap ∈ in ± pm ∓ mp ∅ emptyset ≈ approx ≃ approx ∴ therefore"
)
_CHARACTERS = {
    **{code: " " for code in (*range(0x20), *range(0x200B, 0x2010))},
    **{
        ord(sign): rf"\{name} "
        for sign, name in re.findall(r"(\S) (\w+)", SIGN_COMMANDS)
    },
    **dict.fromkeys(map(ord, "\u2212\u2010\u2012\u2013\u2014"), "-"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u2032"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d"), '"'),
    **{ord("°"): r"^\circ ", ord("。"): ".", ord("、"): ",", ord("∶"): ":"},
}

# Rules for Chinese: signs, scales, lists, the empty set and choices. Other words of
# scripts without Latin letters become text.
OTHER_SCRIPTS = r"""
负 ?(?=[\d\\])  =>  -
(?<=[\d}]) ?(\\text\{)? ?百  =>  <space>\\times 10^2 \1
(?<=[\d}]) ?(\\text\{)? ?千  =>  <space>\\times 10^3 \1
(?<=[\d}]) ?(\\text\{)? ?万  =>  <space>\\times 10^4 \1
(?<=[\d}]) ?(\\text\{)? ?亿  =>  <space>\\times 10^8 \1
以及|[和与及]  =>  <space>and<space>
或者?  =>  <space>or<space>
\\text\{ ?<none>[. ]*\}|<none>  =>  \\emptyset<space>
^ ?(\\text\{)? ?(?:答案)?(?:[是为选]|选[项择])? ?:? ?(?=\(?[A-Z]\)?(?:$|[^\w]))  =>  \1
([\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]+)(?![^{}]*\})  =>  \\text{\1}
"""
# Rules in the order in which they apply, PATTERN  =>  REPLACEMENT, with a comment above
# each group. MACROS has the abbreviations in angle brackets.
RULES = r"""
# Quotes and the marks of a formula round the whole say nothing; currency is a unit.
"([a-zA-Z][^"{}]*)"|``([a-zA-Z][^`'{}]*)''  =>  \1\2
^\s*(-?)\s*\\\$\s*(-?(?:[\d.,]|\\!|\{,\}|\s)+?)\.?$  =>  \1\2\\text{dollar}
^\s*\\[(\[]|\\[)\]]\s*$|\\?[$€£]  =>
# Groups of thousands, but ,\, separates values in brackets, and powers of ten.
(?<=\d)(?:,\s*\\!|\{,\}|\\,|,\\,(?!.*[])])|\\[!:;]|\\ |[~ ']|\{\\,\}|\{,\\!\}|\\thinspace)\s*(?=\d{3}(?!\d))  =>
(?<=\d)_(?=\d{3}(?!\d))  =>
(?<=\d) ?\\(?:text|mathrm) ?\{ ?([eE]) ?\} ?(?=[+-]?\d)  =>  \1
\\num\s*\{([^{}]*)\}  =>  \1
(\d+)⁄(\d+)  =>  \\frac{\1}{\2}
(\d\.\d+)[eE]([+-]?\d{1,3})<end>  =>  \1 \\times 10^{\2}
(?<![\w.\\}])(\d+)[eE](\d{1,3})(?![\w.]| ?_)  =>  \1 \\times 10^{\2}
(?<=\d) ?\\q?quad<end> ?(?=\d)  =>  ,<space>
# Spaces, sizes, colours and marks say nothing.
(?<!\\)((?:\\\\)*)(?:\\[,;:!> ]|~)  =>  \1<space>
\\(?:left|right|middle|[bB]igg?[lrm]?)<end>\s*\.?  =>  <space>
\\(?:text)?color(?:box)?\s*\{[^{}]*\}  =>
\\(?:q?quad|checkmark|(?:black)?square|Box|qed|hfill|therefore|because|implies)<end>  =>  <space>
(?<![\\a-zA-Z}])\{[\s.]*\}  =>
\s+  =>  <space>
# Dots of a decimal, of which an equation is an approximation; colons.
\.\.\.+|\\(?:[lc]dots|dots[bc]?)<end>  =>  \\dots<space>
\\(?:simeq|thickapprox)<end>|=(?= ?-?\d*\.\d+ ?\\dots)  =>  \\approx<space>
\{ ?: ?\}|\\colon<end>|\\text ?\{ ?: ?\}  =>  :
# Rows of a matrix end once; other aligned lines become a list.
\\cr<end>  =>  \\\\
\\\\(?: ?\\\\)+  =>  \\\\
(?:\\\\ ?)+(?=\\end)  =>
(?:\\\{ ?)?\\begin\{(?:<lines>)\}(?:\{[^{}]*\})?|\\end\{(?:<lines>)\}  =>  <space>
(?<!\\)&(?!.*\\end)  =>
,? ?\\\\ ?(?:\[[^\]]*\])?(?!.*\\end)  =>  ,<space>
\{([^{}]*)\\choose<end>([^{}]*)\}|^([^{}]*)\\choose<end>([^{}]*)$  =>  \\binom{\1\3}{\2\4}
\\[dt]binom<end>  =>  \\binom
(?<![\w})'])[_^] ?\{?(\w+)\}? ?(?:\\mathrm ?\{ ?C ?\}|C) ?_ ?\{?(\w+)\}?  =>  \\binom{\1}{\2}
# Texts and fonts; upright letters are units, but for i and e. An o above the line is a degree.
(?<=\d) ?\^ ?(?:o<end>|\{ ?o ?\}|\{ ?\\(?:text|mathrm) ?\{ ?o ?\} ?\})  =>  ^\\circ<space>
\^\{ ?(\w) ?\}  =>  ^\1
\\(?:text(?:bf|rm|it|sf|tt|sc|sl|md|normal|up)?|[mh]box|emph) ?\{  =>  \\text{
\\mathrm ?\{ ?(i|e) ?\}  =>  \1
(?<=\d) ?\^ ?(\{ ?)?\\text\{ ?(st|nd|rd|th) ?\}(?(1) ?\})  =>  \\text{\2}
\\(?:mathrm|mathsf) ?\{(?= ?[A-Za-z])([^{}]*)\}  =>  \\text{\1}
^ ?\\text\{ ?((?:[a-z] ?= ?)?(?:[][()\d., ;:/+-]|and|or|(?:is )?to|\\?%)+)\} ?$  =>  \1
(?i:\\text\{ ?(?:positive |plus )?infinity ?\})  =>  \\infty<space>
(?i:\\text\{ ?(?:negative|minus) infinity ?\})  =>  -\\infty<space>
^ ?\\text\{ ?([\d.,:]+) ?([A-Za-z. ]*)\} ?$  =>  \1\\text{\2}
(?i:\bmi(?:les?)? ?(?:/|per) ?h(?:ou)?r?<end>)  =>  mph
\\(?:<fonts>)<end>  =>  <space>
\\text\{ ?(?:negative|minus) ?\} ?(?=[\d.\\])  =>  -
# A remainder as \mod n, and p.m. as one word.
\(? ?\\text\{ ?\(? ?mod ?\} ?(\d+) ?\)?|\\pmod ?\{?([^{} ]+)\}?|\\bmod<end>|\( ?\\?mod ?(\d+) ?\)  =>  \\mod \1\2\3
([ {\d][ap])\.m<end>\.?  =>  \1m
# A base in brackets or words, 52_{(8)}, 52 (base 8), its number as text, and scales, which are powers of ten.
(?:\\text ?|(?<![a-zA-Z}]))\{ ?(\d[\dA-Za-z]*) ?\}(?= ?_ ?\{? ?\d)  =>  \1
_ ?(?:\{ ?)?\( ?(\d+) ?\)(?: ?\})?  =>  _{\1}
 ?_?[ {(]{0,3}(?:\\text\{)?[ (]{0,3}(?:in )?base[ }]{0,3}(\w+)[ )}]{0,4}  =>  _\1
(?<=[\d}]) ?(\\text\{)? ?hundred<end>  =>  <space>\\times 10^2 \1
(?<=[\d}]) ?(\\text\{)? ?thousand<end>  =>  <space>\\times 10^3 \1
(?<=[\d}]) ?(\\text\{)? ?million<end>  =>  <space>\\times 10^6 \1
(?<=[\d}]) ?(\\text\{)? ?billion<end>  =>  <space>\\times 10^9 \1
(?<=[\d}]) ?(\\text\{)? ?trillion<end>  =>  <space>\\times 10^{12} \1
(?<=.)\\text\{ *\}  =>
# All real numbers in words, but for single ones.
\\text\{ ?<reals><but> ?([^{}]*)\}  =>  \\mathbb{R}\\setminus \1
\\text\{ ?<reals>(?: such that)?[ .]*\}|(?<![\\a-zA-Z])<reals>$  =>  \\mathbb{R}
(?<![\\a-zA-Z])<reals><but>  =>  \\mathbb{R}\\setminus<space>
\\mathbb\{R\} ?[a-z]? ?\\text\{ ?<but> ?\}  =>  \\mathbb{R}\\setminus<space>
\\setminus *(?:[a-z] ?=)? ?(-?[\d./]+) ?$  =>  \\setminus \\{\1\\}
# Open ends of intervals as brackets that are turned away, ]2,3[, and sets that a condition builds.
(^ ?|= ?|\\(?:cup|cap|in|setminus)<end> ?)\]([^][,;]*[,;][^][,;]*[][)])  =>  \1(\2
([\[(][^][,;]*[,;][^][,;]*)\[ ?(?=$|\\)  =>  \1)
\\\{ ?[a-z] ?(?:\\in ?\\mathbb\{R\})? ?(?:\||:|\\mid|\\colon|\\vert) ?(.*)\\\}  =>  \1
\\varnothing<end>|\\\{ ?\\\}|(?i:\\text\{ ?(?:(?:the )?empty set|no (?:real )?solutions?)[. ]*\})  =>  \\emptyset<space>
# Plain notation.
\*\*  =>  ^
(?<=[\w)}]) ?\* ?(?=[\w\\(])  =>  <space>\\cdot<space>
<=|\\le(?:qslant)?<end>  =>  \\leq<space>
>=|\\ge(?:qslant)?<end>  =>  \\geq<space>
!=|\\ne<end>  =>  \\neq<space>
(?<![\\a-zA-Z])(sqrt|frac|exp|pi|theta|alpha|beta|log|ln|(?:arc)?(?:sin|cos|tan)|cot|sec|csc)<end>  =>  \\\1<space>
\\log ?_ ?(?:e<end>|\{ ?e ?\})  =>  \\ln<space>
# Roots and fractions with their arguments in braces, and periods under a line.
\\(?:[dtcs]|nice)frac<end>  =>  \\frac
\\sqrt ?(\[[^\]]*\])? ?<round>  =>  \\sqrt\1{\2}
\\sqrt ?(\d+)  =>  \\sqrt{\1}
\\(frac|sqrt)<end> ?<argument>  =>  \\\1{\2}
(\\frac ?<group>) ?<argument>  =>  \1{\2}
\\dot ?\{? ?(\d) ?\}?(\d*) ?\\dot ?\{? ?(\d) ?\}?  =>  \\overline{\1\2\3}
(?<=\d)\} ?\\(?:bar|overline) ?\{(?=\d)  =>
(?<=\.)(\d*) ?(?:\\(?:bar|dot) ?\{|\()(\d+)[)}]  =>  \1\\overline{\2}
\^ ?(?:\{ ?\\circ ?\}|\\circ<end>)|\\degrees?<end>  =>  ^\\circ<space>
# A plus sign that changes nothing, and what ends a sentence or a list.
(?:^|(?<=[(\[,=])) ?\+ ?  =>
(?:\\\\|[\s.,;:])+(?=\\\}$|$)  =>
^ ?\{(<nested>)\} ?$  =>  \1
\s+  =>  <space>
"""
MACROS = {
    "<end>": r"(?![a-zA-Z])",
    "<space>": " ",
    "<lines>": r"aligned|align\*?|split|gather(?:ed|\*)?|cases|array|equation\*?",
    "<fonts>": (
        r"(?:display|text|script)style|rm|bf|it|p?mb|bm|boldsymbol|ensuremath"
        r"|math(?:rm|sf|bf|it|tt)|u(?:nder)?line|boxed|fbox|large|Large|LARGE|huge"
    ),
    "<reals>": (
        r"(?i:(?:[a-z] (?:is|can be) )?(?:(?:the )?set of )?(?:(?:all|any|every|the) )?"
        r"real(?:(?:s| (?:numbers?|values?))(?: (?:of )?[a-z](?![a-z]))?| [a-z](?![a-z])))"
    ),
    "<none>": r"(?:无(?:实数?)?解|空集|没有实?数?解)",
    "<but>": r"(?i:,? ?(?:except|but|other than)(?: for| when)?)",
    "<group>": r"\{<nested>\}",
    "<nested>": r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*",
    "<round>": r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)",
    "<argument>": r"(\\[a-zA-Z]+(?![a-zA-Z{\[])|[^\s{}\\\[])",
}


def _read(table: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the rules (pattern, replacement) of a table, with its macros replaced."""
    for name, meaning in MACROS.items():
        table = table.replace(name, meaning)
    lines = [line for line in table.splitlines() if line and line[:2] != "# "]
    pairs = [line.split("  =>") for line in lines]
    return [(re.compile(left), right.removeprefix("  ")) for left, right in pairs]


_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_BEFORE_NFKC = _read(BEFORE_NFKC)
_OTHER_SCRIPTS = _read(OTHER_SCRIPTS)
_RULES = _read(RULES)


def spelled(answer: str) -> str:
    r"""Return an answer in one LaTeX spelling: plain characters, no fonts, fractions as
    `\frac{a}{b}`, no full stop.
    """
    if _PLAIN.fullmatch(answer):
        return answer  # saves time: most answers are numbers, which no rule changes
    if not answer.isascii():
        answer = _replaced(answer, _BEFORE_NFKC)
        answer = normalize("NFKC", answer)
    answer = answer.translate(_CHARACTERS)
    if not answer.isascii():
        answer = _replaced(answer, _OTHER_SCRIPTS)
    answer = _replaced(answer, _RULES)
    return answer.strip()


def _replaced(answer: str, rules: list[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in rules:
        answer = pattern.sub(replacement, answer)
    return answer
