"""torchvision, importable whichever builds of it and of torch lie beside each other.

    from dpvision.vision import torchvision

The registry's torchvision for Linux is linked against CUDA. Beside a CPU build of torch its compiled operators
do not load, and its import fails where it describes two of them that then do not exist. Declaring these two lets
it import: models, transforms and data sets work, the detection operators do not.
"""

import torch

try:
    import torchvision
except RuntimeError as error:
    if "torchvision::nms" not in str(error):
        raise
    _declared = torch.library.Library("torchvision", "DEF")  # kept: its declarations end with it
    _declared.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

__all__ = ["torchvision"]
