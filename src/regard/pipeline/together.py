"""Several models as one that is asked like any other: the mean of their probabilities at each step."""

from collections.abc import Sequence
from dataclasses import replace

from regard.decoding.ensemble import Ensemble
from regard.models.characters import letters_read
from regard.models.contract import SequenceModel
from regard.models.folder import Loaded
from regard.support.errors import Misuse


def together(loaded: Sequence[Loaded], names: Sequence[str]) -> Loaded:
    """An ensemble of what several model folders hold. Misuse says which of them does not go with the first, and why."""
    first, models = loaded[0], []
    for name, each in zip(names, loaded, strict=True):
        if not isinstance(each.model, SequenceModel):
            raise Misuse(f"{name}: only models that give sequences make an ensemble; this one was built to {each.task}")
        if said := _differs(first, each):
            raise Misuse(f"{name}: cannot be in an ensemble with {names[0]}: {said}")
        models.append(each.model)
    try:
        model = Ensemble(models)
    except ValueError as error:
        raise Misuse(str(error)) from None
    model.task, model.sizes, model.settings = first.task, first.model.sizes, first.model.settings
    longest = [told for each in loaded if isinstance(told := each.about.get("longest"), int)]
    about = {**first.about, "longest": min(longest)} if longest else first.about
    return replace(first, model=model.eval(), about=about)


def _differs(one: Loaded, other: Loaded) -> str:
    """What stands between them, in words."""
    if one.task != other.task:
        return f"it was built to {other.task}, not to {one.task}"
    for side in ("source", "target"):
        if one.tokenizers.get(side) != other.tokenizers.get(side):
            return f"its {side} has another tokenizer; models of an ensemble are trained with the same one"
    if letters_read(one.model) != letters_read(other.model):
        return "one reads words by their letters and the other does not, or fewer of them"
    if one.model.sizes.image != other.model.sizes.image or one.model.sizes.input_width != other.model.sizes.input_width:
        return "it takes sources of another size"
    return ""
