"""What asks for torch where there is none, or there seems to be none."""

from __future__ import annotations

import subprocess
import sys


def test_without_torch_one_sentence_says_how_to_get_it() -> None:
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    sentence = (
        "MissingExtraError the training loop of calc.codesign needs torch, which is not installed;"
        ' in the checkout: pip install ".[torch]"'
    )
    assert done.stdout.splitlines() == [sentence] * 2, done.stderr
