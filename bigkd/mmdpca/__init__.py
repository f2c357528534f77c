"""MMD-PCA: the subspace that explains a distribution, at any size."""

from bigkd.mmdpca.backgrounds import background
from bigkd.mmdpca.distance import mmd_to_projection
from bigkd.mmdpca.fit import fit
from bigkd.mmdpca.kernels import HigherMoments
from bigkd.mmdpca.projection import project, reconstruct

__all__ = [
    "HigherMoments",
    "background",
    "fit",
    "mmd_to_projection",
    "project",
    "reconstruct",
]
