"""Small dense linear algebra on the host: what a summary is finished with."""

from bigkd.linalg.indefinite import IndefiniteSpectrum, indefinite_spectrum
from bigkd.linalg.spectrum import eigenvalues, top_eigenpairs

__all__ = ["IndefiniteSpectrum", "eigenvalues", "indefinite_spectrum", "top_eigenpairs"]
