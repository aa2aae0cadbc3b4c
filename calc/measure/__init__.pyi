from calc.measure.kernel_suite import Kernel as Kernel, suite as suite
from calc.measure.machine_description import Machine as Machine, this_machine as this_machine
from calc.measure.record import accelerator as accelerator, read as read, save as save
from calc.measure.same_flop import Pair as Pair, pairs as pairs
from calc.measure.surveying import Survey as Survey, gpu_survey as gpu_survey, survey as survey
from calc.measure.repeated_timing import (
    Measured as Measured,
    NoisyError as NoisyError,
    timed as timed,
)
from calc.measure.validation import (
    Comparison as Comparison,
    error as error,
    median_error as median_error,
    predicted_time as predicted_time,
    validate as validate,
)
