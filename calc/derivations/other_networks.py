"""What the chapter "Other networks" quotes."""

from __future__ import annotations

from calc import (
    attention,
    constants,
    convolution,
    diffusion,
    encoder_decoder,
    hardware,
    machines,
    models,
    recommenders,
    roofline,
    throughput,
    transformer,
)
from calc.catalog.models import (
    Convolutional,
    DiffusionTransformer,
    EncoderDecoder,
    Recommender,
    Transformer,
    network,
)
from calc.core.units import Quantity, quantity
from calc.derivations.quoting import Rows
from calc.steps.throughput import Throughput

TWO_BYTES = quantity("2 byte")


def share(measured: Quantity, bound: Quantity) -> Quantity:
    return (measured / bound).to("%")


def intensity(answer: Throughput) -> Quantity:
    """Operations of a pass over the bytes that all its kernels must move."""
    work = sum(
        (kernel.operations * kernel.launches for kernel in answer.kernels), quantity("0 FLOP")
    )
    moved = sum((kernel.traffic * kernel.launches for kernel in answer.kernels), quantity("0 byte"))
    return roofline.arithmetic_intensity(work, moved)


def work_of_reading(model: Transformer, tokens: int) -> Quantity:
    """Operations of all products of a pass over so many tokens."""
    products = transformer.prefill_matmuls(model, tokens)
    return sum((product.operations for product in products), quantity("0 FLOP"))


class OneImage:
    """A vision transformer reads an image as a short prompt, and writes nothing: compute binds."""

    model = models.transformer("vit-l-16")
    device = hardware.get("rtx-4090")
    batch = 256
    patch = 16
    pixels = 224

    patches = (pixels // patch) ** 2
    tokens = model.context
    parameters = model.parameters
    work = work_of_reading(model, tokens)
    rule = quantity((2 * parameters * tokens).m_as("param"), "FLOP").to("GFLOP")
    answer = throughput.of(model, device, batch)
    bound = answer.bound
    rate = answer.rate
    intensity = intensity(answer)
    measured = constants.frequency_images_vit_l_rtx_4090
    reached = share(measured, rate)


class MeasuredImages:
    """What others measured, beside the bound, for networks of one pass."""

    cases = (
        ("vit-l-16", "rtx-4090", 256, constants.frequency_images_vit_l_rtx_4090),
        ("vit-h-14", "rtx-4090", 256, constants.frequency_images_vit_h_rtx_4090),
        ("vit-l-16", "rtx-5090", 1024, constants.frequency_images_vit_l_rtx_5090),
        ("resnet-50", "rtx-5090", 1024, constants.frequency_images_resnet_50_rtx_5090),
        ("mobilenet-v2", "rtx-5090", 1024, constants.frequency_images_mobilenet_v2_rtx_5090),
        ("mobilenet-v3-large", "rtx-5090", 1024, constants.frequency_images_mobilenet_v3_rtx_5090),
    )

    @classmethod
    def rows(cls) -> Rows:
        """Model, device, intensity, bound by, at most, measured, share."""
        rows = []
        for name, device, batch, measured in cls.cases:
            answer = throughput.of(name, device, batch)
            rows.append(
                (
                    answer.model.name,
                    answer.machine.device.name.removeprefix("NVIDIA GeForce RTX "),
                    intensity(answer).m_as("FLOP/byte"),
                    answer.bound,
                    answer.rate.m_as("1/s"),
                    measured.m_as("1/s"),
                    share(measured, answer.rate),
                )
            )
        return rows


class Depthwise:
    """A depthwise convolution saves operations, and hardly any bytes: a few FLOP for each."""

    model = network("mobilenet-v2", Convolutional)
    large = network("resnet-50", Convolutional)
    device = hardware.get("rtx-5090")
    kernel = 3
    # Channels within the second stage of MobileNetV2, and between its blocks.
    wide = 144
    narrow = 24

    intensity = convolution.depthwise_intensity(kernel)
    pointwise = convolution.pointwise_intensity(wide, narrow)
    ridge_point = device.ridge_point("fp16")
    work = convolution.forward_flops(model)
    large_work = convolution.forward_flops(large)
    fewer = large_work / work
    layers = tuple(layer for layer in model.convolutions if layer.kind == "depthwise")
    depthwise_work = sum(
        (convolution.workload(layer).operations for layer in layers), quantity("0 FLOP")
    )
    work_share = share(depthwise_work, work)
    answer = throughput.of(model, device, 1024)
    time_share = share(answer.times["depthwise"], answer.time)
    faster = (
        constants.frequency_images_mobilenet_v2_rtx_5090
        / constants.frequency_images_resnet_50_rtx_5090
    )


class DiffusedImage:
    """A diffusion transformer reads its prompt anew at each step: compute times steps."""

    model = network("flux-1-dev", DiffusionTransformer)
    machine = machines.get("dgx-h100")
    pixels = 1024

    image_tokens = diffusion.image_tokens(pixels, pixels, model.patch_pixels)
    tokens = diffusion.tokens(model)
    text_tokens = model.text_tokens
    steps = model.steps
    passes = diffusion.passes_of_an_image(steps, model.passes)
    parameters = model.parameters
    modulation_share = share(model.parts["modulation"], parameters)
    met_share = share(quantity(model.blocks * model.stream_weights, "param"), parameters)
    pass_work = diffusion.pass_flops(model)
    attention = diffusion.joint_attention_flops(
        tokens, model.blocks, model.heads * model.head_width
    )
    attention_share = share(attention, pass_work)
    answer = throughput.of(model, machine)
    time = answer.time
    intensity = intensity(answer)
    expected = answer.expected
    assert expected is not None
    measured = constants.latency_image_flux_h100
    eager = constants.latency_image_flux_h100_eager
    short = ((measured - expected) / measured).to("%")
    reached = share(time, measured)
    eager_reached = share(time, eager)
    each_of_batch = constants.latency_eight_images_flux_h100 / 8

    @classmethod
    def rows(cls) -> Rows:
        """Time of an image, and the share of the peak that it makes use of."""
        assert cls.expected is not None
        return [
            ("at the peak", cls.time, share(cls.time, cls.time)),
            ("expected", cls.expected, share(cls.time, cls.expected)),
            ("measured, compiled", cls.measured, cls.reached),
            ("measured, one of eight", cls.each_of_batch, share(cls.time, cls.each_of_batch)),
            ("measured, not compiled", cls.eager, cls.eager_reached),
        ]


class PictureAndText:
    """A picture is a prompt of thousands of tokens, and its encoder a small part of the work."""

    encoder = models.transformer("vit-h-14")
    model = models.get("qwen-3-32b")
    device = hardware.get("h200")
    mfu = quantity(40, "%")
    pixels = 1344
    patch = 14
    merged = 2  # patches a side that become one token
    frames = 60
    frame_pixels = 448

    patches = (pixels // patch) ** 2
    tokens = patches // merged**2
    encoding = work_of_reading(encoder.with_context(patches), patches).to("TFLOP")
    reading = (
        transformer.forward_flops(model, attention.causal_context(tokens))
        * quantity(tokens, "token")
    ).to("TFLOP")
    encoder_share = share(encoding, encoding + reading)
    encoder_attention = share(
        diffusion.joint_attention_flops(patches, encoder.layers, encoder.width), encoding
    )
    time = ((encoding + reading) / (device.peak("bf16") * mfu)).to("s")
    cache = transformer.kv_cache(model, tokens).to("MB")
    video_tokens = frames * (frame_pixels // patch // merged) ** 2
    video_cache = transformer.kv_cache(model, video_tokens).to("GB")


class Video:
    """A few seconds of video are so many tokens that attention is most of the work."""

    device = hardware.get("h100")
    newer = hardware.get("b200")
    blocks = 40
    width = 5120
    parameters = quantity("14B param")
    frames = 81
    height = 720
    across = 1280
    steps = 50
    mfu = quantity(40, "%")
    # The autoencoder keeps one frame in four, and a token is sixteen pixels wide and high.
    kept = (frames - 1) // 4 + 1
    short = 41

    tokens = kept * diffusion.image_tokens(height, across, 16)
    image_tokens = diffusion.image_tokens(height, across, 16)
    products = quantity((2 * parameters.m_as("param") * tokens).m_as(""), "FLOP").to("PFLOP")
    attention = diffusion.joint_attention_flops(tokens, blocks, width).to("PFLOP")
    one_pass = products + attention
    attention_share = share(attention, one_pass)
    passes = diffusion.passes_of_an_image(steps, 2)
    work = (passes * one_pass).to("PFLOP")
    time = (diffusion.image_time(one_pass, passes, device.peak("bf16")) / mfu).to("minute")
    time_newer = (diffusion.image_time(one_pass, passes, newer.peak("bf16")) / mfu).to("minute")
    # Half of the frames: half of the products, a quarter of the attention.
    short_tokens = ((short - 1) // 4 + 1) * image_tokens
    short_attention = diffusion.joint_attention_flops(short_tokens, blocks, width)
    short_products = quantity((2 * parameters.m_as("param") * short_tokens).m_as(""), "FLOP")
    shorter = (one_pass / (short_products + short_attention)).to("")


class RecommenderSample:
    """A sample reads rows at random, and its networks do more than that for each byte."""

    model = network("dlrm-dcnv2", Recommender)
    machine = machines.get("dgx-h100")
    device = machine.device
    batch = 51_200
    domain = machine.domain
    pairs = constants.count_pairs_of_a_dlrm_sample

    tables = len(model.rows)
    lookups = sum(model.lookups)
    largest = max(model.lookups)
    memory = recommenders.table_memory(model, "fp32").to("GB")
    memory_16 = recommenders.table_memory(model, "fp16").to("GB")
    capacity = device.memory_capacity.to("GiB")
    devices = throughput.of(model, machine, batch, table="fp32").devices
    devices_16 = throughput.of(model, machine, batch).devices
    table_share = (model.parts["tables"] / model.parameters).to("%")
    row = recommenders.row_traffic(model.embedding_width, TWO_BYTES)
    traffic = recommenders.sample_traffic(model)
    work = recommenders.sample_flops(model)
    intensity = roofline.arithmetic_intensity(work, traffic)
    ridge_point = device.ridge_point("fp16")
    in_flight = recommenders.rows_in_flight(device.memory_bandwidth, constants.latency_hbm3, row)
    lookup_time = (traffic / device.memory_bandwidth).to("ns")
    compute_time = (work / device.peak("fp16")).to("ns")
    answer = throughput.of(model, machine, batch)
    rate = answer.rate
    expected = answer.expected_rate
    assert expected is not None
    measured = (constants.frequency_samples_dlrm_dgx_h100 * pairs / machine.domain).to("1/s")
    reached = share(measured, rate)
    error = ((expected - measured) / measured).to("%")
    rate_8 = throughput.of(model, machine, batch, "int8").rate
    measured_8 = (constants.frequency_samples_dlrm_dgx_h100_99 * pairs / machine.domain).to("1/s")
    reached_8 = share(measured_8, rate_8)


class TablesOfTheHost:
    """Tables in the host's memory put the link between device and host in front of everything."""

    sample = RecommenderSample
    link = sample.machine.host_link

    time = (sample.traffic / link).to("ns")
    rate = (link / sample.traffic).to("1/s")
    slower = sample.rate / rate
    pooled = recommenders.pooled_traffic(
        sample.tables, sample.model.embedding_width, sample.machine.domain
    )
    exchange = (pooled / sample.machine.bandwidth).to("ns")


class CrossAttention:
    """An encoder reads once; the decoder looks at all of it again for each token that it writes."""

    model = network("whisper-large-v3", EncoderDecoder)
    source = model.source_context
    assert source is not None
    written = 200
    seconds = quantity("30 s")

    encoder = encoder_decoder.encoder_flops(model, source)
    projections = encoder_decoder.cross_projection_flops(model, source).to("TFLOP")
    token = encoder_decoder.decoder_flops(model, source, written / 2)
    decoder = (token * quantity(written, "token")).to("TFLOP")
    cross_cache = encoder_decoder.cross_cache(
        source, model.decoder_layers, model.heads, model.head_width
    ).to("MB")
    self_cache = encoder_decoder.self_cache(
        written, model.decoder_layers, model.heads, model.head_width
    ).to("MB")
    cache_ratio = cross_cache / self_cache


class SmallerPatches:
    """Patches of half the side make four times the tokens, and more than four times the work."""

    model = OneImage.model
    device = OneImage.device
    side = 8

    tokens = (OneImage.pixels // side) ** 2 + 1
    more = tokens / OneImage.tokens
    longer = model.with_context(tokens)
    work = work_of_reading(longer, tokens)
    more_work = work / OneImage.work
    hand_parameters = quantity("300M param")
    hand_tokens = 800
    rate = throughput.of(longer, device, OneImage.batch).rate


class GuidedImage:
    """Guidance by a second pass doubles the work of each step."""

    model = network("sd3-medium", DiffusionTransformer)
    machine = DiffusedImage.machine

    passes = diffusion.passes_of_an_image(model.steps, model.passes)
    answer = throughput.of(model, machine)
    time = answer.time
    per_hour = answer.rate.to("1/hour")
    pass_work = diffusion.pass_flops(model)
    blocks = model.blocks
    width = model.width
    hand_met = quantity("0.7B param")
    hand_tokens = 4400
    work = (passes * pass_work).to("PFLOP")
    few = 8
    few_time = throughput.of(model, machine, steps=few).time
    faster = time / few_time


class SmallServer:
    """Cards of 24 GiB hold the tables between them, and are faster than the link to a host."""

    model = RecommenderSample.model
    device = hardware.get("l4")

    capacity = device.memory_capacity.to("GiB")
    devices = recommenders.devices_for_tables(
        sum(model.rows), model.embedding_width, device.memory_capacity, TWO_BYTES
    )
    devices_8 = recommenders.devices_for_tables(
        sum(model.rows), model.embedding_width, device.memory_capacity, "1 byte"
    )
    lookup_time = (RecommenderSample.traffic / device.memory_bandwidth).to("ns")
    host_link = device.host_link
    host_time = (RecommenderSample.traffic / host_link).to("us")
    compute_time = (RecommenderSample.work / device.peak("fp16")).to("ns")
    rate = (1 / (lookup_time + compute_time)).to("1/s")
