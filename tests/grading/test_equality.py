"""Which answers count as the same, and the status of responses without an answer."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib.grading import STATUSES, Grade, grade, grade_many

# A gold answer, then answers that are the same, and after ≠ others that are not.
ANSWERS = r"""
12 | 12.0 | 12. | 12\text{ units} | \mathbf{12} | $12$ | {12} | \text{12}
12 | \left(12\right) | 2(6) | 3!+6
12 | 12^{\text{th}} | 12^\text{th} ≠ 12^{t} | 13^{\text{th}}
12 ≠ 21 | 12.5 | -12 | 1 | 12, 13 | x | 12x | 12i | (12, 0) | 11.999999
12 ≠ 12 \text{ or } 13 | 2(5)
12 | \text{There are } 12 \text{ cats} | \pmb{12} | \text{The answer is } 12
12 ≠ \text{negative } 12 | \text{the opposite of } 12 | \text{the square root of } 12
12 ≠ 12 \text{ squared} | 12 \text{ cubed} | 12\text{ factorial} | 12 \text{ tenths}
12 ≠ \text{the reciprocal of } 12 | 12 \text{ trillion}
-12 | \text{negative } 12 | \text{minus }12
1200 ≠ 1 \text{ and } 200 | 1 \text{ to } 200 | 1 \quad 200 | 1\text{ foot }200\text{ inches}
5 | 5 \pmod{7} | 5 \pmod 7 | x \equiv 5 \pmod 7 | 5 \bmod 7 | 5\text{ (mod }7)
5 ≠ 2 \pmod 5 | 4 \pmod 7
x \equiv 5 \pmod{7} | 5 | x \equiv 5 \pmod 7
-\sqrt[3]{2} | \sqrt[3]{-2} ≠ \sqrt[3]{2}
-2 | \sqrt[3]{-8}
(2,4) | \text{The vertex is } (2,4) | \text{Point }(2,4) ≠ \text{not } (2,4)
[1,2] | \text{Interval } [1,2]
204_5 | \text{The answer is } 204_5
\text{(C)} | \text{The correct choice is (C)} ≠ \text{The correct choice is (B)}
\text{east} | \text{The answer is east} ≠ \text{The answer is west}
-7 | −7 | - 7
1234 | 1,234 | 1{,}234 | 1\,234 | 1,\!234 | 1 234 ≠ 1.234
\frac{3}{8} | 0.375 | .375 | 3/8 | \tfrac38 | \frac{-3}{-8} | 37.5\%
\frac{1}{3} ≠ 0.33 | 0.333333333 | 3
\frac{11}{4} | 2\frac{3}{4} | 2 3/4 | 2¾ | 2.75
\frac{11}{4} ≠ 2\frac{1}{4} | \frac{4}{11} | -\frac{11}{4}
\frac{22}{7} | \frac{22}{7} \approx 3.14
0.00025 | 2.5 \times 10^{-4} | 2.5 \cdot 10^{-4} ≠ 2.5 \times 10^{-3} | 0.000249
45000000 | 45 \text{ million} | 4.5e7
18\% | 0.18 | 18 | 18\%
18 ≠ 0.18
\$3.25 | 3.25 | 3.25\text{ dollars}
42\text{ cm}^2 | 42 \text{ square centimeters} | 42 cm^2 | 42 | 42\text{ cm} ≠ 42\text{ m} | 42\text{ cm}^3 | 42 cm^{3}
135^\circ | 135 | 135° | 135 degrees | 135^{\circ} ≠ 135 \text{ radians} | 45^\circ
2\sqrt{5} | \sqrt{20} | 2 \cdot \sqrt5 | 2√5
2\sqrt{5}\text{ cm} ≠ 2\sqrt{5}\text{ m} | 4.472 | 5\sqrt{2}
4\pi | 4π | \pi \cdot 4 | 4\pi\text{ cm}
\pi ≠ 3.14159265 | \frac{22}{7}
0 ≠ 10^{-9} | \emptyset
(x-1)(x+4) | x^2+3x-4 | x²+3x-4
x | 2x - x ≠ -x | 2x
3-4i | -4i+3 ≠ 3+4i
5 | (2+i)(2-i) | x=5 | f(3) = 5 | 2+3 = 5
x=6 ≠ y=6 | x=7
y=3x-2 | 3x-2 | y = -2+3x | 3x - y = 2 | f(x) = 3x-2 ≠ y=3x+2 | 3x+2
x \neq 3 ≠ x = 3 | 3
x \in (2,5) | (2,5) | 2 < x < 5 | x>2 \text{ and } x<5
(2,5] | 2 < x \le 5 | (2, 5.0]
(2,5) ≠ [2,5] | 2 \le x < 5 | 2, 5 | (5,2) | (2,6) | 5 | (2,5,0)
[3,\infty) | x \ge 3 | 3 \leq x
(-\infty,-1)\cup(4,\infty) | (4,\infty) \cup (-\infty,-1) | x<-1 \text{ or } x>4
(-\infty,-1)\cup(4,\infty) | x<-1 \lor x>4
(1,3) | x>1, x<\lfloor 3.5 \rfloor ≠ x>1 \text{ or } x<\lfloor 3.5 \rfloor
(-\infty,-1)\cup(4,\infty) ≠ (-1,4) | x<-1 \text{ or } x \ge 4 | (-\infty,-1)
(3,-4) | \left( 3,-4 \right) | (x,y)=(3,-4) | x=3, y=-4 | x=3 \text{ and } y=-4
(3,-4) ≠ (-4,3) | 3,-4 | x=-4, y=3
(3,3) | x=3, y=3 ≠ x=3, y=4
(1,2,3) | \langle 1,2,3\rangle | [1,2,3] ≠ (1,2) | (3,2,1)
\begin{pmatrix} 4 \\ 1/2 \end{pmatrix} | \begin{bmatrix} 4 \\ 0.5 \end{bmatrix}
\begin{pmatrix} 4 \\ 1/2 \end{pmatrix} | (4,\frac12)
\begin{pmatrix} 4 \\ 5 \end{pmatrix} ≠ \begin{pmatrix} 5 \\ 4 \end{pmatrix}
\begin{pmatrix} 4 \\ 5 \end{pmatrix} ≠ \begin{pmatrix} 4 & 5 \end{pmatrix}
\begin{pmatrix} 2 & 0 \\ 0 & 4 \end{pmatrix} | 2\begin{pmatrix} 1 & 0 \\ 0 & 2 \end{pmatrix}
(4,5) ≠ \begin{pmatrix} 5 \\ 4 \end{pmatrix}
2,3 | 3, 2 | \{2,3\} | 2 \text{ and } 3 | x=2, x=3 | x=3 \text{ or } x=2 | 2; 3
2,3 | 2\text{ cm}, 3\text{ cm}
2,3 ≠ 2 | 2,3,4 | 2,4 | 2,2,3 | (2,3) | 23 | 2.3
-4,4 | \pm 4 ≠ 4 | \pm 2
2 \pm \sqrt{3} | 2+\sqrt{3}, 2-\sqrt{3}
\emptyset | \varnothing | \{\}
\text{(C)} | C | (C) | \textbf{(C)}\ 17 | c ≠ D | \text{(B) } C | 3
\text{Tuesday} | tuesday | \text{Tuesday.} | \textbf{Tuesday} | \text{a Tuesday}
\text{Tuesday} ≠ \text{Thursday} | \text{not Tuesday} | \text{Tuesday and Friday}
\text{Ann and Bob} | \text{Bob, Ann}
243_5 | 243_{5} | 243 | 243 \text{ (base 5)} ≠ 243_6 | 342_5 | 73
\text{7 p.m.} | 7 \text{ PM} ≠ \text{7 a.m.}
\frac{1}{2^{80}} | \frac{2}{2^{81}} | 4^{-40} ≠ \frac{1}{2^{79}} | 0 | \frac{1}{2^{80}+1}
\frac{2^{2009}-1}{2^{2009}} | 1-2^{-2009} ≠ 1 | \frac{2^{2008}-1}{2^{2008}}
\frac{1}{20!} ≠ \frac{1}{21!}
\frac{12345678901234567890123}{98765432109876543210987} ≠ \frac{12345678901234567890124}{98765432109876543210987}
\frac{\pi}{10^{20}} ≠ \frac{\pi}{10^{21}}
1 + 10^{-20} ≠ 1
2^{10^{15}} | 4^{5 \cdot 10^{14}} ≠ 2^{10^{15}+2} | -2^{10^{15}} | 1
\left(\frac{1}{2^{80}}, 1\right) | (2^{-80}, 1) ≠ \left(\frac{1}{2^{79}}, 1\right)
\begin{pmatrix} \frac{1}{2^{80}} & 0 \\ 0 & 1 \end{pmatrix} ≠ \begin{pmatrix} \frac{1}{2^{79}} & 0 \\ 0 & 1 \end{pmatrix}
1,2,3 | 1, 2, \text{ and } 3 | 3, 2, and 1 | 1, 2, \text{or } 3 | \{1, 2, \text{ and } 3\} ≠ 1, 2, \text{ and } 4
(0,0), (1,1), \text{ and } (2,4) | (0,0), (2,4), (1,1) ≠ (0,0), (4,2), (1,1)
x=1, x=2, \text{ and } x=3 | 1,2,3
\frac{1 \pm \sqrt{5}}{2} | \frac{1+\sqrt{5}}{2}, \frac{1-\sqrt{5}}{2} | \frac{1}{2} \pm \frac{\sqrt{5}}{2} ≠ \frac{1 + \sqrt{5}}{2}
(\pm 3, 0) | (3,0), (-3,0) ≠ (0, \pm 3)
\pm 1, \pm 2 | -2,-1,1,2 ≠ 1,2
\pm 1 \mp \sqrt{2} | 1-\sqrt{2}, -1+\sqrt{2} ≠ 1+\sqrt{2}, -1-\sqrt{2}
3 | 3\,\mathrm{m/s^2} | 3\,\mathrm{m}\cdot\mathrm{s}^{-1} ≠ 3\mathrm{i}
5\text{ cm} | 5\,\mathrm{cm} ≠ 5\,\mathrm{km}
5\text{ kg}\cdot\text{m} ≠ 5\text{ g}\cdot\text{m}
42 | {\color{blue} 42} | \textcolor{red}{42} | \underline{42}
42 | \therefore x = 42 | \Large 42 | 42 \qquad \blacksquare | 42~\checkmark | \ensuremath{42} ≠ \textcolor{red}{24}
(2,3) | \begin{cases} x = 2, \\ y = 3 \end{cases} | \left\{\begin{array}{l} x=2 \\ y=3 \end{array}\right. ≠ \begin{cases} x=3 \\ y=2 \end{cases}
\begin{pmatrix} 1 \\ 2 \end{pmatrix} | \left(\begin{array}{c} 1 \\ 2 \end{array}\right) ≠ \begin{pmatrix} 1 & 2 \end{pmatrix}
\frac{1+\sqrt{5}}{2} | \frac{1+\sqrt(5)}{2} | (1+sqrt(5))/2 | (1+√5)/2
2\sqrt{(x+1)(x+2)} | 2\sqrt((x+1)(x+2)) ≠ 2\sqrt(x+1)
3\sqrt[3]{2} | 3\sqrt[3](2) | 3 \cdot 2^(1/3)
4*pi | 4\pi | 4π
4\pi | 4*pi | 4 pi | 4pi
x^2+1 | x**2+1 | x*x+1
(-\infty, 3) | (-infinity, 3)
(2,\infty) | (2,+\infty) ≠ (-\infty,\infty) | (0,\infty)
\log_2 5 | log_2(5) | log(5)/log(2)
e^{2x} | e^(2x) | exp(2x)
x \leq 3 | x <= 3 | x ≤ 3
(2,\infty) | \{x \mid x > 2\} | \left\{ x \in \mathbb{R} \,\middle|\, x > 2 \right\} ≠ \{x \mid x \ge 2\}
(-\infty,\infty) | \mathbb{R} | \text{All real numbers} | x \in \mathbb{R} ≠ \emptyset
(-\infty,3)\cup(3,\infty) | \mathbb{R} \setminus \{3\} | \text{all real numbers except } 3 ≠ \mathbb{R} \setminus \{2\} | \mathbb{R}
\{1,2,3\} | \{3,2,1,\} ≠ \{1,2\}
\emptyset | \text{no solution} | \text{the empty set}
12 | \text{There are } 12 \text{ ways} | \text{So } 12 | 12 \text{ is the answer} | n = 12 \text{ ways}
12 ≠ 12 \text{ or more} | 12 or less | \text{at least } 12 | \text{about } 12 | \text{not } 12 | 12 \text{ is impossible} | \text{more than } 12
12 ≠ \text{half of } 12 | 12 \text{ or so} | > 12 | 12 \text{ thousand} | \text{between } 11 \text{ and } 12
2\sqrt{5} | \text{The length is } 2\sqrt{5} ≠ \text{about } 2\sqrt{5}
\frac{1}{\sqrt{k}} | \sqrt{\frac{1}{k}} ≠ \sqrt{k}
\sqrt{x^2} | |x| ≠ x
12 | 12。 | １２ | \num{12} | +12
43279 | 43{\,}279 | 43'279 | 43\;279
0.5 | ½ | 1⁄2 | \nicefrac{1}{2} | 50\%
\begin{pmatrix} 3 \\ -1 \end{pmatrix} ≠ 3\mathbf{i} + \mathbf{j}
0.\overline{3} | 0.(3) | 0.\dot{3} | \frac13 ≠ 0.3
30^\circ | {30^\circ} | 30\degree
\text{(A)} | \mathrm{A} ≠ \text{Option B}
\frac{7}{6} | 1.1\overline{6} | 1.1(6) ≠ \frac{106}{90}
1,1,2 | 2, 1, 1 ≠ 1,2 | 1,2,2
5\text{ square meters} | 5\text{ m}^2 | 5\text{ sq m}
7 ≠ 7/0 | \frac{7}{0}
317_8 | 317_{(8)} | 317_{\text{base }8} ≠ 371_8
3B7_{12} | 3b7_{12} | \mathrm{3B7}_{12} | \text{3B7}_{12} ≠ 3b8_{12}
7:25 | 7{:}25 | 7\colon 25 | 07:25 | 7:25\text{ a.m.} ≠ 25:7 | 14:50 | 7:52 | 7
\text{8:05 p.m.} | 8{:}05\,\text{p.m.} ≠ \text{4:10 p.m.} | \text{8:05 a.m.}
3:5 | 3 \text{ to } 5 | \text{3 to 5} | \frac{3}{5} | a:b = 3:5 ≠ 5:3 | 6:10 | 0.6
2:3:6 ≠ 2:6:3 | 2:3
35^\circ 20' ≠ 20^\circ 35' | 35^\circ | 35^\circ 20
7.5\% | \text{7.5\%} | 7.5\text{ per cent} ≠ \$7.5
\$7 ≠ 7\% | 7\text{ cents}
\$7 | 7\text{ dollars per hour} | 7\text{ per day}
0.003 | 3e-3 ≠ 3e3
30000 | 3e4 | 3.0\text{e}4 | 30_000 | 3e+4
4000000 | 4_000_000
[-1,4) | [-1,4[ | x \ge -1, x < 4 ≠ ]-1,4[
(-\infty,2] | ]-\infty,2] | \left]-\infty;2\right]
(0,1)\cup(1,5) | ]0,1[\cup]1,5[ | 0<x<5, x \neq 1
[0,\infty) ≠ \mathbb{R}_{>0}
\begin{pmatrix} 5 & 1 \\ 0 & 2 \end{pmatrix} | [[5,1],[0,2]] | \begin{bmatrix}5&1\cr0&2\\\end{bmatrix} | \begin{pmatrix}5&1\\\\0&2\end{pmatrix} ≠ [[5,0],[1,2]]
\begin{pmatrix} 6 \\ 4 \end{pmatrix} | \dbinom{6}{4} | {6 \choose 4} ≠ \binom{4}{6}
70 | {8 \choose 4} | {}_8C_4 ≠ {8 \choose 3}
\binom{m}{3} | {m \choose 3}
x=4,y=0,z=1 ≠ (x,y,z)=(0,4,1)
(5,\pi) | (r,\theta)=(5,\pi) | r=5,\theta=\pi ≠ (\theta,r)=(\pi,5)
(1,6) | \{(1,6)\} | \text{(1, 6)} ≠ P(6,1)
2.7 | \frac{8}{3} \approx 2.7 | 2.68 \approx 2.7 ≠ \frac{8}{3} \approx 2.67
\sqrt{7} | \sqrt{7} = 2.645\ldots | \sqrt{7} \simeq 2.65 ≠ 2.645\ldots
40^\circ | 40^o | 40^{\text{o}} ≠ 40' | 40''
2\text{ feet} | 2' ≠ 2''
\frac{1}{2} | \sin 30^\circ | \cos{60^{\circ}} ≠ \sin 30
\sin 50^\circ | \cos 40^\circ | \sin\left(50^\circ\right) ≠ \cos 50^\circ
8^\circ\text{C} | 8^\circ C | 8 ≠ 8^\circ F
e^{i\pi/4} | \cos 45^\circ + i\sin 45^\circ ≠ \operatorname{cis}\frac{\pi}{2}
\text{Omar} | "Omar" | \textsc{Omar} | ``Omar'' ≠ "Otto"
\text{B,D,E} | \text{B and D and E} | \{B,D,E\} ≠ \text{B and D}
\text{May 4} | \text{May }4 | \text{May 4.} | May 4 ≠ \text{May 5}
21 | \text{twenty-one} | \text{Twenty-one cats} ≠ \text{twenty} | \text{twenty-first} | \text{twenty-one thousand}
2\text{ days} | \text{two days} ≠ \text{two weeks}
9 | 9个 | 9元 | 答案是9 | 9 штук ≠ 9万 | 至少9 | 负9 | 9左右
4,6,9 | 4，6和9
4,6 | 4或6 ≠ 4或9
\emptyset | 无解 | \text{空集}
\text{(D)} | 选D | \text{选项 D} ≠ 选B
\{3,4,\ldots,7\} | \{3,4,...,7\} ≠ \{3,4,\ldots,8\} | \{3,5,\ldots,7\}
2,4,6,\ldots | 2,4,6,\dots | 2,4,3+3,\dots ≠ 2,4,6
u - v ≠ u v | U-V | v-u
T-t ≠ t-T | T t
A/a ≠ a/A
\frac{A}{a+1} | A/(1+a) ≠ A(a+1)
2pqrs ≠ 3pqrs
5w+1 ≠ 5W+1
c,d | d,c ≠ C,D
4\ln 5 | 4\log_e 5
g^{-1}(x)=x+3 | y=x+3 | x+3 ≠ y=x-3
a^2-b^2 | (a-b)^2+2ab-2b^2
\frac{9}{2} | \frac{9}{2}\text{ or }4\frac{1}{2} ≠ \frac{9}{2}\text{ or }\frac{2}{9}
0.\overline{45} | 0.\dot{4}\dot{5} | 0.\bar{4}\bar{5} ≠ 0.45 | 0.45\ldots
\infty | \text{infinity} ≠ -\infty
9 ≠ 9\ldots | 9... | 9\text{ (or 8)} | 9\text{ at minimum} | \text{a minimum of }9
\{2\pm\sqrt{3},-4\} | -4, 2+\sqrt{3}, 2-\sqrt{3} | \{-4, 2-\sqrt{3}, 2+\sqrt{3}\} ≠ \{2\pm\sqrt{3}, 4\} | 2+\sqrt{3}, -4
\{\pm 1, \pm 5\} | \{1,-1,5,-5\} | \pm 5, \pm 1 ≠ \{1, 5\}
\{(\pm 3, 0), (0,0)\} | (0,0), (3,0), (-3,0) ≠ (0,0), (3,0)
\text{no} | No | \text{NO} ≠ \text{yes} | \text{or}
\text{II} | \text{ii} | II ≠ \text{III}
18 | \text{Area} = 18 | \text{Total area} = 18\text{ cm}^2 ≠ \text{Area} = 81 | \text{not} = 18
-4 | \text{slope} = -4 ≠ \text{slope} = 4
x=3 | \text{x = 3} ≠ \text{x = 4}
40\text{ mph} | 40\text{ miles per hour} | 40\text{ mi/h} ≠ 40\text{ km/h} | 40\text{ miles}
\begin{pmatrix} 4 \\ 7 \end{pmatrix} ≠ \begin{bmatrix} 7 & 4 \end{bmatrix}^\top
(3,15)\cup(15,240) | (3,\,15)\cup(15,\,240) ≠ (3,15240)
(7,125) | (7,\,125) | \left(7,\, 125\right) ≠ 7125
\$6.30 | \$6.30. | \$6.3 ≠ \$63.0
\text{(B)} ≠ (B) \text{ or } (C) | \text{(B) is wrong} | \text{(B) is wrong, so (C)} | (B)(C)
"""


def boxed(answer: str) -> str:
    return rf"So the answer is $\boxed{{{answer}}}$."


def pairs():
    """Yield (gold, answer, whether it is the same)."""
    for line in ANSWERS.strip().splitlines():
        same, _, others = line.partition(" ≠ ")
        gold, *answers = same.split(" | ")
        yield from ((gold, answer, True) for answer in answers)
        yield from ((gold, answer, False) for answer in others.split(" | ") if others)


def test_the_same_answer_is_accepted_in_any_form_and_a_near_miss_is_not():
    grades = grade_many((gold, boxed(answer)) for gold, answer, _ in pairs())
    for (gold, answer, same), graded in zip(pairs(), grades, strict=True):
        assert graded.extracted == answer
        assert graded.method not in STATUSES, (gold, answer)
        assert graded.correct is same, (gold, answer, graded.method)


# The method that decides, a gold answer and another answer.
METHODS = r"""
equal | x=4 | 4
equal | 4 | x=4
decimal | 0.5 | \frac{1}{2}
base | 31_4 | 31
choice | \text{(B)} | b
unit | 5\text{ cm} | 5\text{ km}
sequence | 1,2 | (1,2)
word | \text{odd} | Odd
parts | 3:5 | 6:10
math-verify | x+1 | 1+x
"""


@pytest.mark.parametrize("row", METHODS.strip().splitlines())
def test_a_grade_names_the_method_that_decided(row):
    method, gold, answer = row.split(" | ")
    assert grade(gold, boxed(answer)).method == method


STATUS_OF = {
    "no-box": [("12", "The answer is 12."), ("12", r"\boxed{12")],
    "empty-box": [("12", boxed("")), ("12", boxed(r"\text{ }"))],
    "refused": [("12", boxed("1+" * 600 + "1")), ("12", boxed("(" * 300 + ")" * 300))],
    # Gold answers must be LaTeX.
    "unreadable-gold": [
        ("", boxed("12")),
        ("nan", boxed("12")),
        ("1e-07", boxed("10^{-7}")),
        ("She has 3 + 9 = <<3+9=12>>12 eggs.\n#### 12", boxed("12")),
        ("She has three eggs and then buys nine of them, which makes 12", boxed("12")),
        (r"\frac{", boxed("12")),
        *((gold, boxed("5")) for gold in ("NA", "N/A", "NaT", "TODO", "None.", "true")),
        *((gold, boxed("5")) for gold in ("Infinity", "1e+22", "See the solution")),
        (r"The answer is $\boxed{5}$.", boxed("5")),
    ],
    # The grader knows only a few words of Chinese, and none of the other languages.
    "unreadable-answer": [
        (r"\text{even}", boxed(r"\text{偶数}")),
        ("12", boxed("十二")),
        ("12", boxed(r"\text{двенадцать}")),
    ],
}


@pytest.mark.parametrize("status", STATUS_OF)
def test_a_pair_that_cannot_be_compared_gets_a_status(status):
    for gold, response in STATUS_OF[status]:
        graded = grade(gold, response)
        assert (graded.correct, graded.method) == (False, status), (gold, response)
        assert status in STATUSES


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=60))
@example("\0" * 1000)
@example("\\" * 100_001)
@example("{" * 100_000)
@example("12\ud800")
@example(r"\frac")
@example("a(" * 39)
def test_any_text_at_all_gets_a_grade(text):
    assert isinstance(grade("12", text), Grade)
    assert isinstance(grade(r"\text{even}", rf"\boxed{{{text}}}"), Grade)
