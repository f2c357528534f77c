"""Compare collections too big for memory.

Modules are the namespace: `bigkd.finc.modes(...)`, `bigkd.kernels.Gaussian(...)`.
"""

__version__ = "0.1.0"
