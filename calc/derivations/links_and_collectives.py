"""Claims of the look-up page "Links and collectives"."""

from __future__ import annotations

from calc import collectives, constants, curves, machines
from calc.catalog import engine_sums
from calc.core.units import Quantity, quantity
from calc.derivations.bases import HalfBandwidth, LinkLatency
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.hardware_tables import joined_by
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Cell, Row, Rows, show
from calc.steps.curves import Curve

SIZES = tuple(map(quantity, ("64 KiB", "1 MiB", "16 MiB", "256 MiB", "4 GiB")))


def _rented_row(key: str) -> Row:
    machine = machines.get(key)
    values, read_in = joined_by(machine)
    record = machine.records.get("ports") or next(iter(machine.records.values()))
    checked = record.provenance.checked.strftime("%d\N{NO-BREAK SPACE}%b\N{NO-BREAK SPACE}%Y")
    return (machine.name, machine.domain, *values, checked, read_in)


class RentedMachines(Claims):
    """Machines by their names in clouds: the wire and the ports of one device."""

    header = (*("Machine", "Devices", "Wire", "Port", "Host link"), *("Checked", "Read in"))
    rows: Rows = tuple(
        _rented_row(key)
        for key in (
            *("dgx-h100", "dgx-h200", "dgx-b200", "hgx-b300", "gb200-nvl72", "gb300-nvl72"),
            *("aws-p5", "aws-p5en", "aws-p6-b200", "gcp-a3-high", "gcp-a3-mega"),
            *("gcp-a3-ultra", "gcp-a4", "azure-nd-h100-v5", "azure-nd-h200-v5"),
            *("azure-nd-gb200-v6", "mi300x-8", "mi325x-8", "mi355x-8", "gaudi3-8"),
            *("trn2", "trn3", "tpu-v5p-pod", "tpu-v6e-pod", "tpu-v7-pod"),
        )
    ) | row_by_hand("AWS p5.48xlarge | 8 | 450 GB/s | 50 GB/s | 63 GB/s | 24 Nov 2026 | …")


def _at(curve: Curve, size: Quantity) -> Cell:
    """Bus bandwidth at a size within what was measured."""
    length = size.m_as("byte")
    if not curve.sizes[0] <= length <= curve.sizes[-1]:
        return None
    moved = curves.traffic(curve.operation, curve.devices) * length
    return show(quantity(moved / curve.time(length), "byte/s"), "GB/s", 3)


def _curve_row(name: str) -> Row:
    """Return where it was measured, its shortest time, what sizes reach, and which size half."""
    curve = curves.get(name)
    machine = machines.get(curve.machine)
    where = f"{curve.devices} in {machine.name.removeprefix('NVIDIA ').removeprefix('AMD ')}"
    if curve.span == "across":
        where += f", {curve.nodes} nodes"
    short = curve.sizes[0] <= SHORT
    base = show(quantity(curve.times[0], "s"), "µs", 2) if short else None
    reached = [_at(curve, size) for size in SIZES]
    half = show(HalfBandwidth.reached(curve), "MB", 2) if short else None
    best = show(quantity(max(curve.bus_bandwidths), "byte/s"), "GB/s", 3)
    return (where, base, *reached, best, half, f"[@{curve.source}]")


SHORT = 128 * 1024
"""Bytes from which on a curve must begin for its start and its half to be told."""


class MeasuredCurves(Claims):
    """Measured all-reduces, and what else was measured."""

    header = (
        *("Devices", "Shortest", "64 KiB", "1 MiB", "16 MiB", "256 MiB", "4 GiB", "Best"),
        *("Half of it at", "Read in"),
    )
    all_reduce: Rows = tuple(
        map(
            _curve_row,
            (
                *("allreduce-8xh100-dgxc", "allreduce-azure-nd-h100-v5"),
                *("allreduce-azure-nd-h200-v5", "allreduce-8xb200-bekman"),
                *("allreduce-azure-nd-mi300x-v5", "allreduce-72xgb200-coreweave"),
                *("allreduce-16xh100-xe9680", "allreduce-32xh100-xe9680"),
                *("allreduce-64xh100-of-64", "allreduce-80xh100-cnode3"),
                *("allreduce-32xb200-bekman", "allreduce-128xgb200-two-racks-oci"),
                *("allreduce-144xgb200-coreweave", "allreduce-1440xgb200-coreweave"),
            ),
        )
    ) | row_by_hand(
        "8 in DGX H200 | 30 µs | 3.72 GB/s | 53 GB/s | 240 GB/s | 432 GB/s | "
        "477 GB/s | 480 GB/s | 17 MB | …"
    )
    others: Rows = tuple(
        (curves.get(name).operation.replace("_", "-"), *_curve_row(name))
        for name in (
            *("alltoall-8xh100-cnode3", "alltoall-8xb200-hgx-vultr", "alltoall-80xh100-cnode3"),
            *("allgather-8xh100-cnode3", "allgather-16gpu-dwsflex-gke"),
            *("allgather-16xb200-hgx-vultr", "reducescatter-8xh100-cnode3"),
            "reducescatter-8xb200-hgx-vultr",
        )
    ) | row_by_hand(
        "all-to-all | 8 in DGX H100 | – | – | – | – | 302 GB/s | 344 GB/s | 348 GB/s | – | …"
    )


class ServerOfH100s(Claims):
    """The ends of what the tables of curves say of eight GPUs of a server."""

    _h100 = curves.get("allreduce-8xh100-dgxc")
    _slower = curves.get("allreduce-azure-nd-h100-v5")

    wire = machines.get("dgx-h100").bandwidth
    start = quantity(_h100.times[0], "s").to("µs") | by_hand("13.67 us")
    half = HalfBandwidth.reached(_h100) | by_hand(
        "2**24 byte * power(2, ln(480.1605 / 2 / 237.1577) / ln(294.6325 / 237.1577))"
    )
    small = quantity("1 MiB")
    at_1_mib, slower_at_1_mib = (
        collectives.bus_bandwidth(
            quantity("1 MiB"), quantity(curve.time(2**20), "s"), curve.devices
        ).to("GB/s")
        for curve in (_h100, _slower)
    )
    at_1_mib |= by_hand("7/4 * 1048576 byte / 27.37 us")
    slower_at_1_mib |= by_hand("7/4 * 1048576 byte / 41.99 us")


def _time_of(sums: engine_sums.Sums | None, size: int) -> Cell:
    return None if sums is None else show(quantity(sums.time(size), "s"), "µs", 2)


def _engine_row(device: str, program: str) -> Row:
    """Sums of two lengths among two, four and eight devices, named after the widest."""
    newest = [engine_sums.sums_of(device, program, devices) for devices in (2, 4, 8)]
    version = next(sums.version for sums in reversed(newest) if sums is not None)
    return (
        device.upper(),
        f"{program} {version}",
        *(_time_of(sums, 2**16) for sums in newest),
        *(_time_of(sums, 2**20) for sums in newest),
    )


class SumsByEngine(Claims):
    """Sums of short arrays by engines' own kernels, in a graph."""

    header = (*("GPUs", "Engine", "64 KiB, 2", "4", "8", "1 MiB, 2", "4", "8"),)
    rows: Rows = tuple(
        _engine_row(device, program)
        for device in ("h100", "h200", "b200", "gb200")
        for program in ("vllm", "sglang", "tensorrt-llm")
    ) | row_by_hand("H100 | vllm 0.24.0 | 4.5 µs | 5.2 µs | 6.4 µs | 8.3 µs | 13 µs | 15 µs")


def _latency_row(title: str, latency: Quantity) -> Row:
    provenance = latency.provenance
    assert provenance is not None
    kind = "" if provenance.kind == "measured" else provenance.kind
    return (title, latency.to("µs"), kind or "measured", f"[@{provenance.source}]")


class BaseLatencies(Claims):
    """One way or there and back, as the title says: what was measured or is sold."""

    header = ("From one to another", "Latency", "Kind", "Read in")
    rows: Rows = (
        _latency_row("Read of another GPU over PCIe 5.0", LinkLatency.reached_pcie),
        _latency_row("The same, if all GPUs read", constants.latency_p2p_pcie_gen5_loaded),
        _latency_row("Hop between TPUs", constants.latency_ici_hop),
        _latency_row("RDMA through one switch, round trip", constants.latency_rdma_round_trip),
        _latency_row("InfiniBand HDR, adapter", constants.latency_infiniband_hdr),
        _latency_row("Quantum-2 switch, port to port", constants.latency_quantum2_port),
        _latency_row("Memory behind CXL", constants.latency_cxl_memory),
    ) | row_by_hand("Quantum-2 switch, port to port | 0.15 µs | datasheet | …")
