from calc.published.comparing import compare as compare, predict as predict
from calc.published.prediction import Comparison as Comparison, Prediction as Prediction
from calc.published.reading import (
    GROUPS as GROUPS,
    Row as Row,
    load as load,
    row as row,
    rows as rows,
)
from calc.published.reporting import report as report, summary as summary
