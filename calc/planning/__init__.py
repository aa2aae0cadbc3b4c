"""Planning as one call: does a model fit, on how many devices, how fast, at what cost.

`calc.plan` puts the laws of `inference`, `collectives` and `cost` together for a batch of sequences
that read a prompt and write an answer; `plan_training` lays a run out, `plan_service` finds the
devices of a service whose requests come as they like, and `compare` sets machines or models side by
side. Batches, lengths and numbers of devices of `plan` may be arrays, which broadcast; points that
do not fit have NaN for their times. Devices are of one kind: to compare kinds, `calc.compare` them.
"""

from calc.core.public import on_first_use

__getattr__, __dir__ = on_first_use(__name__)
