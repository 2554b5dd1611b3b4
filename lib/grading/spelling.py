r"""Write an answer in one LaTeX spelling, so that the rules see what it says alone.

Gold answers must be LaTeX. Answers may also come in plain notation (`sqrt(2)`, `x**2`),
in any font, and in the layout of a page. `spelled` changes no value.
"""

import re
from unicodedata import normalize

# What stands for more than itself, before NFKC makes plain digits of it.
BEFORE_NFKC = r"""
([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)  =>  ^{\1}
([₀₁₂₃₄₅₆₇₈₉]+)  =>  _{\1}
([¼½¾⅐-⅞])  =>  <space>\1<space>
"""
# A sign and the command that it stands for.
SIGN_COMMANDS = (
    "× times ÷ div · cdot ⋅ cdot ∙ cdot ∗ cdot π pi θ theta ∞ infty √ sqrt ≤ leq ≥ geq"
    " ≠ neq ∪ cup ∩ cap ∈ in ± pm ∓ mp ∅ emptyset ≈ approx ∴ therefore"
)
_CHARACTERS = {
    **{code: " " for code in (*range(0x20), *range(0x200B, 0x2010))},
    **{
        ord(sign): rf"\{name} "
        for sign, name in re.findall(r"(\S) (\w+)", SIGN_COMMANDS)
    },
    **dict.fromkeys(map(ord, "\u2212\u2010\u2012\u2013\u2014"), "-"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u2032"), "'"),
    **{ord("°"): r"^\circ ", ord("。"): ".", ord("、"): ","},
}

# In the order in which they apply: pattern, replacement, and above them the reason.
RULES = r"""
# Markdown and the marks of a formula round the whole; currency is a unit.
^\s*([*_`]{1,3})(.*)\1\s*$  =>  \2
^\s*\\[(\[]|\\[)\]]\s*$|\\?[$€£]  =>
# Groups of thousands; {,} before other than three digits is a decimal comma.
(?<=\d)(?:,\s*\\!|\{,\}|,?\\,|\\[!:;]|\\ |[~ ']|\{\\,\}|\{,\\!\}|\\thinspace)\s*(?=\d{3}(?!\d))  =>
(?<=\d)\{,\}(?=\d)  =>  .
(\d\.\d+)[eE]([+-]?\d{1,3})<end>  =>  \1 \\times 10^{\2}
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
# A vector in brackets stays one; aligned lines become a list or a chain of equations.
[(\[] ?\\begin\{(?:array\}\{[clr|]*|smallmatrix)\}(.*?)\\end\{(?:array|smallmatrix)\} ?[)\]]  =>  \\begin{pmatrix}\1\\end{pmatrix}
(?:\\\{ ?)?\\begin\{(?:<lines>)\}(?:\{[^{}]*\})?|\\end\{(?:<lines>)\}  =>  <space>
(?<!\\)&(?!.*\\end)  =>
\\\\ ?(?:\[[^\]]*\])? ?=(?!.*\\end)  =>  =
,? ?\\\\ ?(?:\[[^\]]*\])?(?!.*\\end)  =>  ,<space>
# Texts and fonts; upright letters are units, but for i, e and some functions.
\^\{ ?(\w) ?\}  =>  ^\1
\\(?:text(?:bf|rm|it|sf|tt|normal|up)?|[mh]box|emph) ?\{  =>  \\text{
\{ ?\\rm<end>([^{}]*)\}  =>  \\mathrm{\1}
(\\(?:mathrm|text) ?\{[^{}]*)\^\{ ?-?\d ?\}  =>  \1<space>
\\mathrm ?\{ ?(i|e|gcd|lcm) ?\}  =>  \1
\\(?:mathrm|mathsf) ?\{(?= ?[A-Za-z])([^{}]*)\}  =>  \\text{\1}
\\text\{ ?([-+%]|\\text\{[^{}]*\}) ?\}  =>  \1
\\text\{ ?([,;]) ?\}  =>  \1
^ ?\\text\{ ?((?:[\d., ;/-]|and|or)+)\} ?$  =>  \1
^ ?\\text\{ ?([\d.,:]+) ?([A-Za-z. ]*)\} ?$  =>  \1\\text{\2}
\\frac ?\{ ?\\text\{([^{}]*)\} ?\} ?\{ ?\\text\{([^{}]*)\} ?\}  =>  \\text{\1/\2}
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
# Bases in words: 52_{\text{eight}}, 52 (base 8).
 ?_?[ {(]*(?:\\text\{)?[ (]*base ?(\w+)[ )}]*  =>  _\1
_[ {]*(?:\\text\{ ?)?two<end>[ }]*  =>  _2
_[ {]*(?:\\text\{ ?)?three<end>[ }]*  =>  _3
_[ {]*(?:\\text\{ ?)?four<end>[ }]*  =>  _4
_[ {]*(?:\\text\{ ?)?five<end>[ }]*  =>  _5
_[ {]*(?:\\text\{ ?)?six<end>[ }]*  =>  _6
_[ {]*(?:\\text\{ ?)?seven<end>[ }]*  =>  _7
_[ {]*(?:\\text\{ ?)?eight<end>[ }]*  =>  _8
_[ {]*(?:\\text\{ ?)?nine<end>[ }]*  =>  _9
# Scales are powers of ten.
(?<=[\d}]) ?(\\text\{)? ?hundred<end>  =>  <space>\\times 10^2 \1
(?<=[\d}]) ?(\\text\{)? ?thousand<end>  =>  <space>\\times 10^3 \1
(?<=[\d}]) ?(\\text\{)? ?million<end>  =>  <space>\\times 10^6 \1
(?<=[\d}]) ?(\\text\{)? ?billion<end>  =>  <space>\\times 10^9 \1
(?<=[\d}]) ?(\\text\{)? ?trillion<end>  =>  <space>\\times 10^{12} \1
(?<=.)\\text\{ *\}  =>
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
(?i:\\text\{ ?(?:all )?positive real(?:s| numbers)[ .]*\})|\\mathbb\{R\} ?\^ ?\{? ?\+ ?\}?  =>  (0,\\infty)
(?<=\\mathbb\{R\}) ?(?:-|\\backslash) ?(?=\\\{)  =>  \\setminus<space>
\\setminus *(?:[a-z] ?=)? ?(-?[\d./]+) ?$  =>  \\setminus \\{\1\\}
\\lbrace<end>  =>  \\{
\\rbrace<end>  =>  \\}
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
    "<but>": r"(?i:,? ?(?:except|but|other than)(?: for| when)?)",
    "<group>": r"\{<nested>\}",
    "<nested>": r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*",
    "<round>": r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)",
    "<argument>": r"(\\[a-zA-Z]+(?![a-zA-Z{\[])|[^\s{}\\\[])",
}


def _read(table: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the rules of a table, its macros put in."""
    for name, meaning in MACROS.items():
        table = table.replace(name, meaning)
    lines = [line for line in table.splitlines() if line and line[:2] != "# "]
    pairs = [line.split("  =>") for line in lines]
    return [(re.compile(left), right.removeprefix("  ")) for left, right in pairs]


_BEFORE_NFKC = _read(BEFORE_NFKC)
_RULES = _read(RULES)


def spelled(answer: str) -> str:
    r"""Return an answer in one LaTeX spelling.

    It has plain characters, no fonts, fractions as `\frac{a}{b}`, and no full stop.
    """
    for pattern, replacement in _BEFORE_NFKC:
        answer = pattern.sub(replacement, answer)
    answer = normalize("NFKC", answer).translate(_CHARACTERS)
    for pattern, replacement in _RULES:
        answer = pattern.sub(replacement, answer)
    return answer.strip()
