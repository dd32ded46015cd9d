"""What comes with the package: the language detector, and a translator's folder where one is there."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.text.detector import Detector

HERE = Path(__file__).parent
DETECTOR = HERE / "detector.json"
TRANSLATOR = HERE / "translator"


@cache
def detector() -> "Detector":
    """Tells apart the languages of the translator: English, Spanish, French, German, Italian, Hindi, Bengali."""
    from regard.text.detector import Detector

    return Detector.load(DETECTOR)


def translator() -> Path | None:
    """The folder of the translator that comes with the package; None where this build has none."""
    return TRANSLATOR if (TRANSLATOR / "model.json").is_file() else None
