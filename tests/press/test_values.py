"""Any text that a value may hold prints as itself, wherever the value stands."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings, strategies as st

from press.document.pandoc import parse, plain_text
from press.document.weave import escaped, shown_value

printable = st.text(
    st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("×µ–é²"), max_size=20
).map(lambda text: " ".join(text.split()))


# Each example is a call of pandoc, and holds forty texts.
@settings(
    max_examples=settings().max_examples // 5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(texts=st.lists(printable, min_size=40, max_size=40))
def test_an_escaped_text_prints_as_itself_in_a_line_and_in_a_cell(texts: list[str]) -> None:
    lines = "\n\n".join(f"a {escaped(text)} b" for text in texts)
    rows = "\n".join(f"| a {escaped(text)} b | end |" for text in texts)
    *paragraphs, table = parse(f"{lines}\n\n| x | y |\n|---|---|\n{rows}\n")[1]
    expected = "\n".join(f"a {text} b" for text in texts)
    assert " ".join(plain_text(paragraphs).split()) == " ".join(expected.split())
    for text, row in zip(texts, table["c"][4][0][3], strict=True):
        assert plain_text(row[1][0][4]) == " ".join(f"a {text} b".split())
        assert plain_text(row[1][1][4]) == "end"


def test_quartos_rule_for_inline_values() -> None:
    assert shown_value({"text/plain": "'it\\'s'"}) == ("it's", False)
    assert shown_value({"text/plain": '"it\'s"'}) == ("it's", False)
    assert shown_value({"text/plain": "0.25"}) == ("0.25", False)
    assert shown_value({"text/plain": "X", "text/markdown": "**x**"}) == ("**x**", True)
    assert escaped("0.25") == "0.25"
    assert escaped("2,039.4") == r"2\,039\.4"
