"""Small dense linear algebra: what a summary is finished with, and pairs of maps compared."""

from bigkd.linalg.draws import independent_draws
from bigkd.linalg.exchange import equal_points, exchange, herd
from bigkd.linalg.factors import Factors, factored, truncated
from bigkd.linalg.halving import halve, neighbours
from bigkd.linalg.indefinite import IndefiniteSpectrum, indefinite_spectrum
from bigkd.linalg.ridge import BestPair, PairValues, best_functions, dissimilarities
from bigkd.linalg.ridge_plan import scratch_bytes
from bigkd.linalg.selection import KernelFunction, Places, Selection, greedy_selection
from bigkd.linalg.simplex_weights import mass_weights, nonnegative_weights, of_mass
from bigkd.linalg.spectrum import Matrix, eigenvalues, top_eigenpairs
from bigkd.linalg.stacks import largest_eigenvalues
from bigkd.linalg.whitening import Whitening, whitening

__all__ = [
    "BestPair",
    "Factors",
    "IndefiniteSpectrum",
    "KernelFunction",
    "Matrix",
    "PairValues",
    "Places",
    "Selection",
    "Whitening",
    "best_functions",
    "dissimilarities",
    "eigenvalues",
    "equal_points",
    "exchange",
    "factored",
    "greedy_selection",
    "halve",
    "herd",
    "indefinite_spectrum",
    "independent_draws",
    "largest_eigenvalues",
    "mass_weights",
    "neighbours",
    "nonnegative_weights",
    "of_mass",
    "scratch_bytes",
    "top_eigenpairs",
    "truncated",
    "whitening",
]
