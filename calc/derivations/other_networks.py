"""Claims of the chapter "Other networks"."""

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
from calc.derivations.by_hand import by_hand, no_hand, row_by_hand, text_by_hand
from calc.derivations.ledger import Claims
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


class OneImage(Claims):
    """A vision transformer reads an image as a short prompt, and writes nothing: compute binds."""

    model = models.transformer("vit-l-16")
    device = hardware.get("rtx-4090")
    batch = 256
    patch = 16
    pixels = 224

    patches = (pixels // patch) ** 2 | by_hand("(224 / 16)**2")
    tokens = model.context
    parameters = model.parameters
    work = work_of_reading(model, tokens) | by_hand(
        "(2 * 197 * 24 * 12 * 1024**2 + 4 * 197**2 * 1024 * 24 + 2 * 197 * 768 "
        "* 1024 + 2 * 1000 * 1024) * 1 FLOP"
    )
    rule = quantity((2 * parameters * tokens).m_as("param"), "FLOP").to("GFLOP") | by_hand(
        "2 * 304326632 * 197 * 1 FLOP"
    )
    answer = throughput.of(model, device, batch)
    bound = answer.bound | text_by_hand("compute", "{intensity} > 165.2 TFLOP/s / 1.008 TB/s")
    rate = answer.rate | by_hand(
        "256 / ((2 * 256 * 197 * 1024 * (24 * 12 * 1024 + 768) + 2 * 256 * 1000 * 1024) FLOP"
        " / 165.2 TFLOP/s + 24 * 4 * 256 * 197 * 1024 * 2 byte / 1.008 TB/s)",
        "attention reads and writes four vectors of a token, and memory binds it",
    )
    intensity = intensity(answer) | by_hand(
        "256 * {work} / (2 byte * (24 * 12 * 1024**2 + 768 * 1024 + 1000 * 1024 + 256 * 197 *"
        " (24 * 22 * 1024 + 768 + 1024) + 256 * 2024))",
        "weights, and 22 vectors of 1024 that a token brings to and takes from a block",
    )
    measured = constants.frequency_images_vit_l_rtx_4090 | by_hand("1041.62 / 1 s")
    reached = share(measured, rate) | by_hand("1041.62 / 1314.83")


class MeasuredImages(Claims):
    """Networks of one pass reach a part of the bound, as others measured."""

    cases = (
        ("vit-l-16", "rtx-4090", 256, constants.frequency_images_vit_l_rtx_4090),
        ("vit-h-14", "rtx-4090", 256, constants.frequency_images_vit_h_rtx_4090),
        ("vit-l-16", "rtx-5090", 1024, constants.frequency_images_vit_l_rtx_5090),
        ("resnet-50", "rtx-5090", 1024, constants.frequency_images_resnet_50_rtx_5090),
        ("mobilenet-v2", "rtx-5090", 1024, constants.frequency_images_mobilenet_v2_rtx_5090),
        ("mobilenet-v3-large", "rtx-5090", 1024, constants.frequency_images_mobilenet_v3_rtx_5090),
    )

    @classmethod
    @row_by_hand("MobileNetV2 | 5090 | 22.4 | memory | 65 600 | 27 600 | 42.1%")
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


class Depthwise(Claims):
    """A depthwise convolution saves operations, and hardly any bytes: a few FLOP for each."""

    model = network("mobilenet-v2", Convolutional)
    large = network("resnet-50", Convolutional)
    device = hardware.get("rtx-5090")
    kernel = 3
    # Channels within the second stage of MobileNetV2, and between its blocks.
    wide = 144
    narrow = 24

    intensity = convolution.depthwise_intensity(kernel) | by_hand("2 * 9 FLOP / (2 * 2 byte)")
    pointwise = convolution.pointwise_intensity(wide, narrow) | by_hand(
        "2 * 144 * 24 FLOP / (2 * 168 byte)"
    )
    ridge_point = device.ridge_point("fp16") | by_hand("(209.5e12 / 1.792e12) FLOP/byte")
    work = convolution.forward_flops(model)
    large_work = convolution.forward_flops(large)
    fewer = large_work / work | by_hand("8.178 / 0.60153")
    layers = tuple(layer for layer in model.convolutions if layer.kind == "depthwise")
    depthwise_work = sum(
        (convolution.workload(layer).operations for layer in layers), quantity("0 FLOP")
    )
    work_share = share(depthwise_work, work) | by_hand("41.43 / 601.5")
    answer = throughput.of(model, device, 1024)
    time_share = share(answer.times["depthwise"], answer.time) | no_hand(
        "44.22362 %", "over bytes of each of the network's layers"
    )
    faster = (
        constants.frequency_images_mobilenet_v2_rtx_5090
        / constants.frequency_images_resnet_50_rtx_5090
        | by_hand("27591.89 / 12400.78")
    )


class DiffusedImage(Claims):
    """A diffusion transformer reads its prompt anew at each step: compute times steps."""

    model = network("flux-1-dev", DiffusionTransformer)
    machine = machines.get("dgx-h100")
    pixels = 1024

    image_tokens = diffusion.image_tokens(pixels, pixels, model.patch_pixels) | by_hand("64**2")
    tokens = diffusion.tokens(model)
    text_tokens = model.text_tokens | by_hand("512")
    steps = model.steps
    passes = diffusion.passes_of_an_image(steps, model.passes) | by_hand("28")
    parameters = model.parameters | by_hand("11901408320 param")
    modulation_share = share(model.parts["modulation"], parameters) | by_hand(
        "(19 * 2 * 6 + 38 * 3 + 2) * 3072 * 3073 / 11901408320"
    )
    met_share = share(quantity(model.blocks * model.stream_weights, "param"), parameters) | by_hand(
        "57 * 12 * 3072**2 / 11.90141e9"
    )
    pass_work = diffusion.pass_flops(model) | by_hand(
        "2 * 6.455e9 * 4608 FLOP + 4 * 57 * 4608**2 * 3072 FLOP"
    )
    attention = diffusion.joint_attention_flops(
        tokens, model.blocks, model.heads * model.head_width
    )
    attention_share = share(attention, pass_work) | by_hand("14.8724 / 74.362")
    answer = throughput.of(model, machine, software="diffusers-compiled")
    time = diffusion.image_time(pass_work, passes, machine.device.peak("bf16")) | by_hand(
        "(2.082e15 / 989e12) s"
    )
    intensity = intensity(answer) | by_hand(
        "{pass_work} / (2 byte * (76 * 12 * 3072**2 + 57 * 20 * 3072 * 4608))",
        "weights of 19 blocks of two streams and 38 of one, and 20 vectors of a token in each",
    )
    expected = answer.expected
    assert expected is not None
    measured = constants.latency_image_flux_h100
    eager = constants.latency_image_flux_h100_eager
    expected_eager = throughput.of(model, machine).expected
    assert expected_eager is not None
    short = ((measured - expected) / measured).to("%") | by_hand(
        "1 - 4.130456 / 4.209", "the expected time in s as recorded, and the measured one"
    )
    short_eager = ((eager - expected_eager) / eager).to("%") | by_hand(
        "1 - 6.532876 / 6.573", "the expected time in s as recorded, and the measured one"
    )
    reached = share(time, measured) | by_hand("2.105294 / 4.209")
    eager_reached = share(time, eager)
    each_of_batch = constants.latency_eight_images_flux_h100 / 8

    @classmethod
    @row_by_hand("measured, not compiled | 6.57 s | 32%")
    def rows(cls) -> Rows:
        """Time of an image, and the share of the peak that it makes use of."""
        assert cls.expected is not None
        assert cls.expected_eager is not None
        return [
            ("at the peak", cls.time, share(cls.time, cls.time)),
            ("expected, compiled", cls.expected, share(cls.time, cls.expected)),
            ("measured, compiled", cls.measured, cls.reached),
            ("measured, eight at once", cls.each_of_batch, share(cls.time, cls.each_of_batch)),
            ("expected, not compiled", cls.expected_eager, share(cls.time, cls.expected_eager)),
            ("measured, not compiled", cls.eager, cls.eager_reached),
        ]


class PictureAndText(Claims):
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

    patches = (pixels // patch) ** 2 | by_hand("96**2")
    tokens = patches // merged**2 | by_hand("9216 / 4")
    encoding = work_of_reading(encoder.with_context(patches), patches).to("TFLOP") | by_hand(
        "2 * (32 * 12 * 1280**2 + 3 * 14**2 * 1280) * 9216 * 1 FLOP + 4 * 32 * "
        "1280 * 9216**2 * 1 FLOP"
    )
    reading = (
        transformer.forward_flops(model, attention.causal_context(tokens))
        * quantity(tokens, "token")
    ).to("TFLOP") | by_hand("2 * 31.984e9 * 2304 FLOP + 4 * 64 * 8192 * 1152.5 * 2304 FLOP")
    encoder_share = share(encoding, encoding + reading) | by_hand(
        "25.52598 / (25.52598 + 152.9488)"
    )
    encoder_attention = share(
        diffusion.joint_attention_flops(patches, encoder.layers, encoder.width), encoding
    ) | by_hand("4 * 32 * 1280 * 9216**2 / 25.526e12")
    time = ((encoding + reading) / (device.peak("bf16") * mfu)).to("s") | by_hand(
        "({encoding} + {reading}) / 395.6 TFLOP/s"
    )
    cache = transformer.kv_cache(model, tokens).to("MB") | by_hand(
        "2304 * 64 * 2 * 8 * 128 * 2 bytes"
    )
    video_tokens = frames * (frame_pixels // patch // merged) ** 2 | by_hand("60 * 16**2")
    video_cache = transformer.kv_cache(model, video_tokens).to("GB") | by_hand(
        "15360 * 262144 bytes"
    )


class Video(Claims):
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
    kept = (frames - 1) // 4 + 1 | by_hand("80 / 4 + 1")
    short = 41

    tokens = kept * diffusion.image_tokens(height, across, 16) | by_hand("21 * 45 * 80")
    image_tokens = diffusion.image_tokens(height, across, 16)
    products = quantity((2 * parameters.m_as("param") * tokens).m_as(""), "FLOP").to(
        "PFLOP"
    ) | by_hand("2 * 14e9 * 75600 FLOP")
    attention = diffusion.joint_attention_flops(tokens, blocks, width).to("PFLOP") | by_hand(
        "4 * 40 * 5120 * 75600**2 * 1 FLOP"
    )
    one_pass = products + attention
    attention_share = share(attention, one_pass) | by_hand("4.6819 / 6.7987")
    passes = diffusion.passes_of_an_image(steps, 2) | by_hand("50 * 2")
    work = (passes * one_pass).to("PFLOP") | by_hand("100 * 6.7987 PFLOP")
    time = (diffusion.image_time(one_pass, passes, device.peak("bf16")) / mfu).to(
        "minute"
    ) | by_hand("679.8823e15 FLOP / (0.4 * 989e12 FLOP/s)")
    time_newer = (diffusion.image_time(one_pass, passes, newer.peak("bf16")) / mfu).to(
        "minute"
    ) | by_hand("679.8823e15 FLOP / (0.4 * 2.25e15 FLOP/s)")
    # Half of the frames: half of the products, a quarter of the attention.
    short_tokens = ((short - 1) // 4 + 1) * image_tokens
    short_attention = diffusion.joint_attention_flops(short_tokens, blocks, width)
    short_products = quantity((2 * parameters.m_as("param") * short_tokens).m_as(""), "FLOP")
    shorter = (one_pass / (short_products + short_attention)).to("") | by_hand(
        "(2.1168 + 4.682023) / (2.1168 * 11/21 + 4.682023 * (11/21)**2)"
    )


class RecommenderSample(Claims):
    """A sample reads rows at random, and its networks do more than that for each byte."""

    model = network("dlrm-dcnv2", Recommender)
    machine = machines.get("dgx-h100")
    device = machine.device
    batch = 51_200
    domain = machine.domain
    pairs = constants.count_pairs_of_a_dlrm_sample

    tables = len(model.rows) | by_hand("26")
    lookups = sum(model.lookups) | by_hand("214")
    largest = max(model.lookups)
    memory = recommenders.table_memory(model, "fp32").to("GB") | by_hand("204184588 * 512 byte")
    memory_16 = recommenders.table_memory(model, "fp16").to("GB") | by_hand("{memory} / 2")
    capacity = device.memory_capacity.to("GiB")
    devices = throughput.of(model, machine, batch, table="fp32").devices | by_hand(
        "ceil(104.5 / 85.9)"
    )
    devices_16 = throughput.of(model, machine, batch).devices | by_hand("ceil(52.3 / 85.9)")
    table_share = (model.parts["tables"] / model.parameters).to("%") | by_hand(
        "204184588 * 128 / (204184588 * 128 + 16.05e6)"
    )
    row = recommenders.row_traffic(model.embedding_width, TWO_BYTES) | by_hand("128 * 2 byte")
    traffic = recommenders.sample_traffic(model)
    work = recommenders.sample_flops(model) | by_hand("2 * 16030464 * 1 FLOP")
    intensity = roofline.arithmetic_intensity(work, traffic) | by_hand(
        "(32.06e6 / 54784) FLOP/byte"
    )
    ridge_point = device.ridge_point("fp16") | by_hand("(989e12 / 3.35e12) FLOP/byte")
    in_flight = recommenders.rows_in_flight(
        device.memory_bandwidth, constants.latency_hbm3, row
    ) | by_hand("3.35e12 * 350e-9 / 256")
    lookup_time = (traffic / device.memory_bandwidth).to("ns") | by_hand(
        "214 * 256 byte / 3.35 TB/s"
    )
    compute_time = (work / device.peak("fp16")).to("ns") | by_hand("{work} / 989 TFLOP/s")
    answer = throughput.of(model, machine, batch)
    rate = answer.rate | by_hand(
        "51200 / (51200 * 54784 byte / 3.35 TB/s + 2 * 51200 * (6 * 3456 * 512 + 3456 * 1024"
        " + 1024**2 + 1024 * 512) FLOP / 989 TFLOP/s + 2 byte * (13 * 512"
        " + 2 * 512 * 256 + 256 * 128 + 256 + 51200 * (13 + 512 + 2 * (512 + 256) + 256 + 128"
        " + 256 + 1)) / 3.35 TB/s)",
        "rows of tables, layers that compute binds, and layers that memory binds",
    )
    expected = answer.expected_rate | no_hand(
        "13902250.0 / 1 s", "the sum over each of the network's layers at measured rates"
    )
    assert expected is not None
    measured = (constants.frequency_samples_dlrm_dgx_h100 * pairs / machine.domain).to(
        "1/s"
    ) | by_hand("(361613 * 270 / 8) / 1 s")
    reached = share(measured, rate)
    error = ((expected - measured) / measured).to("%") | by_hand("{expected} / {measured} - 1")
    rate_8 = throughput.of(model, machine, batch, "int8").rate
    measured_8 = (constants.frequency_samples_dlrm_dgx_h100_99 * pairs / machine.domain).to(
        "1/s"
    ) | by_hand("(595658 * 270 / 8) / 1 s")
    reached_8 = share(measured_8, rate_8) | no_hand(
        "53.5232 %", "against the sum over each of the network's layers"
    )


class TablesOfTheHost(Claims):
    """Tables in the host's memory put the link between device and host in front of everything."""

    sample = RecommenderSample
    link = sample.machine.host_link | by_hand("63 GB/s")

    time = (sample.traffic / link).to("ns") | by_hand("54784 byte / 63 GB/s")
    rate = (link / sample.traffic).to("1/s")
    slower = sample.rate / rate | by_hand("{time} * 20089500 / 1 s")
    pooled = recommenders.pooled_traffic(
        sample.tables, sample.model.embedding_width, sample.machine.domain
    ) | by_hand("(26 * 256 * 7 / 8) byte")
    exchange = (pooled / sample.machine.bandwidth).to("ns") | by_hand("5824 byte / 450 GB/s")


class CrossAttention(Claims):
    """An encoder reads once; the decoder looks at all of it again for each token that it writes."""

    model = network("whisper-large-v3", EncoderDecoder)
    source = model.source_context
    assert source is not None
    written = 200
    seconds = quantity("30 s")

    encoder = encoder_decoder.encoder_flops(model, source) | by_hand(
        "2 * 1500 * 32 * 12 * 1280**2 * 1 FLOP + 4 * 1500**2 * 32 * 1280 FLOP"
    )
    projections = encoder_decoder.cross_projection_flops(model, source).to("TFLOP") | by_hand(
        "2 * 1500 * 32 * 2 * 1280**2 * 1 FLOP"
    )
    token = encoder_decoder.decoder_flops(model, source, written / 2)
    decoder = (token * quantity(written, "token")).to("TFLOP") | by_hand(
        "200 * (2 * (32 * 14 * 1280**2 + 51866 * 1280) + 4 * 1600 * 32 * 1280) * 1 FLOP"
    )
    cross_cache = encoder_decoder.cross_cache(
        source, model.decoder_layers, model.heads, model.head_width
    ).to("MB") | by_hand("2 * 1500 * 32 * 1280 * 2 byte")
    self_cache = encoder_decoder.self_cache(
        written, model.decoder_layers, model.heads, model.head_width
    ).to("MB")
    cache_ratio = cross_cache / self_cache | by_hand("1500 / 200")


class SmallerPatches(Claims):
    """Patches of half the side make four times the tokens, and more than four times the work."""

    model = OneImage.model
    device = OneImage.device
    side = 8

    tokens = (OneImage.pixels // side) ** 2 + 1
    more = tokens / OneImage.tokens | by_hand("785 / 197")
    longer = model.with_context(tokens)
    work = work_of_reading(longer, tokens) | by_hand(
        "(2 * 785 * 24 * 12 * 1024**2 + 4 * 785**2 * 1024 * 24 + 2 * 785 * 768 "
        "* 1024 + 2 * 1000 * 1024) * 1 FLOP"
    )
    more_work = work / OneImage.work | by_hand("535.9 / 123.1")
    hand_parameters = quantity("300M param")
    hand_tokens = 800
    rate = throughput.of(longer, device, OneImage.batch).rate | by_hand("165.2 TFLOP/s / {work}")


class GuidedImage(Claims):
    """Guidance by a second pass doubles the work of each step."""

    model = network("sd3-medium", DiffusionTransformer)
    machine = DiffusedImage.machine

    passes = diffusion.passes_of_an_image(model.steps, model.passes) | by_hand("28 * 2")
    answer = throughput.of(model, machine)
    time = sum(answer.parts.values(), quantity(0, "s")) * passes | by_hand(
        "56 * ((2 * 4096 * 12 * 1536**2 * 24 + 4 * 4429**2 * 1536 * 24) FLOP / 989 TFLOP/s"
        " + 24 * 2 byte * (12 * 1536**2 + 333 * 16 * 1536) / 3.35 TB/s)",
        "memory binds the products of the 333 tokens of text",
    )
    per_hour = (1 / time).to("1/hour") | by_hand("(3600 / 0.5082437) / 1 hour")
    pass_work = diffusion.pass_flops(model)
    blocks = model.blocks | by_hand("24", "the model's configuration")
    width = model.width | by_hand("1536", "the model's configuration")
    hand_met = quantity("0.7B param")
    hand_tokens = 4400
    work = (passes * pass_work).to("PFLOP") | by_hand(
        "56 * (2 * 24 * 12 * 1536**2 * 4429 + 4 * 24 * 4429**2 * 1536) * 1 FLOP"
    )
    few = 8
    few_time = time * few / model.steps
    faster = time / few_time | by_hand("28 / 8")
    once = answer.time - time  # encoders of the text, decoder of the image
    faster_in_all = answer.time / (few_time + once) | by_hand(
        "(0.5082437 + 0.01313609) / (0.5082437 * 8 / 28 + 0.01313609)",
        "13.1 ms go to two encoders of text and to the decoder of the image",
    )


class SmallServer(Claims):
    """Cards of 24 GiB hold the tables between them, and are faster than the link to a host."""

    model = RecommenderSample.model
    device = hardware.get("l4")

    capacity = device.memory_capacity.to("GiB") | by_hand("24 GiB")
    devices = recommenders.devices_for_tables(
        sum(model.rows), model.embedding_width, device.memory_capacity, TWO_BYTES
    ) | by_hand("ceil(52.27 / 25.77)")
    devices_8 = recommenders.devices_for_tables(
        sum(model.rows), model.embedding_width, device.memory_capacity, "1 byte"
    ) | by_hand("ceil(26.14 / 25.77)")
    lookup_time = (RecommenderSample.traffic / device.memory_bandwidth).to("ns") | by_hand(
        "54784 byte / 300 GB/s"
    )
    host_link = device.host_link | by_hand("31.5 GB/s")
    host_time = (RecommenderSample.traffic / host_link).to("us") | by_hand("54784 byte / 31.5 GB/s")
    compute_time = (RecommenderSample.work / device.peak("fp16")).to("ns") | by_hand(
        "{RecommenderSample.work} / 121 TFLOP/s"
    )
    rate = (1 / (lookup_time + compute_time)).to("1/s") | by_hand(
        "1 / ({lookup_time} + {compute_time})"
    )
