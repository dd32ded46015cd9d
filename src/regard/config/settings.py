"""The base of every settings class: frozen, keyword-only, checked at construction, no unknown keys."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from regard.config.mistakes import mistakes
from regard.support.errors import Misuse

NUMBERS = (int, float, int | None, float | None)


class _SpeaksToAPerson(type(BaseModel)):  # type: ignore[misc] # pydantic keeps its metaclass private
    """Settings built in Python tell their mistakes as those read from a file do.

    Only the outermost construction comes through here; settings inside settings are made by pydantic,
    which gathers all their errors first.
    """

    def __call__(cls, *positional: Any, **values: Any) -> Any:
        try:
            return super().__call__(*positional, **values)
        except ValidationError as error:
            told = [f"{cls.__name__}: {each}" for each in mistakes(error, cls, values)]
            raise Misuse("\n".join(told)) from None


if TYPE_CHECKING:  # type checkers see a plain pydantic class, and so check the fields of every construction
    _Spoken = BaseModel
else:

    class _Spoken(BaseModel, metaclass=_SpeaksToAPerson):
        pass


class Settings(_Spoken):
    """What can be set about one thing. Each field has a docstring under it, which is its description."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    @model_validator(mode="before")
    @classmethod
    def _true_is_no_number(cls, values: Any) -> Any:
        """Python takes true for 1; whoever writes `epochs: true` meant something else, and is told so."""
        if not isinstance(values, Mapping):
            return values
        numbers = {name for name, field in cls.model_fields.items() if field.annotation in NUMBERS}
        return {
            key: str(value).lower() if key in numbers and isinstance(value, bool) else value
            for key, value in values.items()
        }

    def changed(self, **values: Any) -> Self:
        """The same settings with some fields changed, checked again; pydantic's model_copy does not check."""
        return type(self)(**{**dict(self), **values})
