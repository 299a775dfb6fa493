"""Views of an image: random crops and flips, whose gradients are averaged before clipping (De et al. 2022)."""

import torch
from torch import Tensor


class Views:
    """Draws an example's views: for a whole sample at once, so that its cut into physical batches changes none.

    A view is a crop of the image's own size, out of the image with `pad` pixels of its mirror image around it (the
    edge is mirrored too, as in numpy's "symmetric"), turned left to right with probability `flip`.
    """

    def __init__(self, pad: int, flip: float, views: int, include_original: bool, generator: torch.Generator) -> None:
        self.pad, self.flip, self.views, self.include_original = pad, flip, views, include_original
        self.generator = generator

    def draw(self, examples: int) -> Tensor:
        """[examples, views, 3]: pixels that the crop lies lower and further right than the image, and 1 if it is turned."""
        size, how = (examples, self.views), {"generator": self.generator, "device": self.generator.device}
        shifts = torch.randint(-self.pad, self.pad + 1, (*size, 2), **how)  # type: ignore[call-overload]
        turned = torch.rand((*size, 1), **how) < self.flip  # type: ignore[call-overload]
        drawn = torch.cat([shifts, turned], dim=2)
        if self.include_original:
            drawn[:, 0] = 0
        return drawn


def make_views(images: Tensor, drawn: Tensor) -> Tensor:
    """[B, C, H, W] -> [B, K, C, H, W], contiguous. Every pixel is fetched from where it comes from: nothing is padded."""
    channels, height, width = images.shape[1:]
    down, right, turned = drawn[..., None].unbind(2)
    rows = mirrored(torch.arange(height, device=images.device) + down, height)
    columns = torch.arange(width, device=images.device)
    columns = mirrored(torch.where(turned == 1, width - 1 - columns, columns) + right, width)
    pixels = (rows[..., None] * width + columns[..., None, :]).flatten(2)  # [B, K, H * W]
    fetched = images.flatten(2)[:, None].expand(-1, drawn.shape[1], -1, -1)
    return fetched.gather(3, pixels[:, :, None].expand(-1, -1, channels, -1)).unflatten(3, (height, width))


def mirrored(places: Tensor, size: int) -> Tensor:
    """Where a pixel beside the image comes from: ... 1 0 | 0 1 2 ... size-1 | size-1 size-2 ..."""
    places = places.remainder(2 * size)
    return torch.minimum(places, 2 * size - 1 - places)
