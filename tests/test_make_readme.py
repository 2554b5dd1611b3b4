"""What the documents say of small tables, and what is written when one is missing."""

import pandas as pd
import pytest
from pydantic.fields import FieldInfo
from report_folder import claim

from docs import answer_blocks, make_readme, profile_blocks, sources, study_blocks
from lib.claims.verdict_tables import verdict_of
from lib.errors import InputError

NO_SHARES = pd.DataFrame(columns=["model", "inserted", "layer", "mass", "n"])


def verdict(**changes):
    return verdict_of(claim(**changes))


def untested(model):
    """Return a verdict on a model that was not measured."""
    nothing = dict.fromkeys(("effect", "low", "high"))
    return verdict(model=model, n=0, **nothing)


@pytest.fixture
def told(monkeypatch):
    """Let the documents tell of these verdicts and shares alone."""

    def tell(*verdicts, shares=NO_SHARES):
        monkeypatch.setattr(sources, "stored_as_verdicts", lambda profile: verdicts)
        monkeypatch.setattr(sources, "families_shares", lambda: shares)

    return tell


@pytest.fixture
def table(monkeypatch):
    """Let every stored csv be this table."""

    def keep(**columns):
        monkeypatch.setattr(sources, "stored", lambda path: pd.DataFrame(columns))

    return keep


HELD = [
    (["supported", "supported"], "2 of 2 models"),
    (["contradicted", "small"], "no: 0 of 2 models"),
    (["supported", "undecided"], "1 of 2 models, 1 undecided"),
    (["undecided", "in part"], "0 of 2 models, 1 in part, 1 undecided"),
]


@pytest.mark.parametrize("verdicts, text", HELD)
def test_in_how_many_models_a_claim_holds(verdicts, text):
    rows = [verdict(model=f"m{i}", verdict=word) for i, word in enumerate(verdicts)]
    assert answer_blocks.held(rows, "dilution") == text


def test_of_too_few_problems_nothing_is_said_to_hold():
    few = verdict(model="few", n=3)
    assert answer_blocks.held([verdict(), few], "dilution") == "1 of 1 models"


def test_the_headline_names_the_models_that_were_tested(told):
    tested = [verdict(id="accuracy-mless", model=name) for name in ("a", "b")]
    told(*tested, untested("c"))
    assert "They are a and b, with 4-bit weights." in answer_blocks.headline()


SHARES = pd.DataFrame(
    [
        ("m", "slashes", 1, 61.4, 30),
        ("m", "slashes", 2, 12.0, 50),
        ("m", "a sentence as long", 1, 70.6, 40),
        ("m", "slashes, untrained networks", 1, 34.0, 90),
    ],
    columns=NO_SHARES.columns,
)


def test_the_table_of_models_has_shares_of_layer_1_and_numbers_of_enough_problems(
    told,
):
    gain = verdict(id="likelihood-gain", model="m")
    few = verdict(id="accuracy-mless", model="m", n=3)
    told(gain, few, untested("c"), shares=SHARES)
    heading, _, *rows = answer_blocks.models_table().splitlines()
    assert "slashes take, % of layer 1 (n = 40)" in heading
    assert rows == ["|m|61|71|+0.80 [+0.70, +0.90], n = 24||||"]


def test_quantising_once_more_is_told_with_the_fewest_problems(table):
    table(
        n=[60, 40],
        verdicts_moved=["a b", None],
        claims=[10, 20],
        lambda_largest_change=[0.1, 0.2],
        log_ratio_largest_change=[0.4, 0.3],
    )
    text = study_blocks.requantised()
    assert "two of these models were quantised once more, to Q4_0 (n = 40;" in text
    assert "λ of a head moves by at most 0.20," in text
    assert "a log ratio of activations by at most 0.40," in text
    assert text.endswith("and 2 of 30 verdicts change.")


def test_rounding_is_told_of_each_pair_in_either_dtype(table):
    table(
        model=["m", "m"],
        more=["mless", "mless"],
        less=["none", "hidden-from-layer-1"],
        n=[50, 50],
        scored=[80, 80],
        log_p_change=[0.25, 0.25],
        log_p_change_low=[0.20, 0.20],
        log_p_change_high=[0.30, 0.30],
        ratio_change=[0.45, 0.35],
        ratio_change_low=[0.40, 0.30],
        ratio_change_high=[0.50, 0.40],
        ratio_change_largest=[1.26, 1.84],
        points_float32=[1.5, 0.5],
        low_float32=[0.5, -0.5],
        high_float32=[2.5, 1.5],
        spread_float32=[0.91, 0.31],
        effective_float32=[70.4, 75],
        largest_weight_float32=[1.98, 2.5],
        points_bfloat16=[1.0, -0.5],
        low_bfloat16=[-0.5, -3.5],
        high_bfloat16=[2.5, 2.5],
        spread_bfloat16=[1.01, 0.57],
        effective_bfloat16=[60, 50],
        largest_weight_bfloat16=[2.0, 6.4],
    )
    sentences, _, _, _, *rows = study_blocks.bfloat16().splitlines()
    itself = "answer itself by 0.250 [0.200, 0.300] nats (80 answers to 50 problems,"
    assert itself in sentences
    slashes = "change of log p by 55 slashes is off by 0.450 [0.400, 0.500] nats on"
    assert slashes in sentences
    assert "0.350 [0.300, 0.400] nats on average, at most by 1.8." in sentences
    assert rows == [
        "|55 slashes|float32|+1.5 [+0.5, +2.5]|0.91|70|2.0|",
        "|55 slashes|bfloat16|+1.0 [-0.5, +2.5]|1.01|60|2.0|",
        "|layer 1's part of the slashes|float32|+0.5 [-0.5, +1.5]|0.31|75|2.5|",
        "|layer 1's part of the slashes|bfloat16|-0.5 [-3.5, +2.5]|0.57|50|6.4|",
    ]


def test_answers_that_were_asked_again_name_another_processor(table):
    table(
        model=["a", "b"],
        dtype="bfloat16",
        processor=["x", "x"],
        processor_again=["x", "y"],
        other_text=[5, 6],
        n=[40, 50],
        lost=[1, 2],
        gained=[3, 1],
    )
    text = study_blocks.again()
    assert "(bfloat16), a gave 5 of 40 answers with another text, and 4 changed" in text
    assert "(bfloat16, on another kind of processor), b gave 6 of 50" in text
    assert "and 3 changed between right and wrong." in text


def test_heads_of_the_demo_are_counted_in_layer_1_with_the_slashes_problems(
    told, table
):
    told(verdict(id="accuracy-mless"))
    table(
        layer=[1, 1, 2, 1],
        condition=["mless", "mless", "mless", "random"],
        high=[0.9, 1.1, 0.5, 0.8],
        n=[30, 30, 30, 40],
    )
    counted = "below 1 in 1 of 2 heads of layer 1"
    sentence = "with an ordinary sentence as long in 1 of 1 (n = 30)."
    text = answer_blocks.demo_claims()
    assert counted in text
    assert sentence in text


def test_only_a_default_that_is_longer_than_others_is_cut():
    most = "x" * profile_blocks.LONGEST_DEFAULT
    assert profile_blocks.default_text(FieldInfo(default=most)) == f"`{most}`"
    assert profile_blocks.default_text(FieldInfo(default=f"{most}y")) == f"`{most}…`"
    assert profile_blocks.default_text(FieldInfo()) == "required"


@pytest.mark.parametrize("content", [None, b""])
def test_a_stored_file_that_is_missing_or_empty_is_named(tmp_path, content):
    path = tmp_path / "points.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="make reproduce writes it"):
        sources.stored(path)


def test_a_benchmark_that_is_missing_is_run_by_another_command():
    path = sources.BENCHMARKS / "of_nothing.csv"
    with pytest.raises(InputError) as error:
        sources.stored(path)
    assert str(error.value).startswith(
        "cannot read benchmarks/results/of_nothing.csv ("
    )
    assert str(error.value).endswith("make bench writes it")


def test_a_table_of_a_study_that_is_missing_names_the_study():
    with pytest.raises(InputError, match=r"python -m studies\.nothing writes it$"):
        sources.stored(sources.STUDIES / "nothing.csv")


BLOCK = "before\n<!-- begin numbers -->\nold\n<!-- end numbers -->\nafter\n"


@pytest.fixture
def documents(monkeypatch, tmp_path):
    """Two documents with one block each, of a name that there is."""
    files = (tmp_path / "one.md", tmp_path / "two.md")
    for file in files:
        file.write_text(BLOCK)
    monkeypatch.setattr(make_readme, "DOCUMENTS", files)
    monkeypatch.setattr(make_readme, "BLOCKS", {"numbers": lambda: "new"})
    return files


def test_every_document_gets_its_blocks_anew_and_keeps_what_stands_around(documents):
    assert make_readme.main() == 0
    assert [file.read_text() for file in documents] == [BLOCK.replace("old", "new")] * 2


def test_a_block_that_nobody_writes_ends_in_one_line(documents, capsys):
    text = BLOCK.replace("numbers", "thoughts")
    documents[0].write_text(text)
    assert make_readme.main() == 2
    line = "error: unknown block 'thoughts': choose from numbers\n"
    assert capsys.readouterr().err == line
    assert [file.read_text() for file in documents] == [text, BLOCK]
