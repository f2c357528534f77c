"""Small dense linear algebra on the host: what a summary is finished with."""

from bigkd.linalg.draws import independent_draws
from bigkd.linalg.exchange import equal_points, exchange, herd
from bigkd.linalg.halving import halve, neighbours
from bigkd.linalg.indefinite import IndefiniteSpectrum, indefinite_spectrum
from bigkd.linalg.selection import KernelFunction, Places, Selection, greedy_selection
from bigkd.linalg.simplex_weights import mass_weights, nonnegative_weights, of_mass
from bigkd.linalg.spectrum import Matrix, eigenvalues, top_eigenpairs

__all__ = [
    "IndefiniteSpectrum",
    "KernelFunction",
    "Matrix",
    "Places",
    "Selection",
    "eigenvalues",
    "equal_points",
    "exchange",
    "greedy_selection",
    "halve",
    "herd",
    "indefinite_spectrum",
    "independent_draws",
    "mass_weights",
    "neighbours",
    "nonnegative_weights",
    "of_mass",
    "top_eigenpairs",
]
