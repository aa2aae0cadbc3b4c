"""Access to the constants."""

from __future__ import annotations

import re
from typing import Any

import pytest

from calc import InputError, constants, quantity
from calc.core.citations import bibliography
from calc.core.records import DATA
from calc.core.units import Unit

FILE = DATA / "constants.toml"
UNITS = {  # what the first word of a name promises; the first comment of the file says the same
    "energy": ["J", "J/bit"],
    "power": ["W"],
    "latency": ["s"],
    "frequency": ["1/s"],
    "bandwidth": ["byte/s", "bit/s"],
    "speed": ["m/s"],
    "length": ["m"],
    "size": ["bit", "byte", "byte/param"],
    "bytes_per_clock": ["byte"],
    "work": ["FLOP/param/token"],
    "tokens": ["token/param"],
    "cycles": [""],
    "count": [""],
    "lanes": [""],
    "channels": [""],
    "speedup": [""],
    "refractive_index": [""],
    "loss": [""],
    "coefficient": [""],
    "exponent": [""],
    "pue": [""],
    "carbon_intensity": ["g/kWh"],
    "price": ["USD/h", "USD/kWh"],
}


def test_three_ways_to_one_constant() -> None:
    assert constants.energy_dram_word == constants.get("energy_dram_word") == quantity("640 pJ")
    assert "energy_dram_word" in constants.names()
    assert set(constants.names()) <= set(dir(constants))


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"no constant 'energy_dram_wrd'; did you mean energy_dram_word"
    ):
        constants.get("energy_dram_wrd")
    with pytest.raises(AttributeError, match=r"no constant 'energy_dram_wrd'"):
        constants.energy_dram_wrd  # noqa: B018
    assert not hasattr(constants, "__wrapped__")


def test_derived_inputs_agree() -> None:
    """Rounded inputs beside what they are rounded from."""
    in_vacuum, index = constants.get("speed_light_vacuum"), constants.get("refractive_index_fiber")
    in_fiber = constants.get("speed_light_fiber")
    assert (in_vacuum / index / in_fiber).m_as("") == pytest.approx(1, abs=1e-3)


# --- our own data ---


def test_the_unit_fits_the_name() -> None:
    wrong = []
    for name in constants.names():
        unit = constants.get(name).units
        prefix = next((prefix for prefix in UNITS if name.startswith(f"{prefix}_")), None)
        if prefix is None:
            wrong.append(f"{FILE.name}: [{name}] must start with one of {', '.join(UNITS)}")
        elif not any(unit.is_compatible_with(Unit(each)) for each in UNITS[prefix]):
            wrong.append(
                f"{FILE.name}: [{name}] is measured in {unit}, but {prefix}_ promises"
                f" {' or '.join(each or 'a pure number' for each in UNITS[prefix])}"
            )
    assert not wrong, "\n".join(wrong)


def test_the_file_says_which_names_there_are() -> None:
    first_comment = FILE.read_text(encoding="utf-8").split("#   title")[0]
    named = re.findall(r"([a-z_]+)_(?: \(([^)]+)\)|(?=,))", first_comment)
    units: list[str] = []
    said = {}
    for prefix, inside in reversed(named):  # several names may share the last one's units
        units = inside.split(", ") if inside else units
        said[prefix] = [""] if units == ["pure numbers"] else units
    assert said == UNITS


def test_the_year_is_that_of_the_source() -> None:
    wrong = []
    for name in constants.names():
        provenance = constants.get(name).provenance
        assert provenance is not None
        key = provenance.source
        printed = bibliography().get(key, {}).get("year")
        if key not in bibliography():
            wrong.append(f"{FILE.name}: [{name}]: references.bib has no entry {key}")
        elif str(provenance.year) != printed:
            wrong.append(
                f"{FILE.name}: [{name}] has year = {provenance.year}, but {key} in references.bib"
                f" has {printed}"
            )
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", [None, 5, ["x"]])
def test_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(InputError, match="there is no constant"):
        constants.get(name)
