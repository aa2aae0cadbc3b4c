"""What the chapter "Hardware cheat sheet" quotes."""

from __future__ import annotations

from calc import energy, hardware
from calc.derivations.quoting import Quoted, approximately
from calc.hardware import Accelerator
from calc.units import Quantity


def _marked(value: Quantity, *inputs: Quantity) -> Quantity | Quoted:
    """What follows from an estimate is one."""
    kinds = {each.provenance.kind for each in inputs if each.provenance}
    return approximately(value) if "estimate" in kinds else value


def _ridge_point(device: Accelerator, dtype: str) -> Quantity | Quoted:
    return _marked(device.ridge_point(dtype), device.peak(dtype), device.memory_bandwidth)


def _per_joule(device: Accelerator, dtype: str) -> Quantity | Quoted | None:
    if not device.publishes("tdp"):
        return None
    unit = "TOP/J" if dtype.startswith("int") else "TFLOP/J"
    peak = device.peak(dtype)
    return _marked(energy.energy_efficiency(peak, device.tdp).to(unit), peak, device.tdp)


class AcceleratorTable:
    """What an accelerator computes, moves and draws, and the ridge point that follows."""

    devices = tuple(hardware.get(key) for key in hardware.names())

    memory_rows = tuple(
        (
            device.name,
            device.year,
            device.memory_capacity,
            device.memory_bandwidth,
            device.on_chip_memory if device.publishes("on_chip_memory") else None,
            device.link_bandwidth if device.publishes("link_bandwidth") else None,
        )
        for device in devices
    )
    ridge_rows = tuple(
        (device.name, dtype.upper(), device.peak(dtype), _ridge_point(device, dtype))
        for device in devices
        for dtype in device.dtypes
    )
    efficiency_rows = tuple(
        (
            device.name,
            dtype.upper(),
            device.peak(dtype),
            device.tdp if device.publishes("tdp") else None,
            _per_joule(device, dtype),
        )
        for device in devices
        for dtype in device.dtypes
        if dtype in ("fp16", "bf16", "fp8", "int8")
        and not (dtype == "bf16" and "fp16" in device.dtypes)  # the same rate
    )
