"""A term is explained once, as it is written, and what stands around it is text."""

from lib.report.glossary import TERMS, Glossary


def terms(html):
    return [
        part.partition("</dfn>")[0].rpartition(">")[2]
        for part in html.split("<dfn")[1:]
    ]


def test_a_term_is_explained_where_it_first_stands_also_in_its_plural():
    glossary = Glossary()
    first = glossary.marked("Two heads, then a head.")
    assert terms(first) == ["heads"]
    assert f'data-term="{TERMS["head"]}"' in first
    assert terms(glossary.marked("All heads of the first layer")) == ["first layer"]


def test_what_stands_around_a_term_is_written_as_text():
    html = Glossary().marked("<b> & a head <i> or two heads </i>")
    assert html.startswith("&lt;b&gt; &amp; a <dfn")
    assert html.endswith("heads &lt;/i&gt;")
    assert " or two heads" in html
