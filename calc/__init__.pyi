"""The one list of what `import calc` offers: Python imports by it too, as `core/public.py` says."""

from collections.abc import Callable
from typing import Any

from calc.catalog import (
    constants as constants,
    hardware as hardware,
    machines as machines,
    software as software,
    engines as engines,
    models as models,
    runs as runs,
    kernel_shares as kernel_shares,
    engine_sums as engine_sums,
    expert_exchanges as expert_exchanges,
    intervals as intervals,
    apis as apis,
    asking as asking,
    grids as grids,
    acceptance as acceptance,
)
from calc import formats as formats
from calc.laws import (
    roofline as roofline,
    scaling as scaling,
    queueing as queueing,
    training as training,
    failures as failures,
    energy as energy,
    memory as memory,
    links as links,
    quantization as quantization,
    calibration as calibration,
    sparsity as sparsity,
    gemms as gemms,
    attention as attention,
    parallelism as parallelism,
    cost as cost,
    collectives as collectives,
    layers as layers,
    caches as caches,
    serving as serving,
    speculation as speculation,
    experts as experts,
    context_parallelism as context_parallelism,
    adapters as adapters,
    rollouts as rollouts,
    offloading as offloading,
)
from calc.networks import (
    transformer as transformer,
    convolution as convolution,
    encoder_decoder as encoder_decoder,
    diffusion as diffusion,
    recommenders as recommenders,
)
from calc.steps import (
    splits as splits,
    drafting as drafting,
    job as job,
    kernels as kernels,
    curves as curves,
    communication as communication,
    measured as measured,
    expectation as expectation,
    timing as timing,
    inference as inference,
    engine_start as engine_start,
    held_memory as held_memory,
    device_memory as device_memory,
    device_power as device_power,
    layouts as layouts,
    finetuning as finetuning,
    reinforcement as reinforcement,
    products as products,
    throughput as throughput,
)
from calc import (
    planning as planning,
    published as published,
    simulation as simulation,
    codesign as codesign,
    measure as measure,
    derivations as derivations,
)
from calc.steps.job import (
    Batch as Batch,
    Formats as Formats,
    Job as Job,
    Layout as Layout,
    Tokens as Tokens,
)
from calc.core.errors import InputError as InputError
from calc.core.units import Quantity as Quantity, quantity as quantity
from calc.core.version import __version__ as __version__
from calc.planning.service.break_even import break_even as break_even
from calc.published.checking import check as check
from calc.planning.comparing.compare import compare as compare
from calc.planning.plan_nouns import (
    Draft as Draft,
    Failures as Failures,
    Limits as Limits,
    Load as Load,
    Prices as Prices,
    Search as Search,
    Server as Server,
    Tiers as Tiers,
    Training as Training,
)
from calc.planning.serving_plan import plan as plan
from calc.planning.service.service_planner import plan_service as plan_service
from calc.planning.training.training_planner import plan_training as plan_training
from calc.planning.training.reinforcement_plan import plan_reinforcement as plan_reinforcement
from calc.core.records import source as source
from calc.steps.timing import step as step

__all__: list[str]
SUBMODULES: tuple[str, ...]

def all_laws() -> dict[str, Callable[..., Any]]: ...
