"""Views of an image: random crops, turns and the like, whose gradients are averaged before clipping (De et al. 2022)."""

import math

import torch
from torch import Tensor

from dpvision.secret import Source, integers, uniform

SHARES, RATIOS = (0.02, 0.33), (0.3, 3.3)  # bounds of an erased rectangle: area to the image's, height to width; torchvision's


def margin_of(side: int, resize: float) -> int:
    """Return by how much an image is larger than its views, where it is resized to so many times their size."""
    return int(side * resize) - side


class Views:
    """A drawer of an example's views: for a whole sample at once, so that its cut into physical batches changes none.

    A view is the image turned by up to `rotate` degrees about its centre, of which a crop of the image's own size is
    taken with `pad` pixels around it, turned left to right with probability `flip`; with probability `erase` a rectangle
    of it becomes 0, which is the data's mean. What lies beside the image is its mirror image, the edge mirrored too (as
    in numpy's "symmetric"), or, with the border "black", black, which normalised images have as `black`.

    Images may be higher and wider than their views by a `margin`: then crops come from anywhere in them.
    """

    def __init__(
        self,
        pad: int,
        flip: float,
        views: int,
        include_original: bool,
        generator: Source,
        border: str = "mirror",
        rotate: float = 0.0,
        erase: float = 0.0,
        black: Tensor | None = None,
        margin: int = 0,
    ) -> None:
        self.pad, self.flip, self.views, self.include_original = pad, flip, views, include_original
        self.rotate, self.erase, self.margin = rotate, erase, margin
        self.black = black if border == "black" else None
        self.generator = generator

    def draw(self, examples: int) -> Tensor:
        """Draw [examples, views, 8]: pixels that the crop lies lower and further right than the middle, 1 if turned left to
        right, the angle, and of the erased rectangle height and width (none: 0) and place, each as a share of what it can be.
        """
        shape = (examples, self.views)
        before = self.margin // 2
        shifts = integers(-self.pad - before, self.pad + self.margin - before + 1, (*shape, 2), self.generator)
        turned = uniform((*shape, 1), self.generator) < self.flip
        drawn = torch.cat([shifts, turned, torch.zeros(*shape, 5, device=turned.device)], dim=2)
        if self.rotate:
            drawn[..., 3] = math.radians(self.rotate) * (2 * uniform(shape, self.generator) - 1)
        if self.erase:
            coin, share, ratio, *place = uniform((5, *shape), self.generator)
            share = (SHARES[0] + (SHARES[1] - SHARES[0]) * share) * (coin < self.erase)
            ratio = RATIOS[0] * (RATIOS[1] / RATIOS[0]) ** ratio
            sides = [(share * ratio).sqrt().clamp(max=1), (share / ratio).sqrt().clamp(max=1)]
            drawn[..., 4:] = torch.stack([*sides, *place], dim=2)
        if self.include_original:
            drawn[:, 0] = 0
        return drawn

    def make(self, images: Tensor, drawn: Tensor) -> Tensor:
        """Turn [B, C, H, W] into [B, K, C, h, w], contiguous, smaller by the margin. Each pixel is fetched from its place:
        nothing is padded.
        """
        channels, *size = images.shape[1:]
        height, width = (side - self.margin for side in size)
        down, right, turned, angle, *rectangle = drawn[..., None, None].unbind(2)
        y, x = torch.arange(height, device=images.device)[:, None], torch.arange(width, device=images.device)
        rows, columns = y + down, torch.where(turned == 1, width - 1 - x, x) + right
        if before := self.margin // 2:
            rows, columns = rows + before, columns + before
        beside, rows, columns = self._within(rows, columns, *size)
        if self.rotate:
            rows, columns = _turned(rows, columns, angle, *size)
            more, rows, columns = self._within(rows, columns, *size)
            beside = beside | more
        pixels = (rows * size[1] + columns).long().flatten(2)  # [B, K, h * w]
        fetched = images.flatten(2)[:, None].expand(-1, drawn.shape[1], -1, -1)
        made = fetched.gather(3, pixels[:, :, None].expand(-1, -1, channels, -1)).unflatten(3, (height, width))
        if self.black is not None:
            made = torch.where(beside[:, :, None], self.black.to(made), made)
        if self.erase:
            high, wide, *place = rectangle
            erased = _between(y, high, place[0], height) & _between(x, wide, place[1], width)
            made = made.masked_fill(erased[:, :, None], 0)
        return made

    def _within(self, rows: Tensor, columns: Tensor, height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return which places lie beside the image, and the places in it that they take their pixels from."""
        if self.black is None:
            return torch.zeros((), dtype=torch.bool, device=rows.device), mirrored(rows, height), mirrored(columns, width)
        kept = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
        return (kept[0] != rows) | (kept[1] != columns), *kept


def mirrored(places: Tensor, size: int) -> Tensor:
    """Return where a pixel beside the image comes from: ... 1 0 | 0 1 2 ... size-1 | size-1 size-2 ..."""
    places = places.remainder(2 * size)
    return torch.minimum(places, 2 * size - 1 - places)


def _turned(rows: Tensor, columns: Tensor, angle: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return where the pixels of an image that is turned counter-clockwise come from, to the nearest pixel."""
    middle, centre = (height - 1) / 2, (width - 1) / 2
    y, x, sine, cosine = rows - middle, columns - centre, angle.sin(), angle.cos()
    return (cosine * y + sine * x + middle).round(), (cosine * x - sine * y + centre).round()


def _between(places: Tensor, share: Tensor, where: Tensor, size: int) -> Tensor:
    """Tell which places lie in a stretch of a side: so much of it, so far along the places that it can have."""
    length = (size * share).round()
    begin = ((size - length + 1) * where).floor()
    return (places >= begin) & (places < begin + length)
