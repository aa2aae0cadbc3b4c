"""Each field of a device against what its parts make, rather than its line of the datasheet.

What makes them stands in `tests/parts.toml`. Datasheets round, hence the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from calc import hardware
from calc.core.units import Quantity
from tests.calc.parts import TABLES, product
from tests.rows import for_each

ROUNDING = 0.03
EVERY = (*hardware.names(), *hardware.announced())
PARTS, OPERATIONS = TABLES["devices"], TABLES["operations"]
GIGA_IN_TERA = 1e-3  # cores × GHz × operations, in TFLOP/s
PEAKS = ("peak", "vector_peak")
MEASURED_IN = {
    "memory_bandwidth": "GB/s",
    "memory_capacity": "GiB",
    "on_chip_memory": "byte",
    "link_bandwidth": "GB/s",
    "units": "",
    "clock": "GHz",
    "registers": "KiB",
    "shared_memory": "KiB",
    "tensor_memory": "KiB",
    "special_functions": "TFLOP/s",
    "host_link": "GB/s",
    "tdp": "W",
}


@cache
def fields() -> dict[tuple[str, str], Quantity]:
    """Every published field of every device, but sparse peaks: those are twice the dense ones."""
    quantities = {}
    for key in EVERY:
        device = hardware.get(key)
        for name, record in device.records.items():
            if record.provenance.kind != "unpublished":
                quantities[key, name] = record.quantity
        for table in PEAKS:
            for dtype, record in device.peaks[table].items():
                if record.provenance.kind != "unpublished":
                    quantities[key, f"{table} {dtype}"] = record.quantity
    return quantities


def peaks(parts: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """TFLOP/s or TOP/s by data type, of cores at a clock or as they are told."""
    if "cores" not in parts:
        yield from ((dtype, product(peak)) for dtype, peak in parts.items())
        return
    each = parts["operations"]
    cycles = product(parts["cores"]) * product(parts["clock"]) * GIGA_IN_TERA
    for dtype, operations in (OPERATIONS[each] if isinstance(each, str) else each).items():
        yield dtype, cycles * product(operations)


@cache
def by_parts() -> dict[tuple[str, str], tuple[float, str]]:
    """Return the same fields, computed here, each with its unit."""
    made_of_parts = {}
    for key, parts in PARTS.items():
        for name, value in parts.items():
            assert name not in PEAKS or isinstance(value, list), (
                f"tests/parts.toml: {key}: {name} must be a list of tables, [{{ bf16 = 150 }}]"
            )
            for table in value if name in PEAKS else ():
                for dtype, peak in peaks(table):
                    unit = "TOP/s" if dtype.startswith("int") else "TFLOP/s"
                    made_of_parts[key, f"{name} {dtype}"] = (peak, unit)
            if name in MEASURED_IN:
                made_of_parts[key, name] = (product(value), MEASURED_IN[name])
    return made_of_parts


def test_every_name_in_the_list_of_parts_is_of_a_field() -> None:
    field_names = {*PEAKS, *MEASURED_IN}
    wrong = [
        f"{key} {name}" for key, parts in PARTS.items() for name in parts if name not in field_names
    ]
    assert not wrong, "tests/parts.toml has parts of these, which are not asked for; delete them"


def to_write(key: str, name: str) -> str:
    """Say which line of `tests/parts.toml` makes a field of a device."""
    table, _, dtype = name.partition(" ")
    if dtype:
        unit = "TOP/s" if dtype.startswith("int") else "TFLOP/s"
        line = (
            f"{table} = [{{ cores = …, clock = GHz, operations = {{ {dtype} = of a core in a cycle"
            f" }} }}], or [{{ {dtype} = … }}], in {unit}"
        )
    else:
        unit = MEASURED_IN.get(name)
        if unit is None:
            return f"MEASURED_IN of tests/calc/test_device_parts.py has no unit of {name}: add it"
        line = f'{name} = "…", a number or a product such as "5 * 16"{unit and f", in {unit}"}'
    return (
        f"{key} publishes {name} in calc/data/accelerators.toml: write what makes it under"
        f" [devices.{key}] in tests/parts.toml, as {line}"
    )


def test_every_field_has_its_parts() -> None:
    missing = [to_write(*name) for name in sorted(fields().keys() - by_parts().keys())]
    assert not missing, "\n".join(missing)
    more = [
        f"[devices.{key}] of tests/parts.toml makes {name}, which calc/data/accelerators.toml does"
        f" not publish: take it out, or write it under [{key}] there"
        for key, name in sorted(by_parts().keys() - fields().keys())
    ]
    assert not more, "\n".join(more)


def test_what_is_missing_is_said_with_its_file_its_table_and_its_line() -> None:
    said = to_write("mine", "memory_capacity")
    assert "[devices.mine] in tests/parts.toml, as memory_capacity = " in said
    assert said.endswith(", in GiB")
    assert "operations = { fp8 = " in to_write("mine", "peak fp8")
    assert to_write("mine", "peak int8").endswith("in TOP/s")
    assert "MEASURED_IN" in to_write("mine", "colour")


@for_each(EVERY)
def test_the_parts_make_the_device(key: str) -> None:
    parts, stored = by_parts(), fields()
    missing = [to_write(*name) for name in stored if name[0] == key and name not in parts]
    assert not missing, "\n".join(missing)
    wrong = [
        f"calc/data/accelerators.toml has {value} as {name} of {key}; its parts under"
        f" [devices.{key}] in tests/parts.toml make"
        f" {parts[key, name][0]:.6g} {parts[key, name][1]}: read its source again, and mend the one"
        " that is not as it says"
        for (device, name), value in stored.items()
        if device == key
        and value.m_as(parts[key, name][1]) != pytest.approx(parts[key, name][0], rel=ROUNDING)
    ]
    assert not wrong, "\n".join(wrong)
