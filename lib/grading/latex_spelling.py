r"""Rewrite an answer in one LaTeX spelling, which the other modules compare.

Gold answers must be LaTeX. Other answers may be in plain notation (`sqrt(2)`, `x**2`),
in any font, and in the layout of a page. `spelled` changes no value.
"""

import re
from unicodedata import normalize

# Superscripts, fractions and others, before NFKC replaces them by plain digits.
BEFORE_NFKC = r"""
([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)  =>  ^{\1}
([₀₁₂₃₄₅₆₇₈₉]+)  =>  _{\1}
([¼½¾⅐-⅞])  =>  <space>\1<space>
[º˚]  =>  ^\\circ<space>
(\d)[\u0304\u0305]  =>  \\overline{\1}
(\d)\u0307  =>  \\dot{\1}
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

# Rules for Chinese and Russian: signs, scales, lists, the empty set and choices. Other
# words of these scripts become text.
OTHER_SCRIPTS = r"""
负 ?(?=[\d\\])  =>  -
(?<=[\d}]) ?(\\text\{)? ?百  =>  <space>\\times 10^2 \1
(?<=[\d}]) ?(\\text\{)? ?千  =>  <space>\\times 10^3 \1
(?<=[\d}]) ?(\\text\{)? ?万  =>  <space>\\times 10^4 \1
(?<=[\d}]) ?(\\text\{)? ?亿  =>  <space>\\times 10^8 \1
以及|[和与及]|(?<!\w)и(?!\w)  =>  <space>and<space>
或者?|(?<!\w)или(?!\w)  =>  <space>or<space>
\\text\{ ?<none>[. ]*\}|<none>  =>  \\emptyset<space>
^ ?(\\text\{)? ?(?:答案)?(?:[是为选]|选[项择])? ?:? ?(?=\(?[A-Z]\)?(?:$|[^\w]))  =>  \1
([\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]+)(?![^{}]*\})  =>  \\text{\1}
"""
# Rules in the order in which they apply, PATTERN  =>  REPLACEMENT, with a comment above
# each group. MACROS has the abbreviations in angle brackets.
RULES = r"""
# Markdown, quotes and the marks of a formula round the whole; currency is a unit.
^\s*([*_`]{1,3})(.*)\1\s*$  =>  \2
"([a-zA-Z][^"{}]*)"|``([a-zA-Z][^`'{}]*)''  =>  \1\2
^\s*(-?)\s*\\\$\s*(-?(?:[\d.,]|\\!|\{,\}|\s)+?)\.?$  =>  \1\2\\text{dollar}
^\s*\\[(\[]|\\[)\]]\s*$|\\?[$€£]  =>
# Groups of thousands, but ,\, separates values in brackets; {,} before other than three
# digits is a decimal comma.
(?<=\d)(?:,\s*\\!|\{,\}|\\,|,\\,(?!.*[])])|\\[!:;]|\\ |[~ ']|\{\\,\}|\{,\\!\}|\\thinspace)\s*(?=\d{3}(?!\d))  =>
# No base of a number has three digits.
(?<=\d)_(?=\d{3}(?!\d))  =>
(?<=\d)\{,\}(?=\d)  =>  .
(?<=\d) ?\\(?:text|mathrm) ?\{ ?([eE]) ?\} ?(?=[+-]?\d)  =>  \1
(\d\.\d+)[eE]([+-]?\d{1,3})<end>  =>  \1 \\times 10^{\2}
(?<![\w.\\}])(\d+)[eE](\d{1,3})(?![\w.]| ?_)  =>  \1 \\times 10^{\2}
(?<=\d) ?[xX] ?(?=10 ?\^)  =>  \\times<space>
(\d+)⁄(\d+)  =>  \\frac{\1}{\2}
# Numbers and units of siunitx.
\\(?:SI|qty)\s*\{([^{}]*)\}\s*\{([^{}]*)\}  =>  \1\\text{\2}
\\num\s*\{([^{}]*)\}  =>  \1
\\ang\s*\{([^{}]*)\}  =>  \1^\\circ<space>
\\(?:unit|si)\s*\{  =>  \\text{
(?<=\d) ?\\q?quad<end> ?(?=\d)  =>  ,<space>
# Spaces, sizes, colours and marks say nothing.
(?<!\\)((?:\\\\)*)(?:\\[,;:!> ]|~)  =>  \1<space>
\\(?:left|right|middle|[bB]igg?[lrm]?)<end>\s*\.?  =>  <space>
\\(?:fcolorbox|rule)\s*\{[^{}]*\}\s*\{[^{}]*\}|\\(?:text)?color(?:box)?\s*\{[^{}]*\}  =>
\\(?:[hv]space\*?|[hv]?phantom|tag|label)\s*\{[^{}]*\}  =>  <space>
\\(?:q?quad|checkmark|(?:black)?square|Box|qed|hfill|enspace|newline|therefore|because|implies)<end>  =>  <space>
^\s*(?:\\(?:(?:Right|Longright|right)arrow|to)<end>|=)  =>
(?<![\\a-zA-Z}])\{[\s.]*\}  =>
\s+  =>  <space>
:=  =>  =
# Dots of a list or a decimal, of which an equation is an approximation; colons.
\.\.\.+|\\(?:[lc]dots|dots[bc]?)<end>  =>  \\dots<space>
\\(?:simeq|thickapprox)<end>|=(?= ?-?\d*\.\d+ ?\\dots)  =>  \\approx<space>
\{ ?: ?\}|\\colon<end>|\\text ?\{ ?: ?\}  =>  :
# Rows of a matrix end once; lines behind a brace alone are no matrix.
\\cr<end>|\\\\ ?\[[\d.]*(?:pt|em|ex|[mc]m)\]  =>  \\\\
\\\\(?: ?\\\\)+  =>  \\\\
(?:\\\\ ?)+(?=\\end)  =>
\\\{ ?\\begin\{matrix\}(.*?)\\end\{matrix\}(?! ?\\\})  =>  \\begin{cases}\1\\end{cases}
# A vector in brackets stays one; aligned lines become a list or a chain of equations.
[(\[] ?\\begin\{(?:array\}\{[clr|]*|smallmatrix)\}(.*?)\\end\{(?:array|smallmatrix)\} ?[)\]]  =>  \\begin{pmatrix}\1\\end{pmatrix}
(?:\\\{ ?)?\\begin\{(?:<lines>)\}(?:\{[^{}]*\})?|\\end\{(?:<lines>)\}  =>  <space>
(?<!\\)&(?!.*\\end)  =>
\\\\ ?(?:\[[^\]]*\])? ?=(?!.*\\end)  =>  =
,? ?\\\\ ?(?:\[[^\]]*\])?(?!.*\\end)  =>  ,<space>
# Binomials: {n \choose k}, {}_nC_k, C_n^k.
\{([^{}]*)\\choose<end>([^{}]*)\}|^([^{}]*)\\choose<end>([^{}]*)$  =>  \\binom{\1\3}{\2\4}
\\[dt]binom<end>  =>  \\binom
(?<![\w})'])[_^] ?\{?(\w+)\}? ?(?:\\mathrm ?\{ ?C ?\}|C) ?_ ?\{?(\w+)\}?  =>  \\binom{\1}{\2}
(?<![\w\\}])(?:\\mathrm ?\{ ?C ?\}|C) ?_ ?\{?(\d+)\}? ?\^ ?\{?(\d+)\}?  =>  \\binom{\1}{\2}
# An o above the line is a degree, a prime is an apostrophe.
(?<=\d) ?\^ ?(?:o<end>|\{ ?o ?\}|\{ ?\\(?:text|mathrm) ?\{ ?o ?\} ?\})  =>  ^\\circ<space>
\^ ?\{ ?\\prime ?\\prime ?\}|(?<=\d)"  =>  ''
\^ ?(?:\{ ?\\prime ?\}|\\prime<end>)  =>  '
# Texts and fonts; upright letters are units, but for i, e and some functions.
\^\{ ?(\w) ?\}  =>  ^\1
\\(?:text(?:bf|rm|it|sf|tt|sc|sl|md|normal|up)?|[mh]box|emph) ?\{  =>  \\text{
\{ ?\\rm<end>([^{}]*)\}  =>  \\mathrm{\1}
(\\(?:mathrm|text) ?\{[^{}]*)\^\{ ?-?\d ?\}  =>  \1<space>
\\mathrm ?\{ ?(i|e|gcd|lcm) ?\}  =>  \1
\\(?:mathrm|mathsf) ?\{(?= ?[A-Za-z])([^{}]*)\}  =>  \\text{\1}
\\text\{ ?([-+%]|\\text\{[^{}]*\}) ?\}  =>  \1
\\text\{ ?([,;]) ?\}  =>  \1
(?<=\d) ?\^ ?(\{ ?)?\\text\{ ?(st|nd|rd|th) ?\}(?(1) ?\})  =>  \\text{\2}
\^ ?(\{ ?)?(?:\\top<end>|\\text\{ ?T ?\})(?(1) ?\})  =>  ^T
^ ?\\text\{ ?((?:[a-z] ?= ?)?(?:[][()\d., ;:/+-]|and|or|(?:is )?to|\\?%)+)\} ?$  =>  \1
(?i:\bper ?cent<end>)  =>  percent
(?i:\\text\{ ?(?:positive |plus )?infinity ?\})  =>  \\infty<space>
(?i:\\text\{ ?(?:negative|minus) infinity ?\})  =>  -\\infty<space>
^ ?\\text\{ ?([\d.,:]+) ?([A-Za-z. ]*)\} ?$  =>  \1\\text{\2}
\\frac ?\{ ?\\text\{([^{}]*)\} ?\} ?\{ ?\\text\{([^{}]*)\} ?\}  =>  \\text{\1/\2}
(?i:\bmi(?:les?)? ?(?:/|per) ?h(?:ou)?r?<end>)  =>  mph
\\(?:mathbf|boldsymbol|bm|hat|vec) ?\{ ?\\?([ijk])(?:math)? ?\}  =>  \\basis\1<space>
\\(?:hat|vec) ?\{ ?(\\basis[ijk] )\}  =>  \1
\\(?:<fonts>)<end>  =>  <space>
\\imath<end>  =>  i
\\text\{ ?(?:negative|minus) ?\} ?(?=[\d.\\])  =>  -
# A remainder as \mod n.
\(? ?\\text\{ ?\(? ?mod ?\} ?(\d+) ?\)?|\\pmod ?\{?([^{} ]+)\}?|\\bmod<end>|\( ?\\?mod ?(\d+) ?\)  =>  \\mod \1\2\3
# A choice is its letter, and p.m. is one word.
^ ?(\\text\{)? ?(?i:(?:the )?(?:correct )?(?:option|choice|answer)(?: is)?)\b:? ?(?=[^\w]?[A-Z]\b)  =>  \1
([ {\d][ap])\.m<end>\.?  =>  \1m
# Bases in brackets and words: 52_{(8)}, 52_{\text{eight}}, 52 (base 8).
_ ?\{ ?\\text ?\{ ?(\d+) ?\} ?\}  =>  _{\1}
(?:\\text ?|(?<![a-zA-Z}]))\{ ?(\d[\dA-Za-z]*) ?\}(?= ?_ ?\{? ?\d)  =>  \1
_ ?(?:\{ ?)?\( ?(\d+) ?\)(?: ?\})?  =>  _{\1}
 ?_?[ {(]{0,3}(?:\\text\{)?[ (]{0,3}(?:in )?base[ }]{0,3}(\w+)[ )}]{0,4}  =>  _\1
_[ {]*(?:\\text\{ ?)?two<end>[ }]*  =>  _2
_[ {]*(?:\\text\{ ?)?three<end>[ }]*  =>  _3
_[ {]*(?:\\text\{ ?)?four<end>[ }]*  =>  _4
_[ {]*(?:\\text\{ ?)?five<end>[ }]*  =>  _5
_[ {]*(?:\\text\{ ?)?six<end>[ }]*  =>  _6
_[ {]*(?:\\text\{ ?)?seven<end>[ }]*  =>  _7
_[ {]*(?:\\text\{ ?)?eight<end>[ }]*  =>  _8
_[ {]*(?:\\text\{ ?)?nine<end>[ }]*  =>  _9
_[ {]*(?:\\text\{ ?)?ten<end>[ }]*  =>  _10
_[ {]*(?:\\text\{ ?)?twelve<end>[ }]*  =>  _12
_[ {]*(?:\\text\{ ?)?sixteen<end>[ }]*  =>  _16
_ ?\{? ?(\d+) ?\}? ?_ ?\{? ?\1 ?\}?(?!\d)  =>  _\1
# Scales are powers of ten.
(?<=[\d}]) ?(\\text\{)? ?hundred<end>  =>  <space>\\times 10^2 \1
(?<=[\d}]) ?(\\text\{)? ?thousand<end>  =>  <space>\\times 10^3 \1
(?<=[\d}]) ?(\\text\{)? ?million<end>  =>  <space>\\times 10^6 \1
(?<=[\d}]) ?(\\text\{)? ?billion<end>  =>  <space>\\times 10^9 \1
(?<=[\d}]) ?(\\text\{)? ?trillion<end>  =>  <space>\\times 10^{12} \1
(?<=.)\\text\{ *\}  =>
# Lists of points side by side, and lists in Spanish, French and German.
(\([^(),]*,[^()]*\)) (?=\([^(),]*,)  =>  \1,
(?<=[\d)}]) (?:y|et|und) (?=[-\d\\(]|[a-z] ?=)  =>  <space>and<space>
(?<=[\d)}]) (?:ou?|oder) (?=[-\d\\(]|[a-z] ?=)  =>  <space>or<space>
\\text\{ ?(?:y|et|und|as well as) ?\}  =>  \\text{ and }
\\text\{ ?(?:ou?|oder) ?\}  =>  \\text{ or }
# Sets in words, and those that a condition builds.
\\text\{ ?(?:all|any|every) real ?\} ?[a-z]<end>  =>  \\mathbb{R}<space>
\\text\{ ?<reals><but> ?([^{}]*)\}  =>  \\mathbb{R}\\setminus \1
\\text\{ ?<reals> (?:greater|larger|more) than ?([^{}]*)\}  =>  x > \1
\\text\{ ?<reals> (?:less|smaller) than ?([^{}]*)\}  =>  x < \1
\\text\{ ?<reals>(?: such that)?[ .]*\}|(?<![\\a-zA-Z])<reals>$  =>  \\mathbb{R}
(?<![\\a-zA-Z])<reals><but>  =>  \\mathbb{R}\\setminus<space>
\\mathbb\{R\} ?[a-z]? ?\\text\{ ?<but> ?\}  =>  \\mathbb{R}\\setminus<space>
\\(?:R|Reals|reals)<end>|\\(?:mathbb|Bbb) ?\{? ?R ?\}?  =>  \\mathbb{R}
^\\mathbb\{R\} ?(?=[a-z] ?(?:[<>=]|\\[lgn]eq?<end>))  =>
^-\\infty ?< ?[a-z] ?< ?\+? ?\\infty$  =>  \\mathbb{R}
\\mathbb\{R\} ?(?:_ ?\{ ?(?:\\geq?(?:slant)?|>=|≥) ?0 ?\}|_ ?\{? ?0 ?\}? ?\^ ?\{? ?\+ ?\}?|\^ ?\{? ?\+ ?\}? ?_ ?\{? ?0 ?\}?)  =>  [0,\\infty)
\\mathbb\{R\} ?_ ?\{ ?(?:\\leq?(?:slant)?|<=) ?0 ?\}  =>  (-\\infty,0]
\\mathbb\{R\} ?_ ?\{ ?(?:>|\\gt) ?0 ?\}  =>  (0,\\infty)
\\mathbb\{R\} ?(?:_ ?\{ ?(?:<|\\lt) ?0 ?\}|\^ ?\{ ?- ?\}|\^ ?-)  =>  (-\\infty,0)
\\mathbb\{R\} ?_ ?\{ ?\\neq? ?0 ?\}  =>  \\mathbb{R}\\setminus \\{0\\}
^([a-z]) ?\\in ?([\[(][^][()]*[])]) ?(?:,|\\text\{ ?,? ?and ?\}) ?\1 ?\\neq? ?([^,;]+)$  =>  \2\\setminus \\{\3\\}
(?i:\\text\{ ?(?:all )?non-?negative real(?:s| numbers)[ .]*\})  =>  [0,\\infty)
(?i:\\text\{ ?(?:all )?negative real(?:s| numbers)[ .]*\})  =>  (-\\infty,0)
(?i:\\text\{ ?(?:all )?positive real(?:s| numbers)[ .]*\})|\\mathbb\{R\} ?\^ ?\{? ?\+ ?\}?  =>  (0,\\infty)
(?:(?<=\\mathbb\{R\})|(?<=[])])) ?(?:-|\\backslash<end>) ?(?=\\\{)  =>  \\setminus<space>
\\setminus *(?:[a-z] ?=)? ?(-?[\d./]+) ?$  =>  \\setminus \\{\1\\}
\\lbrace<end>  =>  \\{
\\rbrace<end>  =>  \\}
\\lbrack<end>  =>  [
\\rbrack<end>  =>  ]
# Open ends of intervals as brackets that are turned away: ]2,3[.
(^ ?|= ?|\\(?:cup|cap|in|setminus)<end> ?)\]([^][,;]*[,;][^][,;]*[][)])  =>  \1(\2
([\[(][^][,;]*[,;][^][,;]*)\[ ?(?=$|\\)  =>  \1)
\\\{ ?[a-z] ?\\in ?\\mathbb\{R\} ?, ?(.*)\\\}  =>  \1
\\\{ ?[a-z] ?(?:\\in ?\\mathbb\{R\})? ?(?:\||:|\\mid|\\colon|\\vert) ?(.*)\\\}  =>  \1
(?:,|\\text\{ ?(?:where|for|with) ?\}) ?[a-z] ?\\in ?\\mathbb\{R\}$  =>
^[a-z] ?\\in ?\\mathbb\{R\} ?(?:,|\\text\{ ?(?:where|with|and) ?\})  =>
\\varnothing<end>|\\\{ ?\\\}|(?i:\\text\{ ?(?:(?:the )?empty set|no (?:real )?solutions?)[. ]*\})  =>  \\emptyset<space>
# Plain notation.
\*\*  =>  ^
(?<=[\w)}]) ?\* ?(?=[\w\\(])  =>  <space>\\cdot<space>
\^ ?<round>  =>  ^{\1}
<=|\\le(?:qslant)?<end>  =>  \\leq<space>
>=|\\ge(?:qslant)?<end>  =>  \\geq<space>
!=|\\ne<end>  =>  \\neq<space>
\\lt<end>  =>  <
\\gt<end>  =>  >
(?<![\\a-zA-Z])(?:oo|infinity|infty|inf)<end>  =>  \\infty<space>
(?<![\\a-zA-Z])(sqrt|frac|exp|pi|theta|alpha|beta|log|ln|(?:arc)?(?:sin|cos|tan)|cot|sec|csc)<end>  =>  \\\1<space>
\) ?U ?(?=[(\[])  =>  )\\cup<space>
\\log ?_ ?(?:e<end>|\{ ?e ?\})  =>  \\ln<space>
# cis x is e^{ix}.
(?:\\(?:operatorname|text) ?\{ ?cis ?\}|(?<![a-zA-Z])\\?cis<end>) ?(?:<round>|(\\frac<group> ?<group>|[\d.]+ ?\^ ?\{? ?\\circ ?\}?|[\d.]*\\pi(?: ?/ ?\d+)?|\\?[a-zA-Z]+|[\d.]+))  =>  e^{i(\1\2)}
# Roots and fractions with their arguments in braces, and periods under a line.
\\(?:[dtcs]|nice)frac<end>  =>  \\frac
\\sqrt ?(\[[^\]]*\])? ?<round>  =>  \\sqrt\1{\2}
\\sqrt ?(\[[^\]]*\])? ?<round>  =>  \\sqrt\1{\2}
(?<![\\a-zA-Z])abs ?<round>  =>  |\1|
(?<![\\a-zA-Z])floor ?<round>  =>  \\lfloor \1 \\rfloor<space>
\\overline ?(\d)  =>  \\overline{\1}
\\sqrt ?(\d+)  =>  \\sqrt{\1}
\\(frac|sqrt)<end> ?<argument>  =>  \\\1{\2}
(\\frac ?<group>) ?<argument>  =>  \1{\2}
\\dot ?\{? ?(\d) ?\}?(\d*) ?\\dot ?\{? ?(\d) ?\}?  =>  \\overline{\1\2\3}
(?<=\d)\} ?\\(?:bar|overline) ?\{(?=\d)  =>
(?<=\.)(\d*) ?(?:\\(?:bar|dot) ?\{|\()(\d+)[)}]  =>  \1\\overline{\2}
\^ ?(?:\{ ?\\circ ?\}|\\circ<end>)|\\degrees?<end>  =>  ^\\circ<space>
^(?!.*\\pm)(.*)\\mp<end>  =>  \1\\pm<space>
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
        r"(?:display|text|script)style|limits|rm|bf|it|sf|tt|boldsymbol|p?mb|bm|ensuremath"
        r"|math(?:rm|sf|bf|it|tt|bin|ord|strut)|u(?:nder)?line|underbrace|boxed|f(?:rame)?box"
        r"|bbox(?:\[[^\]]*\])?|tiny|small|normalsize"
        r"|[lL]arge|LARGE|[hH]uge"
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
