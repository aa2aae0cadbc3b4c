"""Published measurements beside what calc says of them: `calc.published.compare()`.

The rows are measurements that others published: kernels, collectives, training and serving, each
with its conditions and its source. Of each row calc says how long it takes at least (`lower`), how
long it is expected to take (`expected`, from measured rates of kernels), and how long where nothing
overlaps (`upper`). `compare` puts these beside the measurement, and `report` sums them up.
"""

from calc.published.comparing import compare, predict
from calc.published.prediction import Comparison, Prediction
from calc.published.reading import GROUPS, Row, load, row, rows
from calc.published.reporting import report, summary

__all__ = [
    "GROUPS",
    "Comparison",
    "Prediction",
    "Row",
    "compare",
    "load",
    "predict",
    "report",
    "row",
    "rows",
    "summary",
]
