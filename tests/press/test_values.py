"""Any text that a value may hold prints as itself, wherever the value stands."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings, strategies as st

from press.document.pandoc import parse, plain_text
from press.document.weave import escaped, shown_value
from tests.press.tiny_book import Write

printable = st.text(
    st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("×µ–é²"), max_size=20
).map(lambda text: " ".join(text.split()))
# Each example is a call of pandoc, and holds forty texts.
each_takes_pandoc = settings(
    max_examples=settings().max_examples // 5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def printed(markdown: str) -> str:
    return plain_text(parse(markdown)[1])


@each_takes_pandoc
@given(texts=st.lists(printable, min_size=40, max_size=40))
def test_an_escaped_text_prints_as_itself(texts: list[str]) -> None:
    lines = "\n\n".join(f"a {escaped(text)} b" for text in texts)
    expected = "\n".join(f"a {text} b" for text in texts)
    assert " ".join(printed(lines).split()) == " ".join(expected.split())


@each_takes_pandoc
@given(texts=st.lists(printable.filter(bool), min_size=40, max_size=40))
def test_an_escaped_text_stays_in_its_cell_of_a_table(texts: list[str]) -> None:
    rows = "\n".join(f"| a {escaped(text)} b | end |" for text in texts)
    _, blocks = parse(f"| x | y |\n|---|---|\n{rows}\n")
    body = blocks[0]["c"][4][0][3]
    assert [plain_text(row[1][0][4]) for row in body] == [f"a {text} b" for text in texts]
    assert all(plain_text(row[1][1][4]) == "end" for row in body)


def test_quartos_rule_for_inline_values() -> None:
    assert shown_value({"text/plain": "'it\\'s'"}) == ("it's", False)
    assert shown_value({"text/plain": '"it\'s"'}) == ("it's", False)
    assert shown_value({"text/plain": "0.25"}) == ("0.25", False)
    assert shown_value({"text/plain": "X", "text/markdown": "**x**"}) == ("**x**", True)
    assert escaped("0.25") == "0.25"
    assert escaped("2,039.4") == r"2\,039\.4"


def test_a_verbatim_value_keeps_to_its_table_row(write_book: Write) -> None:
    from press.build import render
    from tests.page_texts import page_texts

    root = write_book(
        "# A\n\n```{python}\n#| echo: false\nfrom IPython.display import Markdown\n```\n\n"
        "| a | b |\n|---|---|\n| `{python} Markdown('x | y')` | z |\n"
    )
    render(root)
    assert "x | y z" in page_texts(root / "_book")["index.html"].split("\n")
