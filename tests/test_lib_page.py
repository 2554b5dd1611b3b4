"""The examples on the page of `lib` (`pydoc lib`) work as they stand."""

import doctest

import torch

import lib


def test_the_examples_of_the_page_return_what_it_shows(monkeypatch):
    # A GPU rounds differently.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    results = doctest.testmod(lib)
    assert results.attempted > 5
    assert results.failed == 0
