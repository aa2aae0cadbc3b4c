"""Published measurements beside what calc says of them: `calc.published.compare()`.

The rows are measurements that others published: kernels, collectives, training and serving, each
with its conditions and its source. Of each row calc says how long it takes at least (`lower`), how
long it is expected to take (`expected`, from measured rates of kernels), and how long where nothing
overlaps (`upper`). `compare` puts these beside the measurement, and `report` sums them up.
"""

from calc.core.public import on_first_use

__getattr__, __dir__ = on_first_use(__name__)
