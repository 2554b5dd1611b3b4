"""`reproduce --profile laptop` as a user types it, against a stand-in for the hub that serves tiny models."""

import csv
import re
import zlib
from collections import namedtuple

import matplotlib
import pytest
import stand_in_models
import torch
from commands import ROOT, commands_in, copy_repository
from hub_server import HubServer, needed_bytes

from lib.prompts import problems

QWEN, LLAMA, GEMMA = REPOS = ("Qwen/Qwen2.5-Math-7B", "meta-llama/Llama-3.1-8B-Instruct", "google/gemma-3-4b-it")
NAMES = {"Qwen2.5-Math-7B", "Llama-3.1-8B-Instruct", "Gemma-3-4b-it"}
MATH500_FILE = ROOT.parent / "shared" / "data" / "math500.jsonl"
LAYERS = 3  # what the profile reads
PDF_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.S)
PDF_TEXT = re.compile(rb"\(((?:[^()\\]|\\.)*)\)", re.S)

# A command that is over: what it printed, the bytes of weights and the files of weights that it asked for.
Run = namedtuple("Run", "code out err sent asked")

pytestmark = pytest.mark.skipif(not MATH500_FILE.exists(), reason=f"no copy of MATH-500 at {MATH500_FILE}")


class User:
    """Someone with a copy of the repository, a hub of their own, and nothing in any cache."""

    def __init__(self, folder, server):
        self.folder, self.server, self.copy = folder, server, copy_repository(folder / "copy")

    def reproduce(self, *options):
        environment = {
            "HF_HUB_OFFLINE": "0",
            "HF_ENDPOINT": self.server.url,
            "HF_HOME": str(self.folder / "hf"),
            "HF_HUB_CACHE": str(self.folder / "hf" / "hub"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "MPLCONFIGDIR": matplotlib.get_cachedir(),  # its list of fonts takes seconds to make
        }
        self.server.reset()
        problems._from_hub.cache_clear()
        with commands_in(self.copy, environment) as typed, pytest.MonkeyPatch.context() as patch:
            self.server.stand_in(patch, self.folder / "hf")
            done = typed("reproduce", "--profile", "laptop", "--name", "mine", *options)
        asked = {path for _, path, _ in self.server.requests if path.endswith(".safetensors")}
        return Run(*done, self.server.sent_weights, asked)

    def figure(self, name):
        return self.copy / "figures" / "mine" / name


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    torch.manual_seed(0)
    stand_in_models.write_models(root)
    stand_in_models.write_math500(root, MATH500_FILE)
    return root


def well_served(user):
    """Run twice; the connection breaks once, in the middle of the first embedding."""
    user.server.break_after = 2_000_000
    first = user.reproduce("--only", "01,02,04", "--limit", "6")
    assert user.server.break_after is None
    return {"first": first, "second": user.reproduce("--only", "01", "--limit", "6")}


def badly_served(user):
    """Mistype a revision, be refused twice, then get access to a hub that sends only whole files."""
    options, runs = ("--only", "01", "--limit", "4"), {}
    runs["nope"] = user.reproduce(*options, "--model", f"{QWEN}@nope")
    for status in (401, 403):
        user.server.gated[LLAMA] = status
        runs[status] = user.reproduce(*options)
    user.server.gated.clear()
    user.server.ignore_range = True
    runs["granted"] = user.reproduce(*options)
    return runs


def story(told, hub, folder):
    """Return a user of a hub of their own, and the commands that they ran."""
    with HubServer(hub) as server:
        user = User(folder, server)
        return user, told(user)


@pytest.fixture(scope="module")
def well(hub, tmp_path_factory):
    return story(well_served, hub, tmp_path_factory.mktemp("user"))


@pytest.fixture(scope="module")
def badly(hub, tmp_path_factory):
    return story(badly_served, hub, tmp_path_factory.mktemp("user"))


def needed(root, *repos):
    return sum(needed_bytes(root / repo, LAYERS) for repo in repos)


def table(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def pdf_text(path):
    """Return the text of a figure without its line breaks; characters of other fonts are lost."""
    pages = []
    for stream in PDF_STREAM.findall(path.read_bytes()):
        try:
            pages.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return b"".join(PDF_TEXT.findall(b"".join(pages))).replace(b"\0", b"").decode("latin-1")


def complaint(run):
    """Return the one line that a refused command wrote after saying where its run goes."""
    assert run.code == 2, run.err[-2000:]
    *place, line = run.err.strip().splitlines()
    assert place in ([], ["profile mine: results/mine, figures/mine"]) and line.startswith("error: ")
    return line


def test_a_first_run_draws_the_papers_figures_though_the_connection_breaks_once(well):
    user, runs = well
    assert runs["first"].code == 0, runs["first"].err[-2000:]
    for figure in ("fig04", "fig07", "fig09", "fig11", "fig13", "fig18"):
        assert all(user.figure(f"{figure}.{kind}").stat().st_size > 1000 for kind in ("png", "pdf", "csv"))
        assert f"{figure}.png" in runs["first"].out


@pytest.mark.parametrize(
    "figure, models",
    [
        ("fig09", {"Qwen2.5-Math-7B"}),
        ("fig11", NAMES),
        ("fig13", {"Qwen2.5-Math-7B"}),
        ("fig18", {"Llama-3.1-8B-Instruct"}),
        ("lambda_by_head", NAMES),
        ("fig07", NAMES),
    ],
)
def test_captions_and_tables_name_their_models(well, figure, models):
    user, _ = well
    assert {row["model"] for row in table(user.figure(f"{figure}.csv"))} == models
    text = pdf_text(user.figure(f"{figure}.pdf"))
    text = text.replace(" ", "")  # of which a line that ends there has none
    assert "MATH-500" in text and all(f"{name}@" in text for name in models)


def test_every_head_of_each_family_is_measured_on_every_problem(well):
    user, _ = well
    rows = table(user.figure("lambda_by_head.csv"))
    heads = {name: max(int(row["head"]) for row in rows if row["model"] == name) for name in NAMES}
    assert heads == {"Qwen2.5-Math-7B": 28, "Llama-3.1-8B-Instruct": 32, "Gemma-3-4b-it": 8}
    assert {row["n"] for row in rows} == {"6"}


def test_only_the_first_layers_are_sent_and_a_second_run_fetches_no_weights(hub, well):
    _, runs = well
    least = needed(hub, *REPOS)
    assert least <= runs["first"].sent <= 1.02 * least
    assert least < 0.7 * sum(path.stat().st_size for repo in REPOS for path in (hub / repo).glob("*.safetensors"))
    assert {path.split("/resolve/")[0][1:] for path in runs["first"].asked} == set(REPOS)
    assert runs["second"].code == 0, runs["second"].err[-2000:]
    assert not runs["second"].asked and not runs["second"].sent


def test_a_revision_that_does_not_exist_is_one_line(badly):
    _, runs = badly
    assert f"{QWEN} has no revision 'nope'" in complaint(runs["nope"])


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model_is_one_line_that_says_where_to_ask_and_how_to_log_in(badly, status):
    user, runs = badly
    line = complaint(runs[status])
    assert f"{LLAMA} is gated: request access on {user.server.url}/{LLAMA}" in line
    assert "hf auth login" in line


def test_a_refusal_is_found_before_any_weights_are_fetched(badly):
    _, runs = badly
    assert not runs[401].asked and not runs[403].asked
    assert {path.split("/resolve/")[0][1:] for path in runs["granted"].asked} == {QWEN, LLAMA}


def test_a_hub_that_sends_only_whole_files_will_do(hub, badly):
    user, runs = badly
    assert runs["granted"].code == 0, runs["granted"].err[-2000:]
    assert runs["granted"].sent > needed(hub, LLAMA, GEMMA)
    assert {row["model"] for row in table(user.figure("fig18.csv"))} == {"Llama-3.1-8B-Instruct"}
