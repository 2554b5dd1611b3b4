"""The answer inside a response: its last closed box, before any run-on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.grading.extract import cut_run_on, last_box

balanced = st.recursive(
    st.text(alphabet="0123456789xy+- ,.", max_size=8),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: "".join(f"{{{part}}}" for part in parts)),
    max_leaves=8,
)


@given(balanced, st.text(alphabet="ab \\{", max_size=5))
def test_the_content_of_a_box_comes_back_whole(content, before):
    assert last_box(before.rstrip("\\") + rf" \boxed{{{content}}} and so on.") == content


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed {7}", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{ x \right.}", r"\left\{ x \right."),
        (r"\boxed{5} or rather \boxed{6", "5"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"} \boxed{5}", "5"),
        ("no box", None),
        (r"\boxed{5", None),
        (r"\boxed 5", None),
    ],
)
def test_takes_the_last_closed_box(text, content):
    assert last_box(text) == content


def test_a_million_unclosed_boxes_are_read_once():
    assert last_box(r"\boxed{" * 1_000_000) is None


@pytest.mark.parametrize(
    ("response", "text", "was_cut"),
    [
        ("It is 5.", "It is 5.", False),
        ("It is 5.\n\nProblem: find x.", "It is 5.\n", True),
        ("It is 5.\n**Question 2:** find x.", "It is 5.", True),
        ("It is 5.<|im_end|>\n<|im_start|>user\nfind x", "It is 5.", True),
        ("It is 5.<|user|>find x", "It is 5.", True),
        ("It is 5.<|im_end|><|endoftext|>", "It is 5.", False),
        ("\nProblem: find x.\nIt is 5.", "\nProblem: find x.\nIt is 5.", False),
        ("<|im_start|>assistant\nIt is 5.", "<|im_start|>assistant\nIt is 5.", False),
        ("The problem: it is 5.", "The problem: it is 5.", False),
        ("", "", False),
    ],
)
def test_cuts_what_follows_the_answer_and_says_so(response, text, was_cut):
    assert cut_run_on(response) == (text, was_cut)
