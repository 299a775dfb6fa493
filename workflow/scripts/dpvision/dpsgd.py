"""Everything that your own private training loop needs, in one import. docs/own_loop.md shows such a loop."""

from dpvision.data.sampling import PoissonSampler
from dpvision.privacy.accounting import Mechanism, calibrate
from dpvision.privacy.fast import ClippedSum
from dpvision.privacy.noise import noise_like
from dpvision.privacy.rules import Refused
from dpvision.secret import Secret
from dpvision.secret import add_noise as add_secret_noise

__all__ = ["ClippedSum", "Mechanism", "PoissonSampler", "Refused", "Secret", "add_secret_noise", "calibrate", "noise_like"]
