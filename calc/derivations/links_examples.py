"""What the chapter "Bandwidth and latency" quotes."""

from __future__ import annotations

from calc import constants, curves, hardware, links, training
from calc.core.units import Quantity, quantity
from calc.derivations.numbers_to_know import AnchorBandwidths, AnchorLatencies
from calc.derivations.quoting import Quoted, approximately, between, show


class LongLink:
    """A small message takes the latency, a large one the bandwidth, whatever the other one is."""

    bandwidth = quantity("10 Gbit/s")
    latency = quantity("10 ms")
    small = quantity("1 kB")
    large = quantity("1 GB")

    times = (large / small).to("")
    bandwidth_bytes = bandwidth.to("GB/s")
    small_transmission = (small / bandwidth).to("µs")
    small_total = links.transfer_time(small, bandwidth, latency)
    large_transmission = (large / bandwidth).to("ms")
    large_total = links.transfer_time(large, bandwidth, latency)
    small_effective = links.effective_bandwidth(small, bandwidth, latency)
    small_share = (small_effective / bandwidth).to("%")
    round_trip = 2 * latency
    small_answered = links.effective_bandwidth(small, bandwidth, round_trip)
    large_effective = links.effective_bandwidth(large, bandwidth, latency)
    large_share = (large_effective / bandwidth).to("%")
    half_size = links.half_performance_size(bandwidth, latency)
    half_time = links.transfer_time(half_size, bandwidth, latency)

    faster = links.transfer_time(small, 2 * bandwidth, latency)
    small_gain_of_bandwidth = (small_total / faster).to("")
    nearer = links.transfer_time(small, bandwidth, latency / 2)
    small_gain_of_latency = (small_total / nearer).to("")
    faster_large = links.transfer_time(large, 2 * bandwidth, latency)
    large_gain_of_bandwidth = (large_total / faster_large).to("")
    nearer_large = links.transfer_time(large, bandwidth, latency / 2)
    large_gain_of_latency = (large_total / nearer_large).to("")

    sizes = (small, quantity("100 kB"), quantity("1 MB"), half_size, quantity("100 MB"), large)

    @classmethod
    def row(cls, size: Quantity) -> tuple[Quantity, ...]:
        """Size, time on the wire and in all, effective bandwidth, its share, and with an answer."""
        total = links.transfer_time(size, cls.bandwidth, cls.latency)
        effective = links.effective_bandwidth(size, cls.bandwidth, cls.latency)
        answered = links.effective_bandwidth(size, cls.bandwidth, cls.round_trip)
        share = (effective / cls.bandwidth).to("%")
        return size, size / cls.bandwidth, total, effective, share, answered


class FourLinks:
    """The faster a link, the larger a message must be to notice; distance asks for most."""

    nvlink = AnchorBandwidths.nvlink
    nvlink_latency = AnchorLatencies.nvlink
    pcie = AnchorBandwidths.pcie_coded
    pcie_latency = AnchorLatencies.pcie.to("µs")
    infiniband = AnchorBandwidths.infiniband
    infiniband_latency = AnchorLatencies.infiniband.to("µs")

    nvlink_half = links.half_performance_size(nvlink, nvlink_latency)
    pcie_half = links.half_performance_size(pcie, pcie_latency)
    infiniband_half = links.half_performance_size(infiniband, infiniband_latency)
    span = (LongLink.half_size / pcie_half).to("")
    rows = (
        ("NVLink 4", nvlink_latency, nvlink, nvlink_half),
        ("PCIe Gen5 x16", pcie_latency, pcie, pcie_half),
        ("InfiniBand NDR", infiniband_latency, infiniband, infiniband_half),
        ("The long link", LongLink.latency, LongLink.bandwidth_bytes, LongLink.half_size),
    )


class LinksOfToday:
    """From a chip beside it to another rack, a device sees bandwidths an order apart."""

    nvlink_most = constants.latency_nccl_step_nvlink_large
    pcie_most = constants.latency_nccl_step_pcie_large
    network_most = constants.latency_nccl_step_network_large
    peer_idle = constants.latency_p2p_pcie_gen5
    peer_loaded = constants.latency_p2p_pcie_gen5_loaded
    nvlink_5 = constants.bandwidth_nvlink_5
    cxl_latency = constants.latency_cxl_memory
    switch_port = constants.latency_quantum2_port
    round_trip = constants.latency_rdma_round_trip

    infiniband_xdr = constants.bandwidth_infiniband_xdr.to("GB/s")
    nvlink_per_xdr = nvlink_5 / infiniband_xdr
    cxl_per_dram = cxl_latency / constants.latency_dram_beside_cxl
    nvlink_step = Quoted(f"≈ {between(constants.latency_nccl_step_nvlink, nvlink_most)}")
    pcie_step = Quoted(f"≈ {between(constants.latency_nccl_step_pcie, pcie_most)}")
    network_step = Quoted(f"≈ {between(constants.latency_nccl_step_network, network_most)}")
    c2c_bit = constants.energy_nvlink_bit
    pcie_bit = constants.energy_pcie5_bit
    rows = (
        ("NVLink 3", constants.bandwidth_nvlink_3, nvlink_step),
        ("NVLink 4", constants.bandwidth_nvlink_4, nvlink_step),
        ("NVLink 5", nvlink_5, nvlink_step),
        ("NVLink 6, announced", constants.bandwidth_nvlink_6, None),
        ("NVLink-C2C", constants.bandwidth_nvlink_c2c, None),
        (
            "Infinity Fabric of an MI355X, to one peer",
            constants.bandwidth_infinity_fabric_mi355x,
            None,
        ),
        (
            "ICI of a TPU v5p, to one neighbour",
            constants.bandwidth_ici_link_v5p,
            approximately(constants.latency_ici_hop),
        ),
        ("PCIe Gen4 x16", constants.bandwidth_pcie4_x16, pcie_step),
        ("PCIe Gen5 x16", AnchorBandwidths.pcie_coded, pcie_step),
        ("PCIe Gen6 x16", constants.bandwidth_pcie6_x16, None),
        ("CXL 2.0 x16", constants.bandwidth_cxl_x16, cxl_latency),
        ("InfiniBand NDR", AnchorBandwidths.infiniband, network_step),
        ("InfiniBand XDR", infiniband_xdr, network_step),
        ("Ethernet, 400 Gbit/s", constants.bandwidth_ethernet_400.to("GB/s"), network_step),
        ("Ethernet, 800 Gbit/s", constants.bandwidth_ethernet_800.to("GB/s"), network_step),
    )


class WireAndLibrary:
    """A collective starts later than its wire, and wants arrays a hundred times as large."""

    curve = curves.get("allreduce-8xh100-dgxc")

    devices = curve.devices
    start = quantity(curve.time(1e3), "s").to("µs")
    half = quantity(curve.half_size, "byte").to("MB")
    ratio = (half / FourLinks.nvlink_half).to("")


class SmallWindow:
    """A sender that waits for acknowledgements needs a window of bandwidth times round trip."""

    bandwidth = LongLink.bandwidth
    window = constants.size_tcp_window_unscaled

    round_trip = 2 * LongLink.latency
    product = links.bandwidth_delay_product(bandwidth, round_trip)
    rate = links.windowed_bandwidth(window, round_trip, bandwidth)
    share = (rate / bandwidth).to("%")
    connections = (product / window).to("")


class WindowInTime:
    """A sender that waits for one packet's acknowledgement leaves the link empty till it comes.

    It comes a round trip after the last byte is sent, so that a window that never stops is what is
    in flight on a full link, and a packet more.
    """

    bandwidth = LongLink.bandwidth
    latency = LongLink.latency
    packet = quantity("2.5 MB")

    transmission = (packet / bandwidth).to("ms")
    waiting = SmallWindow.round_trip
    cycle = transmission + waiting
    share = (links.effective_bandwidth(packet, bandwidth, waiting) / bandwidth).to("%")
    window = SmallWindow.product + packet
    packets = (window / packet).to("")


class ManySmallFiles:
    """A data set of small files, asked for one by one, takes the time of its round trips."""

    count = 1_000_000
    image = quantity("100 kB")
    shard_count = 1000

    dataset = (count * image).to("GB")
    fetch = links.transfer_time(image, LongLink.bandwidth, SmallWindow.round_trip)
    one_by_one = (count * fetch).to("h")
    one_stream = links.transfer_time(dataset, LongLink.bandwidth, SmallWindow.round_trip)
    loss = (one_by_one / one_stream).to("")
    shard = (dataset / shard_count).to("MB")
    by_shards = shard_count * links.transfer_time(shard, LongLink.bandwidth, SmallWindow.round_trip)
    in_flight = (fetch / (image / LongLink.bandwidth)).to("")


class Checkpoint:
    """A checkpoint is one long message: bandwidth alone decides what it costs."""

    parameters = quantity("7B param")
    parts = training.recipe("adam-mixed").parts
    interval = quantity("30 min")

    per_parameter = parts["master weight"] + parts["momentum"] + parts["variance"]
    size = training.model_memory(parameters, per_parameter)
    by_long_link = links.transfer_time(size, LongLink.bandwidth, LongLink.latency)
    by_infiniband = links.transfer_time(size, FourLinks.infiniband, FourLinks.infiniband_latency)
    share_of_interval = (by_long_link / interval).to("%")


class AsSold:
    """What a datasheet prints and what a message gets differ by 8, by 2, and by the coding."""

    tpu = hardware.get("tpu-v5p").link_bandwidth
    nvlinks = 18  # of an H100
    tpu_links = constants.count_links_tpu_v5p
    infiniband_bits = constants.bandwidth_infiniband_ndr
    payload = constants.size_pcie_block_payload
    block = constants.size_pcie_block

    pcie_raw = AnchorBandwidths.pcie_raw
    pcie_coded = AnchorBandwidths.pcie_coded
    coding_loss = (1 - pcie_coded / pcie_raw).to("%")
    pcie_both_ways = 2 * pcie_raw
    tpu_bits = tpu.to("Gbit/s")
    tpu_both_ways = 2 * tpu
    tpu_one_link = tpu / tpu_links
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
        ("TPU v5p", str(show(tpu_bits)), "bits, each way, six links", tpu_one_link),
        ("TPU v5p", str(show(tpu_both_ways)), "both ways, six links", tpu_one_link),
    )


class WeightsByInfiniband:
    """Problem 1: bits to bytes, then one division."""

    weights = quantity("14 GB")

    time = links.transfer_time(weights, FourLinks.infiniband, FourLinks.infiniband_latency)
    latency_share = (FourLinks.infiniband_latency / time).to("%")
    by_hand = (weights / quantity("50 GB/s")).to("ms")
    as_if_bytes = (weights / quantity("400 GB/s")).to("ms")


class RemoteCall:
    """Problem 2: a message below the half-performance size gets a third of the link."""

    size = quantity("64 kB")

    time = links.transfer_time(size, FourLinks.infiniband, FourLinks.infiniband_latency)
    effective = links.effective_bandwidth(size, FourLinks.infiniband, FourLinks.infiniband_latency)
    share = (effective / FourLinks.infiniband).to("%")
    of_half_size = (size / FourLinks.infiniband_half).to("%")
    by_hand = quantity(100 / 3, "%")
    latency_share = (FourLinks.infiniband_latency / time).to("%")


class LineAcrossTheAtlantic:
    """Problem 3: a fast link over a long way is filled by a large window or by many connections."""

    bandwidth = quantity("100 Gbit/s")
    distance = constants.length_atlantic
    window = quantity("16 MB")

    round_trip = links.round_trip_time(distance)
    product = links.bandwidth_delay_product(bandwidth, round_trip)
    rate = links.windowed_bandwidth(window, round_trip, bandwidth)
    share = (rate / bandwidth).to("%")
    connections = (product / window).to("")
    by_hand = 16 * quantity("16 MB/s")


class ThousandTensors:
    """Problem 4: coalescing beats twice the bandwidth and half the latency."""

    count = 1000
    tensor = quantity("100 kB")
    bucket = quantity("25 MB")

    total = (count * tensor).to("MB")
    buckets = (total / bucket).to("")
    link = FourLinks.infiniband
    latency = FourLinks.infiniband_latency
    now = (count * links.transfer_time(tensor, link, latency)).to("ms")
    twice_the_bandwidth = (count * links.transfer_time(tensor, 2 * link, latency)).to("ms")
    half_the_latency = (count * links.transfer_time(tensor, link, latency / 2)).to("ms")
    coalesced = (buckets * links.transfer_time(bucket, link, latency)).to("ms")
    gain = (now / coalesced).to("")
    by_hand = count * quantity("5 us")


class BothWays:
    """Problem 5: a plan that takes both directions of a link for one."""

    moved = quantity("6.4 GB")
    compute = quantity("80 ms")

    planned = (moved / AsSold.pcie_both_ways).to("ms")
    by_hand = 2 * planned
    time = links.transfer_time(moved, AsSold.pcie_coded).to("ms")
    exposed = time - compute
    hidden = (AsSold.pcie_coded * compute).to("GB")
