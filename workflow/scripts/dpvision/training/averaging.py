"""The exponential moving average of a training's parameters, which costs no privacy."""

import copy

import torch
from torch import nn


class Average:
    """A network beside the live one whose parameters follow it; buffers are the live one's.

    After step t, counted from 0, the average moves to decay * average + (1 - decay) * parameters with
    min(decay, (1 + t) / (10 + t)): the first steps, far from where it ends, are soon forgotten (De et al. 2022).
    """

    def __init__(self, live: nn.Module, decay: float) -> None:
        self.live, self.decay = live, decay
        self.network = copy.deepcopy(live)

    @torch.no_grad()
    def update(self, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.network.parameters()), list(self.live.parameters()), 1 - decay)
        for buffer, of_live in zip(self.network.buffers(), self.live.buffers(), strict=True):
            buffer.copy_(of_live)
