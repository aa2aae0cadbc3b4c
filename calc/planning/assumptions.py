"""Sentences on what a plan stands on, and on what may make it another."""

from __future__ import annotations

from collections.abc import Iterator

from calc import formats
from calc.catalog.hardware import Accelerator, dtype_of
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import COMPRESSED, INDEXED, RECURRENT
from calc.core.elementwise import largest
from calc.networks import transformer
from calc.planning.choice import CANDIDATES
from calc.planning.estimate import Estimate
from calc.planning.setup import Setup, is_array
from calc.published.power_rows import DEVICES, watts
from calc.steps import device_power, held_memory
from calc.steps.expectation import read_from_ssd
from calc.steps.job import Tokens


def _place(plan: Estimate) -> str:
    """Return the links over which the devices add up their results, as a clause."""
    if plan.link is not None:
        return f"in rings of {plan.link} each way"
    machine, most = plan.machine.hosted, largest(plan.one_copy.devices)
    if machine.domain == 1:
        return f"over the ports of {machine.name}, {machine.ports} each way"
    inside = f"on {machine.name}, where {machine.domain} devices have {machine.bandwidth} each way"
    return inside if most <= machine.domain else f"{inside}, and beyond {machine.ports}"


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:].rstrip(".")


def not_to_be_had(device: Accelerator) -> Iterator[str]:
    """The sentence of a device that is announced."""
    if device.announced:
        yield (
            f"{device.name} is announced and cannot be had yet: what follows from its rates may"
            " change with them."
        )


def caveats(plan: Estimate) -> Iterator[str]:
    """Yield what may make it another answer for this model on these devices."""
    model, device = plan.model, plan.device
    yield from not_to_be_had(device)
    yield from filter(None, (memory.doubt for memory in plan.capacity.memories))
    start = plan.capacity.memories[-1].start
    yield from held_memory.caveats(start) if start.rules is None and not start.bare else ()
    if plan.expected is not None and plan.expected.missing:
        yield f"{_sentence(plan.expected.missing)}."
    if plan.drafts is not None and plan.drafting is None:
        yield "Whether drafts pay is told of one point whose times are expected, and not of this."
    if (split := plan.split) is not None:
        reached = (
            "as given"
            if split.host.measured
            else (f"of which {plan.software.name} is taken to reach {plan.software.host_share:.0%}")
        )
        yield (
            f"What the host holds is read at {split.host.bandwidth}, {reached}: a run of one's own"
            ' says more, as in host "96 GB at 40 GB/s".'
        )
        if split.resident < 1 and not is_array(plan.batch):
            load = Tokens(writing=plan.batch.m_as(""), context=plan.prompt.m_as(""))
            likely, even = (read_from_ssd(plan.job, load, each) for each in (False, True))
            assert split.host.ssd is not None
            yield (
                f"A step reads {likely.to('GB'):.3g} from the SSD at {split.host.ssd}, with hits as"
                f" in other caches of experts; routing that favours none reads {even.to('GB'):.3g},"
                f" {((even - likely) / split.host.ssd).to('ms'):.3g} longer, and what is in memory"
                " by chance none. A prompt reads the missing share of all in each piece."
            )
        yield (
            f"Prompts wait for it over the link, at {plan.machine.host_link} each way by what is"
            f" published of {plan.device.name}, once for each piece of {plan.software.piece:g}"
            " tokens: larger ones (-ub 2048) wait less often and take more of the device's memory."
        )
    if largest(plan.devices) == 1:
        return
    host = plan.machine.hosted
    if plan.link is None and host is not plan.machine:
        yield (
            f"{host.name}, each at the {host.bandwidth} each way that are published: a board that"
            " gives cards fewer lanes has less."
        )
    if model.experts is not None and plan.experts == 1:
        yield (
            "Experts are cut like all matrices: layouts that share out whole experts or sequences"
            " (EP, DP) are others, which may be faster: experts=8 (--experts 8), with as many"
            " copies for DP."
        )
    if largest(shared := plan.job.copies_of_caches) > 1:
        has = "no heads" if model.kv_latent is not None else f"{model.kv_heads} heads"
        yield (
            f"{model.name} has {has} of keys and values for {largest(plan.tensor):g} slices, so"
            f" that {largest(shared):g} hold the same: bounds read each cache once, as if it were"
            f" shared out; memory {'holds it once' if start.bare else 'holds copies'},"
            " and what is expected is of copies, or where these do not fit, of shares and the"
            " exchange of queries and results."
        )


def assumptions(plan: Estimate) -> Iterator[str]:
    """Yield what the numbers stand on, a sentence each."""
    model, device = plan.model, plan.device
    rated = device.is_rated(plan.dtype)
    rates = (device.memory_bandwidth, *([device.peak(plan.dtype)] if rated else []))
    origins = [rate.provenance for rate in rates if rate.provenance is not None]
    pace = f"at {device.peak(plan.dtype)}" if rated else "at a rate that is not published"
    measured = any(origin.kind == "measured" for origin in origins)
    yield (
        f"Products are computed in {dtype_of(plan.dtype).upper()} {pace},"
        f" with {plan.weights_told} and keys and values in"
        f" {formats.printed(plan.kv)}; memory runs at {device.memory_bandwidth}."
    )
    yield (
        f"Both bounds take {'measured' if measured else 'published'} rates: with perfect overlap"
        " all parts run at once, without overlap they follow one another; launches, queues and"
        " kernels below these rates come on top."
    )
    if plan.users is None:
        yield (
            "Prompts are read together and answers generated together; memory holds each sequence"
            " at its full length."
        )
    else:
        yield (
            "Each user asks again as soon as an answer is whole, and is met in the middle of one;"
            " times are the means of requests from then on. Clients of a benchmark that all ask"
            " first at once stay in step where lengths are alike, and wait longer for first tokens."
        )
        yield (
            "No bound is beaten by any program: of a first token that of a prompt read alone, of a"
            " token after it that of one sequence, of the rest what all devices do for all users;"
            " the bounds without overlap are those of the same loop."
        )
    if plan.chosen_by:
        yield CANDIDATES
    if plan.stages > 1:
        yield (
            f"Sequences share {plan.stages} batches, each in another of the stages of layers (PP);"
            " prompts stream through them in the program's largest steps, and bounds take pieces as"
            " small as can be. A stage sends two vectors of each token, and the fullest decides"
            " memory."
        )
    if (drafting := plan.drafting) is not None:
        yield (
            f"Tokens that a pass keeps of what {drafting.drafts.draft} drafts are"
            f" {'' if drafting.whose == 'as given' else 'curves '}{drafting.whose}"
            f"{' [' + ', '.join(drafting.sources) + ']' if drafting.sources else ''}; all lines"
            " above are of steps without drafts."
        )
    if (split := plan.split) is not None:
        pattern = f", or {split.pattern(model)}" if split.experts and not split.layers else ""
        yield (
            "All experts of a layer lie in one place, so that it does not matter which of them are"
            f" chosen: llama.cpp {split.options(model)}{pattern}. Device and host take turns at"
            " each layer."
        )
    start = plan.capacity.memories[-1].start
    yield from held_memory.assumptions(start)
    yield from () if start.rules is None else held_memory.caveats(start)
    yield ("Throughput, cost and energy are those of generated tokens, and prefill is in them.")
    if largest(plan.tensor) > 1:
        yield (
            "Each matrix is cut into a slice for each device of a copy; they add up their results"
            f" twice a layer, two bytes a number, {_place(plan)}; in the bounds messages have no"
            " latency."
        )
    if plan.expected is None:
        yield f"{_sentence(plan.not_expected)}."
    else:
        yield (
            f"Expected is what kernels and messages were measured to reach on {plan.machine.name},"
            " or on the machine most like it, one after the other; launches count where they were"
            f" measured; with {plan.software.title()}."
        )
    if plan.price is None:
        yield "No price of a device was given, so that cost is left out."
    else:
        yield f"A device costs {plan.price}, as given, and always has work."
    yield from drawn_at_work(plan, "while it works, which it does all the time")
    if plan.in_machine:
        origins += filter(None, [plan.machine.power.provenance])
    for origin in origins:
        if origin.kind == "estimate":
            yield f"{origin.title} is an estimate."
    yield from (f"{model.name}: {note}." for note in model.notes)
    yield from (f"{model.name}: {layers}." for layers in _not_full(model))


def drawn_at_work(setup: Setup, when: str) -> Iterator[str]:
    """Yield what devices and their machine are taken to draw."""
    device, machine = setup.device, setup.machine
    if (power := setup.power) is None:
        yield f"The power of {device.name} is unpublished, so that energy is left out."
        return
    idle = device_power.idle(machine)
    assert idle is not None
    yield (
        f"Each device draws by how much of bandwidth and peak it uses {when}, as H100s and B200s"
        f" were metered, at most its {device.tdp}; the bound of energy is that of a device that is"
        f" idle, {idle.device:.3g}, for the least time."
    )
    if setup.power_cap is not None:
        yield (
            f"Under the cap of {setup.power_cap} clocks fall with the cube root of the power that"
            " is left, but for a part that no clock saves; what memory takes stays, as an RTX 5090"
            " was measured."
        )
    if setup.in_machine:
        rest = device_power.at_work(machine, 0.0, 0.0)
        assert rest is not None
        yield (
            f"Energy has {rest.rest:.3g} a device beside it for hosts, links and fans, of the"
            f" {power.rest:.3g} that are left of the {machine.power} of {machine.name}: the share"
            " that a server of H100s was measured to draw; cooling the building comes on top."
        )
    else:
        yield "Energy is that of devices alone; hosts and cooling come on top."


def drawn(plan: Estimate) -> str:
    """Return what its devices themselves draw while they write tokens, measured or as others."""
    measured = watts(plan.machine)
    loads = [draw.power for draw in measured.measured if draw.of == DEVICES]
    if not loads:
        return "; ".join(line for line in measured.title if line) + "."
    whole = None if plan.power is None else plan.power.total
    share = f"; with its share of the box {whole} at most" if plan.in_machine else ""
    return (
        f"{plan.device.name} was measured to draw {min(loads)} to {max(loads)} itself while it"
        f" writes tokens, in {len(loads)} loads{share}."
    )


def _not_full(model: Transformer) -> Iterator[str]:
    """Yield what layers do that do not attend to the whole context, or attend to latents."""
    layers = f"of its {model.layers} layers"
    if model.kv_latent is not None:
        yield (
            "latents are counted expanded into keys and values where prompts are read, and with"
            " their matrices absorbed into queries and results where tokens are written, which"
            " takes more operations and reads fewer bytes"
        )
    if count := model.layers_with("window"):
        yield f"{count} {layers} look back on {model.window} tokens and keep no more"
    if model.borrowing is not None:
        yield (
            f"the last {model.borrowing} {layers} keep no keys and values, and look at those of an"
            " earlier one"
        )
    few, many = (model.layers_with(kind) for kind in COMPRESSED)
    if model.compresses:
        yield (
            f"{few} {layers} join {model.compression} tokens to one vector for all heads and attend"
            f" to the best {model.index_topk} of these, {many} join {model.heavy_compression} and"
            f" attend to all, and each to {model.window} tokens besides; no kernel of theirs is in"
            " the data"
        )
    if count := model.layers_with(*INDEXED) - few:
        yield (
            f"{count} {layers} score all tokens and attend to the best {model.index_topk}, which is"
            " counted in the format of all products"
        )
    if count := model.layers_with("following"):
        yield f"{count} {layers} attend to what the last layer with scores of its own has selected"
    if count := model.layers_with(*RECURRENT):
        state = transformer.state_memory(model).to("MiB")
        yield f"{count} {layers} keep a state in place of tokens, {state:.4g} for each sequence"
