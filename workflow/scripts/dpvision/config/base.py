"""Types that all sections share."""

import importlib
import json
import pkgutil
from collections import Counter
from collections.abc import Collection
from types import ModuleType
from typing import Annotated, Any, Literal, TypeVar, Union

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

PATTERNS = {  # what a message says instead of the pattern
    r"^[a-z][a-z0-9_]*$": "a name of small letters, digits and underscores that begins with a letter",
    r"^[0-9a-f]{32}$": "an MD5: 32 hexadecimal digits, small letters",
    r"^[0-9a-f]{64}$": "a SHA-256: 64 hexadecimal digits, small letters",
    r"^timm/[a-z0-9_]+$": "a name of timm's behind timm/, as in timm/vit_base_patch16_224",
    r"^[^.]+\..+$": "a dotted key, as in recipe.clip",
}
NAME, MD5, SHA256, TIMM, DOTTED = PATTERNS

Item = TypeVar("Item")


def _distinct(values: list) -> list:
    twice = [value for value, count in Counter(json.dumps(value, default=dict) for value in values).items() if count > 1]
    if twice:
        raise ValueError(f"{', '.join(twice)} is listed more than once")
    return values


Distinct = Annotated[list[Item], AfterValidator(_distinct), Field(min_length=1, json_schema_extra={"uniqueItems": True})]
Name = Annotated[str, Field(pattern=NAME)]
Digest = Annotated[str, Field(pattern=MD5)]
Sha256 = Annotated[str, Field(pattern=SHA256)]
Dotted = Annotated[str, Field(pattern=DOTTED)]
Positive = Annotated[int, Field(gt=0)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Epsilon = Annotated[float, Field(gt=0)]
Groups = Positive | Literal["channels"]


class Later:
    """Marker of a field that was added when there were names already: a spec leaves it out while it has its default."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    def as_spec(self, exclude: Collection[str] = ()) -> dict[str, Any]:
        """Return what a spec says of it: every field but those that came later and have their default."""
        said = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            unsaid = Later in field.metadata and value == field.default
            if name not in exclude and not unsaid:
                said[name] = _as_spec(value)
        return said


def _as_spec(value: Any) -> Any:
    """Return what a spec says of a value, and of what a mapping or a list holds."""
    if isinstance(value, Strict):
        return value.as_spec()
    if isinstance(value, list):
        return [_as_spec(one) for one in value]
    return {key: _as_spec(below) for key, below in value.items()} if isinstance(value, dict) else value


class Searched(Strict):
    """A value that a search finds."""

    search: Name
    """The name of one of the paper's searches."""


def members(package: ModuleType, part: str = "") -> dict[str, ModuleType]:
    """Import what lies in a package, by name: its modules, or the module `part` of each package in it."""
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__) if found.ispkg == bool(part))
    return {name: importlib.import_module(".".join(filter(None, [package.__name__, name, part]))) for name in names}


def one_of(modules: dict[str, ModuleType], key: str) -> Any:
    """Return the type of a mapping whose `key` says which module's `Options` it holds."""
    kinds = tuple(module.Options for module in modules.values())
    return Annotated[Union[kinds], Field(discriminator=key)] if len(kinds) > 1 else kinds[0]  # noqa: UP007
