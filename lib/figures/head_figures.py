"""How the curves of a head are named in the figure of likelihoods."""

from lib.figures.draw import HeadCurves

HEAD_CURVES = {
    "fig13": [
        HeadCurves({"none": "w/o Meaningless tokens", "mless": "w/ Meaningless tokens"})
    ]
}
FIRST_TOKEN = "The first token takes most of the attention and is left out. "
