"""Claims of the chapter "Bandwidth and latency"."""

from __future__ import annotations

from calc import constants, curves, hardware, links
from calc.core.units import quantity
from calc.derivations.bases import HalfBandwidth, LinkLatency
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.examples import MIXTURE
from calc.derivations.ledger import Claims
from calc.derivations.numbers_to_know import AnchorBandwidths
from calc.derivations.quoting import approximately, show


class LongLink(Claims):
    """A small message takes the latency, a large one the bandwidth, whatever the other one is."""

    bandwidth = quantity("10 Gbit/s")
    latency = quantity("10 ms")
    small = quantity("1 kB")
    large = quantity("1 GB")

    bandwidth_bytes = bandwidth.to("GB/s")
    small_transmission = (small / bandwidth).to("µs") | by_hand("8000 bits / 10**10 bit/s")
    small_total = links.transfer_time(small, bandwidth, latency) | by_hand("10 ms + 0.8 µs")
    large_transmission = (large / bandwidth).to("ms") | by_hand("8e9 bits / 10**10 bit/s")
    large_total = links.transfer_time(large, bandwidth, latency) | by_hand("10 ms + 800 ms")
    small_effective = links.effective_bandwidth(small, bandwidth, latency)
    large_effective = links.effective_bandwidth(large, bandwidth, latency)
    half_size = links.half_performance_size(bandwidth, latency) | by_hand("1.25 GB/s * 10 ms")


class FourLinks(Claims):
    """Latency times bandwidth is the message that gets half of a link; distance asks for most."""

    nvlink = AnchorBandwidths.nvlink
    nvlink_latency = LinkLatency.reached_nvlink
    pcie = AnchorBandwidths.pcie_coded
    pcie_latency = LinkLatency.reached_pcie
    infiniband = AnchorBandwidths.infiniband
    infiniband_latency = LinkLatency.reached_infiniband

    pcie_half = links.half_performance_size(pcie, pcie_latency) | by_hand(
        "64 GB/s * 128/130 * 4.1 us"
    )
    rows = tuple(
        (name, what, latency, bandwidth, links.half_performance_size(bandwidth, latency))
        for name, what, latency, bandwidth in (
            ("NVLink 4", "a sum's kernel, with its launch", nvlink_latency, nvlink),
            ("PCIe Gen5 x16", "a kernel's read", pcie_latency, pcie),
            ("InfiniBand NDR", "half a round trip of hosts", infiniband_latency, infiniband),
            ("The long link", "the wire alone", LongLink.latency, LongLink.bandwidth_bytes),
        )
    ) | row_by_hand("PCIe Gen5 x16 | a kernel's read | 4.1 µs | 63.02 GB/s | 260 kB")


class LinksOfToday(Claims):
    """From a chip beside it to another rack, a device sees bandwidths an order apart."""

    peer_loaded = constants.latency_p2p_pcie_gen5_loaded
    least_apart = (constants.bandwidth_nvlink_4 / AnchorBandwidths.infiniband).to("") | by_hand(
        "450 GB/s / 50 GB/s"
    )
    most_apart = (constants.bandwidth_nvlink_5 / AnchorBandwidths.infiniband).to("") | by_hand(
        "900 GB/s / 50 GB/s"
    )

    rows = (
        ("NVLink 3", constants.bandwidth_nvlink_3, None),
        ("NVLink 4", constants.bandwidth_nvlink_4, FourLinks.nvlink_latency),
        ("NVLink 5", constants.bandwidth_nvlink_5, None),
        ("NVLink 6, announced", constants.bandwidth_nvlink_6, None),
        ("NVLink-C2C", constants.bandwidth_nvlink_c2c, None),
        (
            "Infinity Fabric of an MI355X, to one peer",
            constants.bandwidth_infinity_fabric_mi355x,
            None,
        ),
        (
            "ICI of a TPU v5p, to one neighbour",
            hardware.get("tpu-v5p").link_bandwidth / constants.count_links_tpu_v5p,
            approximately(constants.latency_ici_hop),
        ),
        ("PCIe Gen4 x16", constants.bandwidth_pcie4_x16, None),
        ("PCIe Gen5 x16", AnchorBandwidths.pcie_coded, FourLinks.pcie_latency),
        ("PCIe Gen6 x16", constants.bandwidth_pcie6_x16, None),
        ("CXL 2.0 x16", constants.bandwidth_cxl_x16, constants.latency_cxl_memory),
        (
            "InfiniBand NDR",
            AnchorBandwidths.infiniband,
            approximately(FourLinks.infiniband_latency),
        ),
        ("InfiniBand XDR", constants.bandwidth_infiniband_xdr.to("GB/s"), None),
        ("Ethernet, 400 Gbit/s", constants.bandwidth_ethernet_400.to("GB/s"), None),
        ("Ethernet, 800 Gbit/s", constants.bandwidth_ethernet_800.to("GB/s"), None),
    ) | row_by_hand("InfiniBand NDR | 50 GB/s | ≈ 1 µs")


class WireAndLibrary(Claims):
    """A collective starts later than its link, and wants arrays tens of times as large."""

    curve = curves.get("allreduce-8xh100-dgxc")

    devices = curve.devices | by_hand("8")
    start = quantity(curve.time(1e3), "s").to("µs") | by_hand(
        "16.70 us * power(16.94 / 16.70, log2(1000 / 512))"
    )
    half = HalfBandwidth.reached(curve) | by_hand(
        "2**24 byte * power(2, ln(480.1605 / 2 / 237.1577) / ln(294.6325 / 237.1577))"
    )
    nvlink_half = links.half_performance_size(FourLinks.nvlink, FourLinks.nvlink_latency)
    ratio = (half / nvlink_half).to("") | by_hand("17.44658 MB / 450 GB/s / 2.4 µs")


class SmallWindow(Claims):
    """A sender that waits for acknowledgements needs a window of bandwidth times round trip."""

    bandwidth = LongLink.bandwidth
    window = constants.size_tcp_window_unscaled

    round_trip = 2 * LongLink.latency
    product = links.bandwidth_delay_product(bandwidth, round_trip) | by_hand("1.25 GB/s * 20 ms")
    rate = links.windowed_bandwidth(window, round_trip, bandwidth)
    share = (rate / bandwidth).to("%") | by_hand("65535 byte / 20 ms / 1.25 GB/s")
    of_infiniband = links.bandwidth_delay_product(
        FourLinks.infiniband, constants.latency_rdma_round_trip
    ).to("kB") | by_hand("50 GB/s * 2 us")


class ManySmallFiles(Claims):
    """A data set of small files, asked for one by one, takes the time of its first bytes."""

    count = 1_000_000
    image = quantity("100 kB")
    shard_count = 1000
    bandwidth_bits = quantity("100 Gbit/s")
    first_byte = quantity("30 ms")

    dataset = (count * image).to("GB") | by_hand("10**6 * 100 kB")
    fetch = links.transfer_time(image, bandwidth_bits, first_byte)
    one_by_one_rate = links.effective_bandwidth(image, bandwidth_bits, first_byte).to(
        "MB/s"
    ) | by_hand("100 kB / (30 ms + 8 us)")
    one_by_one = (count * fetch).to("h") | by_hand("1e6 * (30 ms + 8 us)")
    one_stream = links.transfer_time(dataset, bandwidth_bits, first_byte) | by_hand("8 s + 30 ms")
    loss = (one_by_one / one_stream).to("") | by_hand("30008 / 8.03")
    shard = (dataset / shard_count).to("MB") | by_hand("100 GB / 1000")
    by_shards = shard_count * links.transfer_time(shard, bandwidth_bits, first_byte) | by_hand(
        "1000 * (30 ms + 8 ms)"
    )
    in_flight = (fetch / (image / bandwidth_bits)).to("") | by_hand("30.008 ms / 8 µs")


class LoadedModel(Claims):
    """A model's weights are one long message: bandwidth alone decides when a server can start."""

    ports = 8

    weights = MIXTURE.checkpoint.to("GB") | by_hand("688574839360 bytes")
    by_store = (weights / ManySmallFiles.bandwidth_bits).to("s") | by_hand("(688.5748 / 12.5) s")
    by_ports = (weights / (ports * FourLinks.infiniband)).to("s") | by_hand("(688.5748 / 400) s")
    by_pcie = (weights / ports / FourLinks.pcie).to("s") | by_hand(
        "688.5748 GB / 8 / (64 GB/s * 128/130)"
    )


class AsSold(Claims):
    """A datasheet's rate and a message's differ by 8, by 2, and by the coding."""

    tpu = hardware.get("tpu-v5p").link_bandwidth
    nvlinks = 18 | by_hand("450 / 25")  # of an H100
    tpu_links = constants.count_links_tpu_v5p
    infiniband_bits = constants.bandwidth_infiniband_ndr
    payload = constants.size_pcie_block_payload
    block = constants.size_pcie_block

    pcie_raw = AnchorBandwidths.pcie_raw
    pcie_coded = AnchorBandwidths.pcie_coded
    coding_loss = (1 - pcie_coded / pcie_raw).to("%") | by_hand("2 / 130")
    pcie_both_ways = 2 * pcie_raw | by_hand("2 * 64 GB/s")
    tpu_one_link = tpu / tpu_links | by_hand("4800 Gbit/s / 6")
    rows = (
        (
            "NVLink 4",
            str(show(AnchorBandwidths.nvlink_both_ways)),
            "both ways",
            AnchorBandwidths.nvlink,
        ),
        ("PCIe Gen5 x16", str(show(pcie_both_ways)), "both ways, before coding", pcie_coded),
        (
            "InfiniBand NDR",
            str(show(infiniband_bits)),
            "bits, each way",
            AnchorBandwidths.infiniband,
        ),
        ("TPU v5p", str(show(tpu.to("Gbit/s"))), "bits, each way, six links", tpu_one_link),
        ("TPU v5p", str(show(2 * tpu)), "both ways, six links", tpu_one_link),
    ) | row_by_hand("TPU v5p | 4800 Gbit/s | bits, each way, six links | 100 GB/s")


class WeightsByInfiniband(Claims):
    """Problem 1: bits to bytes, then one division."""

    weights = quantity("14 GB")

    time = links.transfer_time(
        weights, FourLinks.infiniband, FourLinks.infiniband_latency
    ) | by_hand("14 GB / 50 GB/s")
    as_if_bytes = (weights / quantity("400 GB/s")).to("ms") | by_hand("14 GB / 400 GB/s")


class LineAcrossTheAtlantic(Claims):
    """Problem 2: a fast link over a long way is filled by a large window or by many connections."""

    bandwidth = quantity("100 Gbit/s")
    distance = constants.length_atlantic
    window = quantity("16 MB")

    round_trip = links.round_trip_time(distance)
    product = links.bandwidth_delay_product(bandwidth, round_trip) | by_hand("12.5 GB/s * 60 ms")
    rate = links.windowed_bandwidth(window, round_trip, bandwidth) | by_hand("16 MB / 60 ms")
    share = (rate / bandwidth).to("%") | by_hand("16 / 750")
    connections = (product / window).to("") | by_hand("750 / 16")


class ThousandTensors(Claims):
    """Problem 3: coalescing beats twice the bandwidth and half the latency."""

    count = 1000
    tensor = quantity("100 kB")
    bucket = quantity("25 MB")

    total = (count * tensor).to("MB")
    buckets = (total / bucket).to("")
    link = FourLinks.pcie
    latency = FourLinks.pcie_latency
    now = (count * links.transfer_time(tensor, link, latency)).to("ms") | by_hand(
        "1000 * (4.1 us + 100 kB / (64 GB/s * 128/130))"
    )
    twice_the_bandwidth = (count * links.transfer_time(tensor, 2 * link, latency)).to(
        "ms"
    ) | by_hand("1000 * (4.1 us + 100 kB / (64 GB/s * 128/130) / 2)")
    half_the_latency = (count * links.transfer_time(tensor, link, latency / 2)).to("ms") | by_hand(
        "1000 * (4.1 us / 2 + 100 kB / (64 GB/s * 128/130))"
    )
    coalesced = (buckets * links.transfer_time(bucket, link, latency)).to("ms") | by_hand(
        "4 * (4.1 us + 25 MB / (64 GB/s * 128/130))"
    )
    gain = (now / coalesced).to("") | by_hand("5.686914 / 1.603314")
