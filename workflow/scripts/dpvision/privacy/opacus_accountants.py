"""Opacus' accountants without the rest of it.

They are numpy and scipy. But `import opacus` brings torch and all that trains, for which who only checks a ledger should
not wait, and need not have it.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from dpvision.errors import UserError


def _load() -> tuple[ModuleType, ModuleType]:
    """Import Opacus' accountants.prv and accountants.analysis.rdp; empty packages stand for those around them."""
    found = importlib.util.find_spec("opacus")
    if found is None or found.origin is None:
        raise UserError("ε is counted by Opacus' accountants: pip install --no-deps opacus (torch is not needed for them)")
    folder = Path(found.origin).parent
    whole = _without("opacus")
    try:
        for name, place in (("opacus", folder), ("opacus.accountants", folder / "accountants"), ("opacus.optimizers", None)):
            stand_in = ModuleType(name)
            stand_in.__path__ = [str(place)] if place else []
            sys.modules[name] = stand_in
        sys.modules["opacus.optimizers"].DPOptimizer = object  # type: ignore[attr-defined]
        names = ("opacus.accountants.prv", "opacus.accountants.analysis.rdp")
        prv, rdp = map(importlib.import_module, names)
        return prv, rdp
    finally:
        _without("opacus")
        sys.modules.update(whole)


def _without(package: str) -> dict[str, ModuleType]:
    """Take a package's modules out of those that are imported, and return them."""
    names = [name for name in sys.modules if name.split(".")[0] == package]
    return {name: sys.modules.pop(name) for name in names}


_prv, _rdp = _load()
PRVAccountant = _prv.PRVAccountant
compute_rdp = _rdp.compute_rdp
get_privacy_spent = _rdp.get_privacy_spent
