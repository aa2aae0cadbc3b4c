"""Goodput of services within limits, as planned and as MLPerf published it.

    python -m benchmarks.service_goodput

`experiments.goodput` says what a row is, and what is taken to be so where it says
nothing.
"""

from __future__ import annotations

from experiments import goodput


def main() -> None:
    print("written tokens a second, MLPerf's Llama 2 70B: measured, and as planned")
    for comparison in goodput.compare():
        row = comparison.row
        designs = ", ".join(
            f"{rate:9,.0f} ({error:+.0%})"
            for rate, error in zip(comparison.predicted, comparison.errors, strict=True)
        )
        print(
            f"{row['system']:34}{comparison.scenario:12}{comparison.measured:9,.0f}  {designs}"
            f"  {row['id']}"
        )


if __name__ == "__main__":
    main()
