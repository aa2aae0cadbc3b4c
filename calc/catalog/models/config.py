"""A Hugging Face `config.json`, of which each number is read once, checked and accounted for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from calc.core.errors import InputError, abbreviated
from calc.core.files import parse_json, read_text
from calc.core.records import DATA, read_toml

NESTED = "text_config"  # of models that read images too
SPOKEN = "thinker_config"  # of models that speak besides: the part that reads and writes text
QUANTIZED = "quantization_config", "compression_config"
APART = "hf_quant_config.json"
"""The file in which ModelOpt's older checkpoints say what is quantised."""
MOST, MOST_LAYERS = 10**12, 10_000


@cache
def known() -> dict[str, dict[str, Any]]:
    """Return what configurations call their numbers, by family, and fields that change no count."""
    return read_toml(DATA / "configurations.toml")


class Config:
    """The numbers of a configuration, by name, and which of them were asked for."""

    def __init__(self, path: str | Path, values: dict[str, Any] | None = None) -> None:
        self.path = path
        self._values = _read(path) if values is None else values
        self._asked: set[str] = set()
        for part in (SPOKEN, NESTED):
            inner = self._values.get(part)
            if inner is not None:
                if not isinstance(inner, dict):
                    raise self.error(f"{part} must be an object; got {abbreviated(inner)}")
                outer = {name: value for name, value in self._values.items() if name != part}
                self._values = outer | inner

    def error(
        self,
        said: str,
        *,
        argument: str | None = None,
        given: object = None,
        allowed: object = None,
    ) -> InputError:
        return InputError(f"{self.path}: {said}", argument=argument, given=given, allowed=allowed)

    def get(self, name: str, default: object = None) -> Any:
        """The value of that name, or the default where it is not there or null."""
        self._asked.add(name)
        value = self._values.get(name)
        return default if value is None else value

    def is_read(self, name: str) -> bool:
        """Return whether the field of that name was read."""
        return name in self._asked

    def leave(self, name: str) -> None:
        """A field that was looked at and not counted, which the notes tell."""
        self._asked.discard(name)

    def is_null(self, name: str) -> bool:
        """Return whether a field is there and says that the model has none of it."""
        return name in self._values and self._values[name] is None

    def count(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A whole number; of layers one that a list of them can have."""
        count = self.get(name, default)
        most = MOST_LAYERS if "layer" in name or name == "first_k_dense_replace" else MOST
        if type(count) is not int or not least <= count <= most:
            beyond = f" and up to {most:,}" if type(count) is int and count > most else ""
            raise self.error(
                f"{name} must be a whole number above {least - 1}{beyond}; got {abbreviated(count)}"
            )
        return count

    def number(self, name: str) -> float:
        """A number above 0, whole or not."""
        number = self.get(name)
        if type(number) not in (int, float) or not 0 < number <= MOST:
            raise self.error(f"{name} must be a number above 0; got {abbreviated(number)}")
        return float(number)

    def imply(self, name: str, value: Any) -> None:
        """A number that others tell, of a configuration that leaves it out."""
        if self._values.get(name) is None:
            self._values[name] = value

    def counts(self, names: dict[str, str]) -> dict[str, int]:
        """Whole numbers that must be there, under our names."""
        family = self._values.get("model_type")
        if missing := [name for name in names.values() if self._values.get(name) is None]:
            raise self.error(f"a configuration of {family} must have {', '.join(missing)}")
        return {ours: self.count(theirs) for ours, theirs in names.items()}

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise self.error(f"{name} must be true or false; got {abbreviated(value)}")
        return value

    def must_be(self, name: str, only: object) -> None:
        """Refuse a number that is read, and changes the answer in ways that are not."""
        value = self.get(name, only)
        if value != only:
            raise self.error(
                f"{name} is read where it is {json.dumps(only)}, and would change the answer; got"
                f" {abbreviated(value)}"
            )

    def kinds(self, name: str, ours: dict[str, str]) -> list[str] | None:
        """The kind of each layer, by our names, where they are listed."""
        stated, layers = self.get(name), self.count("num_hidden_layers")
        if stated is None:
            return None
        listed = list(stated) if isinstance(stated, (list, str)) else []
        if len(listed) != layers or not {*map(str, listed)} <= {*ours}:
            raise self.error(
                f"{name} must list {' or '.join(sorted(ours))} for each of its {layers} layers; got"
                f" {abbreviated(stated)}"
            )
        return [ours[str(kind)] for kind in listed]

    def notes(self) -> Iterator[str]:
        """Yield a note on each field that is not counted; refuse one that changes the answer."""
        left = {
            name: value
            for name, value in self._values.items()
            if name not in self._asked
            and name not in known()["harmless"]
            and value not in (None, False, 0, "", [], {})
        }
        for name in left:
            if name in known()["changing"]:
                raise self.error(
                    f"{name} is not read, and would change the answer: describe the model by"
                    " models.from_shape"
                )
        for name, what in known()["not_counted"].items():
            if left.pop(name, None):
                yield f"{what} ({name}) is not counted"
        for name in QUANTIZED:  # which is read once the matrices are known
            left.pop(name, None)
        if left:
            named = ", ".join(sorted(left))
            yield f"its configuration has what is unknown here, and not counted: {named}"


def _read(path: str | Path) -> dict[str, Any]:
    config = parse_json(read_text(path), path, finite=False)
    if not isinstance(config, dict):
        raise InputError(
            f"{path}: must hold a JSON object, as config.json does; got {abbreviated(config)}"
        )
    beside = Path(path).with_name(APART)
    if not any(config.get(name) for name in QUANTIZED) and beside.is_file():
        apart = parse_json(read_text(beside), beside)
        if isinstance(apart, dict) and isinstance(apart.get("quantization"), dict):
            config |= {QUANTIZED[0]: {"quant_method": "modelopt"} | apart["quantization"]}
    return config
