"""How long a step takes: its kernels and its messages, by laws and by measured rates."""
