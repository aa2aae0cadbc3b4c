"""Parts that need torch, where there is none, or there seems to be none."""

from __future__ import annotations

from collections.abc import Callable


def test_without_torch_one_sentence_says_how_to_get_it(fresh_python: Callable[[str], str]) -> None:
    code = """if True:
        import sys
        sys.modules["torch"] = None
        from calc import codesign
        for name in ("Trainer", "CPUOffloadingOptimizer"):
            try:
                getattr(codesign, name)
            except ImportError as refusal:
                print(type(refusal).__name__, refusal)
    """
    sentence = (
        "MissingExtraError the training loop of calc.codesign needs torch, which is not installed;"
        ' pip install "machine-foundations[torch]", or ".[torch]" in the checkout'
    )
    assert fresh_python(code).splitlines() == [sentence] * 2
