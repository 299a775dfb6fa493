"""The families of networks that there are, by name; light."""

from typing import TYPE_CHECKING

import dpvision.models
from dpvision.config.base import members, one_of
from dpvision.models.options import Network

FAMILIES = members(dpvision.models, "options")

if TYPE_CHECKING:
    Model = Network
else:
    Model = one_of(FAMILIES, "family")
