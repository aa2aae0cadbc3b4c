"""Recommenders: rows that a sample reads at random, tables over devices, and vectors exchanged."""

from __future__ import annotations

from typing import Annotated

from calc.catalog.models import Recommender, network
from calc.core.elementwise import ceiling
from calc.core.law import AT_LEAST_ONE, law
from calc.core.units import Quantity, QuantityLike, quantity
from calc.formats import element_size as size_of

SECTOR = quantity(32, "byte")  # the least that an NVIDIA GPU reads of its memory


@law
def row_traffic(
    width: Annotated[QuantityLike, "", "d", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s"] = "2 byte",
    granularity: Annotated[QuantityLike, "byte", "g"] = "32 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes that memory moves for one row of a table, in the pieces in which it moves any.

    Equation: b = g · ⌈d · s / g⌉

    Assumes that a row begins where a piece does, and that no other row of the piece is wanted.

    Source: naumov2019dlrm

    >>> print(row_traffic(128), row_traffic(4, "2 byte", "64 byte"))
    256 byte 64 byte

    Parameters
    ----------
    width
        elements of a row
    element_size
        what an element of a row takes
    granularity
        the least that the memory moves at once
    """
    return granularity * ceiling(width * element_size / granularity)


@law
def lookup_traffic(
    lookups: Annotated[QuantityLike, "", "l", AT_LEAST_ONE],
    row: Annotated[QuantityLike, "byte", "b"],
) -> Annotated[Quantity, "byte"]:
    """Bytes that a sample reads of the tables, at random, if none of its rows is cached.

    Equation: B = l · b

    Source: naumov2019dlrm

    >>> print(lookup_traffic(214, "256 byte"))
    54.78 kB

    Parameters
    ----------
    lookups
        rows that a sample reads
    row
        bytes that memory moves for a row
    """
    return lookups * row


@law
def rows_in_flight(
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L"],
    row: Annotated[QuantityLike, "byte", "b"],
) -> Annotated[Quantity, ""]:
    """Rows that must be on their way at once so that random reads reach the whole bandwidth.

    Equation: N = BW · L / b

    It is Little's law, in rows.

    Source: little1961proof

    >>> print(rows_in_flight("3.35 TB/s", "600 ns", "256 byte"))
    7852

    Parameters
    ----------
    bandwidth
        bandwidth of the memory that holds the tables
    latency
        time until a row that is asked for arrives
    row
        bytes that memory moves for a row
    """
    return bandwidth * latency / row


@law
def devices_for_tables(
    rows: Annotated[QuantityLike, "", "r", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "d", AT_LEAST_ONE],
    capacity: Annotated[QuantityLike, "byte", "C"],
    element_size: Annotated[QuantityLike, "byte", "s"] = "2 byte",
) -> Annotated[Quantity, ""]:
    """Devices whose memories together hold the tables.

    Equation: n = ⌈r · d · s / C⌉

    Assumes that tables can be cut anywhere, by rows or by columns.

    Source: naumov2019dlrm

    >>> print(devices_for_tables(204184588, 128, "80 GB", "4 byte"))
    2

    Parameters
    ----------
    rows
        rows of all tables
    width
        elements of a row
    capacity
        memory of one device that tables may take
    element_size
        what an element of a row takes
    """
    return ceiling(rows * width * element_size / capacity)


@law
def pooled_traffic(
    tables: Annotated[QuantityLike, "", "t", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "d", AT_LEAST_ONE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s"] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes of a sample that other devices send: the sum of its rows of each of their tables.

    Equation: A = t · d · s · (n − 1) / n

    Assumes whole tables shared out evenly, and samples too: each device needs the vectors of its
    own samples, in an all-to-all.

    Source: naumov2019dlrm

    >>> print(pooled_traffic(26, 128, 8))
    5824 byte

    Parameters
    ----------
    tables
        tables, of each of which a sample needs one sum of rows
    width
        elements of a row
    devices
        devices that share out the tables, and the samples
    element_size
        what an element of a row takes
    """
    return tables * width * element_size * (devices - 1) / devices


def table_memory(
    model: Recommender | str, element_size: Annotated[QuantityLike, "byte"] = "2 byte"
) -> Annotated[Quantity, "byte"]:
    """Memory of all tables.

    >>> print(table_memory("dlrm-dcnv2", "4 byte"))
    104.5 GB

    Parameters
    ----------
    model
        a recommender of `calc.models`, or its name
    element_size
        what an element of a row takes
    """
    model = network(model, Recommender)
    size = size_of("element_size", element_size)
    return sum(model.rows) * model.embedding_width * size


def sample_traffic(
    model: Recommender | str,
    element_size: Annotated[QuantityLike, "byte"] = "2 byte",
    granularity: Annotated[QuantityLike, "byte"] = SECTOR,
) -> Annotated[Quantity, "byte"]:
    """Bytes that one sample reads of the tables.

    >>> print(sample_traffic("dlrm-dcnv2"))
    54.78 kB

    Parameters
    ----------
    model
        a recommender of `calc.models`, or its name
    element_size
        what an element of a row takes
    granularity
        the least that the memory moves at once
    """
    model = network(model, Recommender)
    row = row_traffic(model.embedding_width, size_of("element_size", element_size), granularity)
    return lookup_traffic(sum(model.lookups), row)


def sample_flops(model: Recommender | str) -> Annotated[Quantity, "FLOP"]:
    """Operations of one sample in the networks; adding rows up is left out, a thousandth of it.

    >>> print(sample_flops("dlrm-dcnv2"))
    32.06 MFLOP

    Parameters
    ----------
    model
        a recommender of `calc.models`, or its name
    """
    layers = network(model, Recommender).layers
    return quantity(2.0 * sum(inputs * outputs for _, inputs, outputs in layers), "FLOP")
