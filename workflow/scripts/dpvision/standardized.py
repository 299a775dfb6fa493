"""Scaled weight standardisation, as one operation that a torch function mode can recognise and replace."""

from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function


def standardized(weight: Tensor, gain: Tensor, eps: float = 1e-4) -> Tensor:
    """Return the weight scaled so that each output channel has mean 0 and the sum of squares gain².

    gain · (w - mean) / sqrt(max(fan_in · var, eps)), var the biased variance of the fan_in weights of the channel:
    `eps` is a floor, not a summand, and a channel whose weights are all equal becomes zero.
    """
    if has_torch_function((weight, gain)):
        return handle_torch_function(standardized, (weight, gain), weight, gain, eps)
    return pieces(weight, gain, eps)[0]


def pieces(weight: Tensor, gain: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the standardised weight and what it is made of: by rows, the centred weight, its energy, and 1 / its norm."""
    rows = weight.flatten(1)
    centred = rows - rows.mean(1, keepdim=True)
    energy = centred.square().sum(1)  # fan_in · var
    scale = energy.clamp(min=eps).rsqrt()
    return (centred * (scale * gain).unsqueeze(1)).view_as(weight), centred, energy, scale
