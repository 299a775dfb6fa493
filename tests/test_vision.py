"""torchvision imports whichever builds of it and of torch are installed."""

import subprocess
import sys


def test_torchvision_imports_and_its_models_and_transforms_work():
    code = (
        "from dpvision.vision import torchvision; import torch; from torchvision.transforms import v2;"
        "net = torchvision.models.resnet18(num_classes=10).eval();"
        "print(net(v2.RandomHorizontalFlip()(torch.zeros(2, 3, 32, 32))).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "torch.Size([2, 10])\n", done.stderr


def test_an_import_that_fails_for_another_reason_is_not_hidden():
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torchvision': raise RuntimeError('something else')\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import dpvision.vision"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("RuntimeError: something else")
