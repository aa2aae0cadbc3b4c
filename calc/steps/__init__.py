"""The time of a step: its kernels and its messages, by laws and by measured rates."""
