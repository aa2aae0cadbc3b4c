"""The command `calc`: what it prints, and that a mistake is one sentence and an exit code."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import calc
from calc import constants, hardware, models, quantity
from calc.commands import main
from tests.calc.command import Command, Written
from tests.calc.unexpected import UNEXPECTED


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "calc", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | environment,
    )


def test_list(command: Command) -> None:
    everything = command.prints("list")
    for name in (*hardware.names(), *models.names(), *constants.names(), *calc.all_laws()):
        assert f"\n  {name} " in everything
    assert command.prints("list devices").startswith("h100 ")
    assert "Speedup of a fixed problem on n processors." in command.prints("list laws")
    assert "640 pJ" in command.prints("list constants")


def test_show_a_device(command: Command) -> None:
    shown = command.prints("show H100")
    assert shown.startswith("NVIDIA H100 SXM5 80 GB (2022)\n")
    for line in ("989 TFLOP/s", "80 GiB", "450 GB/s", "700 W", "295.2 FLOP/byte", "Source: NVIDIA"):
        assert line in shown
    assert "unpublished" in command.prints("show tpu-v5p")
    assert "4 W (estimate)" in command.prints("show phone-npu")


def test_what_is_announced_stands_apart(command: Command) -> None:
    there, announced = command.prints("list devices").split(
        "\n\nannounced, and not to be had yet:\n"
    )
    assert all(f"\n{key} " in f"\n{announced}" for key in hardware.announced())
    assert not any(f"\n{key} " in f"\n{there}" for key in hardware.announced())
    assert "22 TB/s (announced)" in command.prints("show rubin")
    sentence = "is announced and cannot be had yet"
    for device in ("rubin", "h100"):
        plan = command.prints(f"plan llama-3-8b {device} --prompt 100 --generated 10")
        assert (sentence in plan) == (device == "rubin")


def test_what_is_not_supported_is_told_from_what_is_not_published(command: Command) -> None:
    shown = " ".join(command.prints("show a10g").split())
    assert "not supported by its matrix units FP8, FP6, FP4" in shown
    assert "links to other devices none" in shown
    assert "dense peak, BF16 unpublished" in shown


OWN_MACHINE = """
[two-cards]
name = "My two cards"
device = "rtx-4090"
domain = 2
fabric = "pcie"
kind = "datasheet"
checked = 2026-11-01
bandwidth = { value = 32, unit = "GB/s", direction = "each way", source = "me" }
"""


def test_show_a_machine_of_ones_own_whose_source_is_of_its_records(
    command: Command, written: Written
) -> None:
    path = written(OWN_MACHINE, "b.toml")
    assert command.prints("show", str(path)).startswith("My two cards\ndevice ")


def test_show_a_model(command: Command) -> None:
    shown = command.prints("show Gemma_2_27B")
    assert shown.startswith("Gemma 2 27B (2024)\nlayers ")
    for line in (
        "parameters, counted",
        "27.23B param",
        "Source: Google (2024)",
        "Note: feed forward width of",
    ):
        assert line in shown
    assert re.search(r"^layers of, window +23$", shown, re.M)
    assert "25.56M param" in command.prints("show resnet-50")


def test_show_software(command: Command) -> None:
    assert command.prints("list software").startswith("vllm ")
    printed = command.prints("show vLLM")
    own_time = r"^its own time for each sequence of a step +30 µs \(estimate\)$"
    assert re.search(own_time, printed, re.M)
    assert re.search(r"^fitted to the rows of +dgx-h100$", printed, re.M)
    assert "Source: ML.ENERGY (2026)" in printed
    assert "Note: sequence of vLLM: Fitted with the time of a step to the 6 rows" in printed
    facts = command.facts("show vllm")
    assert (facts["kind"], facts["sequence"]["value"]) == ("software", 30)
    assert command.prints("show llama-cpp").startswith("llama.cpp\n")  # of which no number is known
    assert command.prints("search vllm").split("\n")[0].split() == ["vllm", "software", "vLLM"]


def test_show_a_constant_and_a_law(command: Command) -> None:
    constant = constants.get("energy_dram_word")
    assert command.prints("show energy_dram_word") == f"640 pJ\n{calc.source(constant)}\n"
    shown = command.prints("show scaling.amdahl")
    assert shown.startswith("calc.scaling.amdahl(serial_fraction, processors)\n")
    assert "\n  processors       n  processors that share the work\n" in shown
    assert "Equation: S(n) = 1 / (s + (1 − s) / n)" in shown
    assert "ridge_point(peak: FLOP/s, bandwidth: byte/s)" in command.prints(
        "show roofline.ridge_point"
    )


def test_show_a_law_by_its_full_name(command: Command) -> None:
    shown = command.prints("show calc.roofline.attainable")
    assert shown == command.prints("show roofline.attainable")
    assert "function 'calc.zzz'" in command.refuses("show calc.zzz")


def test_roofline(command: Command) -> None:
    printed = command.prints("roofline h100 --flops '14 GFLOP' --bytes '14 GB'")
    answer, basis, _, *lines = printed.splitlines()
    assert answer == "at least 4.179 ms on NVIDIA H100 SXM5 80 GB, bound by memory"
    assert basis.startswith("BOUND ONLY, published peaks alone")
    rows = dict(line.split("  ", 1) for line in lines)
    assert {title: row.strip() for title, row in rows.items()} == {
        "device": "FP16: 989 TFLOP/s, 3.35 TB/s",
        "arithmetic intensity": "1 FLOP/byte",
        "ridge point": "295.2 FLOP/byte",
        "attainable": "3.35 TFLOP/s (0.3387% of the dense peak)",
        "time, perfect overlap": "4.179 ms",
        "time, no overlap": "4.193 ms",
    }
    assert command.prints("roofline h100 --flops 14e9 --bytes 14e9") == printed
    assert command.prints("roofline dgx-h100 --flops 14e9 --bytes 14e9") == printed
    assert "INT8" in command.prints("roofline h100 --flops 1e9 --bytes 1 --dtype int8")


LENGTHS = "--prompt 1000 --generated 200"
SERVER = f"--batch 8 {LENGTHS}"


def test_plan(command: Command) -> None:
    line = f"plan llama-3-70b H100 {SERVER}"
    made = calc.plan("llama-3-70b", "h100", batch=8, prompt=1000, generated=200, price="3 USD/hour")
    assert command.prints(f"{line} --price '3 USD/hour'") == f"{made.table()}\n"
    explained = command.prints(f"{line} --price '3 USD/hour' --explain").replace("\n  ", " ")
    for title, sentences in (
        ("Assumed", made.assumptions),
        ("What would change it", made.explained().what_would_change),
    ):
        assert "\n".join([f"{title}:", *(f"- {each}" for each in sentences)]) in explained
    small = command.prints(f"{line} --weights INT8 --devices 1 --software none")
    # 68.45e9 weights of a byte and twice 128256 × 8192 of two leave 1200 tokens of 327680 byte
    assert re.search("batch that fits +33\n", small)
    tight = command.prints(f"{line} --devices 1 --explain", status=1)
    assert re.search(r"[\d.]+ GiB +of 72.85 GiB: does not fit", tight)
    assert "- It fits on 2 devices." in tight


def test_all_overlapped_is_fastest_in_time_and_in_rate(command: Command) -> None:
    """Each answer stands under its heading: times are least there, and the rate is largest."""
    printed = command.prints(f"plan llama-3-8b h100 {SERVER} --explain")
    _, bounds = printed.split("Bounds at published rates:\n")
    cells = {line[:14].strip(): re.findall(r"[\d.]+ \S+", line[14:]) for line in bounds.split("\n")}
    made = calc.plan("llama-3-8b", "h100", batch=8, prompt=1000, generated=200)
    assert re.match(" +perfect overlap +no overlap\n", bounds)
    answer, written = made.answer_time, made.throughput
    assert cells["whole answer"][:2] == [str(answer.lower), str(answer.upper)]
    assert cells["throughput"][:2] == [str(written.upper), str(written.lower)]
    tokens = quantity("8 * 200 token")  # in the time of a whole answer
    assert written.upper.m_as("token/s") == pytest.approx((tokens / answer.lower).m_as("token/s"))


def test_the_parts_of_a_plan(command: Command) -> None:
    asked = {"batch": 8, "prompt": 1000, "generated": 200, "software": "vllm"}
    made = calc.plan("llama-3-70b", "dgx-h100", **asked)
    printed = command.prints(f"plan llama-3-70b dgx-h100 {SERVER} --software vllm --parts")
    assert printed == f"{made.table()}\n\n{made.expected}\n"
    unmeasured = f"plan llama-3-70b {UNEXPECTED} {SERVER} --dtype fp8"
    assert command.prints(f"{unmeasured} --parts") == command.prints(unmeasured)


def test_plans_for_several_counts(command: Command) -> None:
    line = f"plan llama-3-70b h100 --devices 2,8 --batch 1,8,64 {LENGTHS}"
    lines = command.prints(line).split("\n\n")[1].splitlines()[1:7]
    rows = [re.split("  +", re.sub(r" \([^)]*\)", "", line)) for line in lines]
    asked = [[n, b] for n in "28" for b in ("1", "8", "64")]
    assert [row[:2] for row in rows] == asked
    for (devices, batch), row in zip(asked, rows, strict=True):
        alone = calc.plan(
            "llama-3-70b", "h100", devices=devices, batch=batch, prompt=1000, generated=200
        )
        if not alone.fits:
            assert (devices, batch, row[3:5]) == ("2", "64", ["does not fit", "–"])
            continue
        assert alone.expected is not None
        token, written = alone.expected.time_per_token, alone.expected.throughput
        assert float(row[3]) == pytest.approx(token.m_as("ms"), rel=5e-3)
        assert float(row[4]) == pytest.approx(written.m_as("token/s"), rel=5e-3)
    assert "What would change it" not in command.prints(f"{line} --explain")


def test_plan_a_config(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    fields = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
    }
    config.write_text(json.dumps(fields))
    assert re.search("  weights +14.96 GiB", command.prints(f"plan {config} h100 {SERVER}"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (f"llama h100 {SERVER}", "there is no model 'llama'"),
        (f"a,b h100 {SERVER}", "takes one model, and several devices and numbers with"),
        (f"llama-3-8b h100,h10 {SERVER}", "there is no device 'h10'"),
        ("llama-3-8b h100 --prompt 9 --generated 2.5", "--generated must be a whole number from 1"),
        (f"llama-3-8b h100 {LENGTHS} --batch 1e23", "from 1 to 1e15; got 1e+23"),
        (f"llama-3-8b h100 {SERVER} --devices x", "--devices needs numbers, as in 1,8,64; got 'x'"),
        (f"llama-3-8b h100 {SERVER} --batch ''", "--batch needs numbers, as in 1,8,64; got ''"),
        (f"llama-3-8b h100 {SERVER} --price 3", "--price must be one positive quantity"),
        (f"llama-3-8b h100 {SERVER} --weights -8", "weights must be the size of an element"),
        (f"none.json h100 {SERVER}", "none.json"),
        (
            f"llama-3-8b h100,a100 {SERVER} --parts",
            "--parts prints those of one plan, and 2 are asked for: give one device",
        ),
    ],
)
def test_plans_refused(command: Command, arguments: str, sentence: str) -> None:
    assert sentence in command.refuses(f"plan {arguments}")


def test_roofline_of_integers_counts_operations(command: Command) -> None:
    printed = command.prints("roofline h100 --flops 100e9 --bytes 1e9 --dtype INT8")
    assert "100 OP/byte\n" in printed
    assert "590.7 OP/byte\n" in printed
    assert "335 TOP/s (16.93% of the dense peak)" in printed
    assert "FLOP" not in printed


def test_roofline_without_traffic(command: Command) -> None:
    printed = command.prints("roofline h100 --flops '989 GFLOP' --bytes 0")
    assert "bound by compute" in printed
    cells = dict(re.split("  +", line, maxsplit=1) for line in printed.splitlines()[3:])
    del cells["device"], cells["ridge point"]
    assert cells == {
        "arithmetic intensity": "none, since no bytes are moved",
        "attainable": "989 TFLOP/s (100% of the dense peak)",
        "time, perfect overlap": "1 ms",
        "time, no overlap": "1 ms",
    }


@pytest.mark.parametrize(("operations", "traffic"), [("0", "5"), ("1e-300", "1e300")])
def test_roofline_of_hardly_any_operations(command: Command, operations: str, traffic: str) -> None:
    printed = command.prints(f"roofline h100 --flops {operations} --bytes {traffic}")
    assert re.search("arithmetic intensity +0 FLOP/byte\n", printed)
    assert re.search("bound by memory\n", printed)
    assert re.search(r"attainable +0 TFLOP/s \(0%", printed)


def test_roofline_refusals(command: Command) -> None:
    work = "--flops 1e9 --bytes 1e9"
    assert "no device 'h101'" in command.refuses(f"roofline h101 {work}")
    assert "no dense peak for FP4" in command.refuses(f"roofline h100 {work} --dtype fp4")
    assert "calc: --bytes must be zero or positive" in command.refuses(
        "roofline h100 --flops 1 --bytes=-1"
    )
    for none in ("50%", "50 percent", "3 GB / 2 GB"):
        assert "--bytes needs a quantity in byte, or a bare number; got" in command.refuses(
            f"roofline h100 --flops 1 --bytes '{none}'"
        )
    assert "calc: --flops needs a quantity in FLOP; got 1 GB" in command.refuses(
        "roofline h100 --flops '1 GB' --bytes 1"
    )


def test_eval(command: Command) -> None:
    expression = "6 FLOP/param/token * 7B param * 1T token / (1024 * 989 TFLOP/s * 40%)"
    assert command.prints("eval", expression) == "28.80 h\n"
    assert command.prints("eval", expression, "--to", "day") == "1.200 day\n"
    assert command.prints("eval '10 GB / 2 GB/s'") == "5 s\n"
    assert command.prints("eval '-5 GB'") == "-5 GB\n"


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9",
        "__import__('os')",
        "calc.__class__.__mro__",
        "",
        "1e999",
        "x" * 1_000_000,
        "(" * 1000,
        "1 GB + 5 USD",
        "1/0",
    ],
    ids=lambda expression: expression[:20],
)
def test_eval_refuses(command: Command, expression: str) -> None:
    assert len(command.refuses("eval", expression)) < 300


def test_eval_to_another_dimension(command: Command) -> None:
    assert command.refuses("eval '3 GB' --to s") == (
        "calc: --to needs a unit of the same dimension as 3 GB; got 's'\n"
    )
    assert "--to needs a unit" in command.refuses("eval '3 GB' --to ''")
    assert command.prints("eval '3 GB / 2 GB' --to 1") == "1.5\n"
    assert "1e308 EB is too large" in command.refuses("eval '1e308 EB' --to bit")
    assert "furlong is not a unit" in command.refuses("eval '3 GB' --to furlong")


def test_show_refuses_an_unknown_name(command: Command) -> None:
    assert command.refuses("show zzz") == (
        "calc: there is no constant, device, machine, software, model, run, grid, format,"
        " comparison, recipe, law or function 'zzz'; `calc list` prints their names\n"
    )
    assert len(command.refuses("show", "z" * 5000)) < 300


def test_show_a_source_as_answers_name_it(command: Command) -> None:
    assert command.prints("show nvidia-aiconfigurator").startswith("NVIDIA (2026), aiconfigurator")
    assert "to reach: `calc show dgx-b200`\n" in command.prints("show b200")


def test_a_size_below_zero_is_refused_as_a_size(command: Command) -> None:
    assert "positive and in byte; got -1GB" in command.refuses("collective all-reduce -1GB h100")


def test_show_a_recipe(command: Command) -> None:
    shown = command.prints("show Adam_Mixed")
    assert shown.startswith("16 byte/param: 2 weight + 2 gradient + 4 master weight + 4 momentum +")
    assert "Source: Rajbhandari et al. (2020), ZeRO" in shown


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("training_time", "training.training_time?"),
        ("trainig.training_time", "training.training_time"),
        ("energy_dram_wrd", "energy_dram_word"),
        ("H10O", "h100"),
    ],
)
def test_show_suggests_what_was_meant(command: Command, name: str, meant: str) -> None:
    sentence = command.refuses("show", name)
    assert f"law or function {name!r}; did you mean {meant}" in sentence


def test_show_tells_a_mistake_in_the_data(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "_texts", lambda: {"broken": '[broken]\nname = "Broken 1"'})
    monkeypatch.setattr(hardware, "_spellings", lambda: {"broken": "broken"})
    assert "broken must be a table with a name and a year" in command.refuses("show broken")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "calc: the following arguments are required: COMMAND; see calc --help"),
        (["roofline", "h100"], "calc roofline: the following arguments are required: --flops"),
        (["list", "devils"], "calc list: argument what: invalid choice: 'devils'"),
        (["frobnicate"], "calc: argument COMMAND: invalid choice: 'frobnicate'"),
        (["lst"], "calc: argument COMMAND: invalid choice: 'lst'; did you mean list? choose from"),
        (["list", "devics"], "calc list: argument what: invalid choice: 'devics'; did you mean"),
        (
            ["gemm", "4096", "4096", "h100"],
            "calc gemm: argument k: a whole number is needed here; got 'h100'; see calc gemm",
        ),
    ],
)
def test_wrong_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith(sentence)
    assert message.count("\n") == 1


def test_as_a_program() -> None:
    done = process("eval", "10 GB / 2 GB/s")
    assert (done.returncode, done.stdout, done.stderr) == (0, "5 s\n", "")
    failed = process("eval", "1,5 GB")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("calc: cannot read '1,5 GB'")


def test_a_terminal_without_our_letters() -> None:
    done = process("eval", "3 us", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 \\xb5s\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
def test_a_full_device() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "calc", "eval", "3 GB"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("calc: cannot write the output: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_stops_early() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "calc", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert isinstance(process.stdout, io.BufferedReader)
    assert process.stderr is not None
    process.stdout.close()  # before anything is printed
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_throughput_of_an_encoder_of_ones_own(command: Command, tmp_path: Path) -> None:
    """A config is as fast as the data's encoder that it copies; unknown fields of it are named."""
    path = tmp_path / "config.json"
    shape = {"num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12}
    widths = {"intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512}
    fields = {"model_type": "bert", "type_vocab_size": 2, "new_part": 3}
    path.write_text(json.dumps(fields | shape | widths))
    of_file, ours = (
        command.prints("throughput", each, "h100", "--explain") for each in (str(path), "bert-base")
    )
    assert (
        of_file.split("weights:")[1].split("Assumed")[0]
        == ours.split("weights:")[1].split("Assumed")[0]
    )
    of_file = of_file.replace("\n  ", " ")
    assert "has what is unknown here, and not counted: new_part." in of_file


def test_throughput(command: Command) -> None:
    printed = command.prints("throughput flux-1-dev dgx-h100 --steps 28")
    made = calc.throughput.of("flux-1-dev", "dgx-h100", steps=28)
    assert made.expected_rate is not None
    assert printed.startswith(
        f"FLUX.1 [dev] on 1 NVIDIA H100 SXM5 80 GB: {made.expected_rate.m_as('1/s'):.4g} "
    )
    assert "; measured rates of NVIDIA DGX H100, 46 published rows " in " ".join(printed.split())
    printed = command.prints("throughput flux-1-dev dgx-h100 --steps 28 --explain")
    assumptions = (
        printed.split("\n\nAssumed:\n- ")[1].rstrip("\n").replace("\n  ", " ").split("\n- ")
    )
    assert assumptions == list(made.assumptions)
    facts = command.facts("throughput dlrm-dcnv2 dgx-h100 --devices 8")
    assert (facts["devices"], facts["devices_that_share_tables"], facts["batch"]) == (8, 1, 51200)
    assert any("holds 270 of them" in each for each in facts["assumptions"])
    at_most = f"at the most 0.4724 images a second, 1701 an hour: {made.time} a batch"
    assert at_most in " ".join(printed.split())
    sentence = command.refuses("throughput llama-3-8b h100")
    assert "Llama 3 8B writes tokens" in sentence
    assert "`calc throughput`" in command.refuses("plan bert-base h100 --prompt 9 --generated 9")
    assert "1024 → 1024 → 512 → 256 → 1" in command.prints("show dlrm-dcnv2")
    assert "inverted, to 24 channels" in command.prints("show mobilenet-v3-large")


def test_a_product(command: Command) -> None:
    product = calc.products.gemm(64, 4096, 4096, calc.machines.get("dgx-b200"), "fp8")
    line = "gemm 64 4096 4096 b200 --dtype FP8_E4M3"
    assert command.prints(line) == f"{product}\n"
    facts = command.facts(line)
    assert product.expected is not None
    assert facts["expected"]["value"] == pytest.approx(product.expected.m_as("s"))
    assert (facts["bound"], facts["waves"], facts["tile"]) == ("memory", 1, [64, 64])
    assert "the size m must be a whole number" in command.refuses("gemm 0 1 1 h100")
