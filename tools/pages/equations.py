"""The equations of docstrings, which are plain text, as TeX."""

from __future__ import annotations

import re

SIGNS = {
    "·": r"\cdot",
    "−": "-",
    "×": r"\times",
    "∞": r"\infty",
    "≤": r"\le",
    "≥": r"\ge",
    "≈": r"\approx",
    "⌊": r"\lfloor",
    "⌋": r"\rfloor",
    "⌈": r"\lceil",
    "⌉": r"\rceil",
    "½": r"{1/2}",
    "Σ": r"\sum",
    "₁": "_1",
    "₂": "_2",
    "%": r"\%",
    "α": r"\alpha",
    "β": r"\beta",
    "γ": r"\gamma",
    "θ": r"\theta",
    "φ": r"\varphi",
    "δ": r"\delta",
    "ε": r"\varepsilon",
    "η": r"\eta",
    "κ": r"\kappa",
    "λ": r"\lambda",
    "π": r"\pi",
    "μ": r"\mu",
    "ρ": r"\rho",
    "σ": r"\sigma",
    "τ": r"\tau",
    "Δ": r"\Delta",
}
FUNCTIONS = {"min", "max", "log", "ln", "exp"}
CASES = {"where", "else"}
TOKEN = re.compile(
    r"(?P<hat>\w)\u0302|(?P<log>log₂|log₁₀)"
    r"|(?P<words>[A-Za-zα-ωΔ][a-z\d]+(?: [a-z]{2,}(?![\w(]))*|[A-Z]{2,}|[A-Za-zα-ωΔ])"
    r"(?P<sub>_\w+|½)?(?P<star>\*(?! ?\w))?"
    r"|(?P<below>_\w+)|(?P<square>²)|\^\((?P<power>[^()]+)\)|(?P<other>\S)|(?P<space>\s+)"
)
NEXT = re.compile(r", (?=[^ ,]+ = )")  # the comma before another equation
ROOT = re.compile(r"√\(((?:[^()]|\([^()]*\))*)\)")


def tex(equation: str) -> str:
    r"""The equation between dollar signs.

    >>> print(tex("T = 6 · P · D / (N · R_peak · U)"))
    T = 6 \cdot P \cdot D / (N \cdot R_\text{peak} \cdot U)
    """
    text = re.sub(r" {2,}", " ", "".join(map(_token, TOKEN.finditer(equation)))).strip()
    text = ROOT.sub(r"\\sqrt{\1}", NEXT.sub(r",\\quad ", text))
    if "√" in text:
        raise SystemExit(f"{equation}: a root needs brackets, as in √(p)")
    return text


def _token(match: re.Match[str]) -> str:
    if match["hat"]:
        return rf"\hat{{{match['hat']}}}"
    if match["words"]:
        return _name(match["words"]) + _subscript(match["sub"]) + ("^*" if match["star"] else "")
    if match["log"]:
        return {"log₂": r"\log_2 ", "log₁₀": r"\log_{10} "}[match["log"]]
    if match["below"]:
        return _subscript(match["below"])
    if match["power"]:
        return f"^{{{tex(match['power'])}}}"
    if match["square"]:
        return "^2"
    if match["other"]:
        sign = SIGNS.get(match["other"], match["other"])
        return f"{sign} " if sign.startswith("\\") else sign
    return " "


def _name(words: str) -> str:
    if words in CASES:
        return rf"\text{{ {words} }}"
    if words in FUNCTIONS:
        return f"\\{words}"
    if words in SIGNS:
        return f"{SIGNS[words]} "
    if len(words) == 1 or words.isupper():
        return words
    return rf"\text{{ {words} }}" if " " in words else rf"\text{{{words}}}"


def _subscript(text: str | None) -> str:
    if not text:
        return ""
    name = text.removeprefix("_")
    if name in SIGNS:
        return f"_{SIGNS[name]}"
    return f"_{name}" if len(name) == 1 else rf"_\text{{{name}}}"
