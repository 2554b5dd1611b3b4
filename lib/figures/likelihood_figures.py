"""The figures of likelihoods: how much likelier the gold solution or the gold answer
becomes.

run: a profile; tables: as `lib.claims.contrasts` makes them, with the columns panel,
curve, x, model, effect, low, high, n and band.
"""

from lib.figures import draw
from lib.figures.forest import MINUS, forest, pair_by_pair
from lib.figures.head_figures import FIRST_TOKEN, HEAD_CURVES
from lib.figures.layout import Layout, panels
from lib.figures.looks import EVEN, HEIGHT, RECEIVED, integer_axis, look_of_model

# What slashes give, what of it layer 1 gives, and what a real help gives.
ANSWERING = [
    f"mless {MINUS} none",
    f"mless {MINUS} hidden-from-layer-1",
    f"example {MINUS} none",
]
# The titles and the x axes of panels that vary one thing.
COURSES = {
    "depth": ("Seen by some layers only", "k, a number of first layers"),
    "length": ("How many", "inserted slashes"),
    "place": ("Where", "place of the slashes"),
}


def likelihood(run, table, name="likelihood"):
    """Draw differences of log p between conditions, those of the panel `pairs`, as a
    forest.
    """
    pairs = table[table.panel == "pairs"]
    section = run.likelihood
    layout = Layout(
        height=0.7 + 0.14 * (len(pairs) + pairs.x.nunique()),
        note=(
            "Log p under the first condition less log p under the second,"
            f" teacher-forced, {section.dtype}, solutions of at most"
            f" {section.max_solution_tokens} tokens."
        ),
    )
    for (ax,), rows in panels(run, name, pairs, ["panel"], "likelihood", layout):
        forest(ax, pair_by_pair(rows))
        ax.set_title("")


def answer_at_once(run, table):
    """Draw the same of the gold answer, without a solution before it."""
    likelihood(run, table, name="answer_at_once")


def overview(run, table, curves):
    """Draw the paper's picture and the answer: one head without and with the slashes,
    and what they give in nats.
    """
    of_pairs = table[table.panel == "pairs"]
    pairs = of_pairs[of_pairs.x.isin(ANSWERING)]
    _, head = next(iter(curves.groupby(["model", "layer", "head"], sort=False)))
    model, problem = head[["model", "problem"]].iloc[0]
    layout = Layout(
        each=2,
        height=1.25 * HEIGHT,
        widths=(1, 1.3),
        ylabel=RECEIVED,
        note=(
            f"Left: {model}, a head that the profile chose and not a typical one. One"
            f" {run.attention.format} prompt, of problem {problem}. {FIRST_TOKEN}"
        ),
    )
    saved = [pairs, head]
    for (left, right), rows in panels(
        run, "overview", pairs, ["panel"], "likelihood", layout, saved
    ):
        draw.received(left, head, HEAD_CURVES["fig13"][0])
        forest(right, pair_by_pair(rows))
        right.set_title("How much likelier the worked solution becomes")


def likelihood_courses(run, table):
    """Draw what so many slashes, in another place, or seen by some layers only give
    against none, in nats. The points of a panel have the same problems.
    """
    courses = table[table.panel.isin(list(COURSES))]
    courses = courses.assign(series=courses.model + ", " + courses.curve)
    layout = Layout(ylabel="nats, against none")
    for (ax,), rows in panels(
        run, "likelihood_courses", courses, ["panel"], "likelihood", layout
    ):
        ax.axhline(0, **EVEN)
        style = draw.SeriesStyle(size=5)
        draw.estimates(ax, rows, "x", "effect", "series", _looks_of(rows), style)
        panel = rows.panel.iloc[0]
        title, name = COURSES[panel]
        if panel == "depth":
            integer_axis(ax.xaxis, "")
        counts = " to ".join(map(str, sorted({rows.n.min(), rows.n.max()})))
        ax.set(title=f"{title}, n = {counts}", xlabel=name)


def _looks_of(rows):
    """Return the Look of each series: its model's, hollow from a second one on."""
    looks = {}
    for model, own in rows.groupby("model", sort=False):
        first, *others = dict.fromkeys(own.series)
        looks[first] = look_of_model(model)
        hollow = look_of_model(model)._replace(fill="none")
        looks |= dict.fromkeys(others, hollow)
    return looks
