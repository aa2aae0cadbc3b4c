"""Rows for the project out of a reader's own results: conditions and figures, and no names.

What `calc check` understood of a claim or a log is written as `reading.load` reads it, so that
`calc validate --published` compares it at once, and it can be sent as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calc.core.errors import InputError
from calc.core.files import writable, write_text
from calc.published.checking import verdict
from calc.published.claims import Claim
from calc.published.reading import NUMBERS, TEXTS, WORDS

MEASURED: Mapping[str, tuple[str, str, float]] = WORDS["contributed"]
"""What a figure of a claim is named in a row, its unit, and how many of it one of the claim is."""
UNSAID = ("id", "source_key", "confidence", "notes", "system")
"""Conditions of a claim that say where it was found, and may name somebody."""


def contribute(
    claims: Sequence[tuple[str | Mapping[str, Any], str]], file: Path | str, about: str = ""
) -> str:
    """Write claims, each with what is said beside it, as rows of published measurements.

    Their source has the name of the file. Of a model's path its last part stays; of what else a log
    says of people and computers, nothing does. Returned is the text of the file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     claim = "Llama 3.1 8B on 1 H100, vLLM 0.24.0: 12.5 requests/s"
    ...     print(contribute([(claim, "")], Path(folder, "my-report.toml")))
    [[serving]]
    id = "my-report-1"
    device = "h100"
    model = "llama-3-1-8b"
    software = "vLLM 0.24.0"
    num_devices = 1
    measured = [{ name = "requests_per_second", value = 12.5, unit = "requests/s" }]
    source_key = "my-report"
    confidence = "read in a log of the contributor"
    <BLANKLINE>
    """
    target = writable(file)
    tables = []
    for number, (result, beside) in enumerate(claims, 1):
        said = f"{beside} {about}".strip()
        try:
            tables.append(_table(result, said, f"{target.stem}-{number}", target.stem))
        except InputError as reason:
            which = f"result {number}: " if len(claims) > 1 else ""
            raise InputError(f"{which}{reason}") from None
    text = "\n".join(tables)
    write_text(target, text)
    return text


def _table(result: str | Mapping[str, Any], about: str, name: str, source: str) -> str:
    """Return the table of a claim in TOML, if it is possible and says enough for a row."""
    held = verdict(result, about)
    claim = held.claim
    if not held.possible:
        raise InputError(
            f"no row is made of {held.hardest.share:.3g} times the bound: something else was run"
            " than what is said"
        )
    if not str(claim.row["software"]).strip():
        raise InputError(
            'a row needs its software, which is not said: say it beside, as in --about "vLLM'
            ' 0.24.0"',
            argument="about",
        )
    lines = [f"[[{claim.row.group}]]", f"id = {_in_toml(name)}"]
    lines += [f"{key} = {_in_toml(value)}" for key, value in _conditions(claim).items()]
    lines += [f"measured = [{', '.join(_measured(claim))}]", f"source_key = {_in_toml(source)}"]
    return "\n".join([*lines, 'confidence = "read in a log of the contributor"', ""])


def _conditions(claim: Claim) -> dict[str, Any]:
    said = {key: claim.row[key] for key in (*TEXTS, *NUMBERS) if key not in UNSAID}
    if said["model"] is not None:
        said["model"] = Path(str(said["model"])).name
    return {key: value for key, value in said.items() if value is not None}


def _measured(claim: Claim) -> list[str]:
    tables = []
    for figure, value in claim.figures.items():
        if figure not in MEASURED:
            raise InputError(f"{WORDS['figures'][figure][0]} alone makes no row")
        title, unit, scale = MEASURED[figure]
        length = claim.row.number("input_len")
        title = title.format(_1024_prompt=f"_{length:.0f}_prompt" if length else "")
        parts = {"name": title, "value": float(f"{value * scale:.6g}"), "unit": unit}
        parts_text = ", ".join(f"{key} = {_in_toml(part)}" for key, part in parts.items())
        tables.append(f"{{ {parts_text} }}")
    return tables


def _in_toml(value: Any) -> str:
    """Return a value as TOML has it; a whole number has no point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)
