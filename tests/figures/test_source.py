"""The code that a notebook unfolds is the code that runs."""

import html
import inspect
import subprocess
import sys

import pytest

from lib import figures, paths
from lib.attention.function import Recording
from lib.attention.received import observe
from lib.figures.source import unfold


def test_a_function_is_folded_to_a_line_with_its_name_and_file():
    shown = unfold("lib.arm.moving.redistribute", "lib.figures.source.unfold")
    first, second = shown._repr_html_().split("</details>\n")
    assert first.startswith("<details><summary>The code: <code>redistribute</code>")
    assert "<code>lib/arm/moving.py</code></summary>" in first
    assert "def unfold(*names):" in html.unescape(second)
    assert repr(shown) == (
        "The code of lib.arm.moving.redistribute, lib.figures.source.unfold"
    )


@pytest.mark.parametrize(
    "function",
    [observe, Recording.add, figures.source.Unfolded],
    ids=["decorated", "a method", "a class"],
)
def test_what_is_read_is_what_python_runs(function):
    shown = unfold(f"{function.__module__}.{function.__qualname__}")._repr_html_()
    _, code = shown.removesuffix("</pre></details>").split("<pre>")
    assert html.unescape(code) == inspect.getsource(function)
    assert f"<code>{function.__qualname__}</code>" in shown
    file = function.__module__.replace(".", "/")
    assert f"<code>{file}.py</code></summary>" in shown


def test_what_the_code_says_is_text_and_not_markup():
    shown = unfold("lib.figures.source._details")._repr_html_()
    assert shown.count("<details>") == shown.count("</details>") == 1


@pytest.mark.parametrize("name", ["lib.gone", "lib.figures.gone", "lib.paths.ROOT"])
def test_a_function_that_is_gone_is_named(name):
    with pytest.raises(ValueError, match=rf"no function is called {name}$"):
        unfold(name, "lib.figures.source.unfold")


def test_code_is_shown_without_the_libraries_that_run_a_network():
    code = "from lib import figures; figures.unfold('lib.attention.received.observe');"
    code += " import sys; print('torch' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=paths.ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
