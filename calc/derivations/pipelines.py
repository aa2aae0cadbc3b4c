"""Claims of the chapter "Training at scale" on pipelines."""

from __future__ import annotations

from typing import NamedTuple

from calc import collectives
from calc.derivations.by_hand import by_hand
from calc.derivations.ledger import Claims


class Slot(NamedTuple):
    """One pass of one microbatch through a stage, in units of a device's work for a step."""

    device: int
    slice: int
    microbatch: int
    backward: bool
    start: float
    length: float


class PipelineSchedule(Claims):
    """Two thin stages on each device instead of a thick one leave half of the bubble."""

    devices = 4 | by_hand("4")
    microbatches = 8 | by_hand("8")
    slices = 2 | by_hand("2")

    bubble = collectives.bubble_fraction(devices, microbatches).to("%")
    bubble_interleaved = collectives.bubble_fraction(devices, microbatches, slices).to("%")
    sooner = (1 - (1 - bubble) / (1 - bubble_interleaved)).to("%")

    @classmethod
    def order(cls, device: int, slices: int) -> list[tuple[bool, int, int]]:
        """Return a device's work in turn: backward or not, through which slice, which microbatch.

        It fills up with forward passes until the first gradient can be back, and then takes one
        forward and one backward pass in turn, each for a group of as many microbatches as there
        are devices before the next slice gets them.
        """
        devices, passes = cls.devices, cls.microbatches * slices
        turns = []
        for step in range(passes):
            group, within = divmod(step, devices * slices)
            turns.append((within // devices, group * devices + within % devices))
        forward = [(False, part, batch) for part, batch in turns]
        backward = [(True, slices - 1 - part, batch) for part, batch in turns]
        ahead = devices - 1 - device
        if slices > 1:
            ahead = min(passes, 2 * ahead + (slices - 1) * devices)
        pairs = zip(forward[ahead:], backward, strict=False)
        in_turn = [turn for pair in pairs for turn in pair]
        return [*forward[:ahead], *in_turn, *backward[passes - ahead :]]

    @classmethod
    def slots(cls, slices: int) -> list[Slot]:
        """One forward and one backward pass in turn (1F1B), of which the second takes twice."""
        forward = 1 / (3 * cls.microbatches * slices)
        last = cls.devices * slices - 1
        waiting = [cls.order(device, slices) for device in range(cls.devices)]
        free = [0.0] * cls.devices
        ended: dict[tuple[bool, int, int], float] = {}
        times = []
        while any(waiting):
            for device, order in enumerate(waiting):
                while order:
                    backward, part, batch = order[0]
                    stage = part * cls.devices + device
                    before = backward, stage + 1 if backward else stage - 1, batch
                    if backward and stage == last:
                        before = False, stage, batch
                    if before not in ended and (backward or stage):
                        break
                    start = max(free[device], ended.get(before, 0.0))
                    length = 2 * forward if backward else forward
                    times.append(Slot(device, part, batch, backward, start, length))
                    free[device] = ended[backward, stage, batch] = start + length
                    order.pop(0)
        return times
