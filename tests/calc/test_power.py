"""Power that devices were measured to draw, as `calc watts` and `calc collective` print it."""

from __future__ import annotations

import json

import pytest

from calc.published import power
from calc.published.left_out import left_out
from calc.steps import curves
from tests.calc.command import Command


def test_every_measured_power_is_read_by_device_and_load(command: Command) -> None:
    """ML.ENERGY's H100s: 72 loads, none above the design power by more than its meter is off."""
    answer = json.loads(command.prints("watts h100 --json"))
    assert len(answer["rows"]) == 72
    assert all(0.3 < row["share_of_design_power"] < 1.02 for row in answer["rows"])
    eight = json.loads(command.prints("watts h100 --model llama-3-1-8b --json"))["rows"]
    assert [row["model"] for row in eight] == ["meta-llama/Llama-3.1-8B-Instruct"] * len(eight)
    # Its own two figures agree: what the GPUs drew over their tokens a second is their J/token.
    for draw in power.draws():
        if draw.of == "devices":
            measured = draw.row.measured
            per_token = measured["avg_gpu_power_total"] / measured["output_tokens_per_s"]
            assert per_token == pytest.approx(measured["gpu_energy_per_output_token"], rel=1e-3)


def test_of_a_device_that_nobody_measured_there_is_a_marked_estimate(command: Command) -> None:
    text = command.prints("watts a100")
    assert "0 loads measured: an estimate is 171.4 W to 394.6 W" in text
    assert "an unpublished power" in command.prints("watts apple-m3-ultra")


def test_a_collective_says_whose_curve_it_took(command: Command) -> None:
    """nccl-tests printed 373 µs for 16 MB on 64 H100s, and the bound is of two ports' rings."""
    answer = json.loads(command.prints("collective all-reduce 16MB dgx-h100 --devices 64 --json"))
    least, most = (answer["interval"][end]["value"] for end in ("low", "high"))
    assert answer["lower"]["value"] * 1e6 < least * 1e6 < 373 < most * 1e6
    assert [curve["machine"] for curve in answer["curves"]] == ["dgx-h100"]
    text = " ".join(
        command.prints("collective all-reduce 16MB aws-p5 --devices 64 --explain").split()
    )
    assert (
        "NVIDIA DGX H100 over InfiniBand or RoCE, not EFA by nccl-tests, in place, scaled" in text
    )
    assert "a collective is one of all_gather" in command.refuses(
        "collective", "all-red", "1 GB", "h100"
    )


@pytest.mark.parametrize("span", ["domain", "across"])
def test_four_of_five_curves_left_out_lie_in_the_interval(span: str) -> None:
    errors = [curve.nearest for curve in left_out() if curve.curve.span == span]
    inside = sum(error <= curves.off_of_libraries(span) for error in errors)
    assert 0.8 * len(errors) <= inside < 0.8 * len(errors) + 1
