"""The folder of the translator that comes with the package, from one that was trained: in 8 bits, with its card.

    regard train translator
    python benchmarks/results/make_translator.py models/translator src/regard/builtin/translator

Writes the weights in 8 bits, and scores every direction on the held-out sentences of the training's own data (all of a
sentence's translations are its references): as it was trained, and as it is shipped, by PyTorch and by CTranslate2. The
scores of the last go into the card, and all with their signatures into benchmarks/results/translator.json.
`--first 200` takes so many sentences of a direction, `--only CTranslate2` that way alone; `--device cuda` is for the
trained model. At the end the sentences of the lecture are translated, to be looked at.
"""

import argparse
import json
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from regard.data.prepared import Prepared
from regard.decoding.settings import SearchSettings
from regard.evaluation.assessment import assess
from regard.evaluation.reading import Examples
from regard.evaluation.records import record
from regard.models.folder import rewritten
from regard.models.reading import read_model_json
from regard.pipeline.fast import available, load_fast
from regard.pipeline.model import load
from regard.serving.directions import name
from regard.support.atomic import write_text

LOOKED_AT = {
    "es": ["Let's go.", "The black cat ate the mouse.", "I go to school."],
    "fr": ["The black cat ate the mouse.", "I go to school."],
    "de": ["The black cat ate the mouse.", "I go to school."],
    "it": ["The black cat ate the mouse.", "I go to school."],
    "hi": ["Turn off the light.", "Think about it.", "Come in.", "Nice to meet you."],
    "bn": ["I go to school."],
    "en": ["Vamos.", "Le chat noir a mangé la souris.", "Ich gehe zur Schule.", "আমি স্কুলে যাই।", "अंदर आओ।"],
}
KEPT = ("pairs", "longest", "training", "seed")
"""What of the trained model's own card stays."""


def tests(folder: Path, split: str, first: int | None) -> dict[str, Examples]:
    """By direction, each sentence once with all that it may become."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in Prepared(folder).texts(split):
        several = found.setdefault(row["pair"], {}).setdefault(row["source"], [])
        if row["target"] not in several:
            several.append(row["target"])
    return {
        pair: Examples(pair, tuple(held), tuple(map(tuple, held.values())), "text").first(first)
        for pair, held in found.items()
    }


def about(own: Mapping[str, Any], scores: Mapping[str, Any]) -> dict[str, Any]:
    """What the card says."""
    rows = {
        " → ".join(name(code) for code in pair.split("-")): {
            "sentences": each["examples"], **{key: round(score["value"], 1) for key, score in each["scores"].items()},
        }
        for pair, each in scores.items()
    }  # fmt: skip
    return {
        "name": "The translator that comes with regard",
        "trained_on": {
            "sentences of the Tatoeba Project": "https://tatoeba.org, by way of https://www.manythings.org/anki/; "
            "English with Spanish, French, German, Italian, Hindi and Bengali, both ways",
            "how": "regard train translator (configs/translator.yaml); the weights are stored in 8 bits",
        },
        "licence": "the sentences are under CC BY 2.0 FR (https://creativecommons.org/licenses/by/2.0/fr/), "
        "attributed to the contributors of Tatoeba; the weights are under Apache-2.0 like the package",
        "remarks": "Everyday sentences, short ones: others come out worse. Hindi and Bengali are weak: "
        "there were but 11,127 and 6,600 pairs to learn from. The scores are those of sentences that were held out, "
        "split so that no sentence on either side was seen, as sacreBLEU gives them, with all translations of a "
        "sentence as its references.",
        "scores": rows,
        **{key: own[key] for key in KEPT if key in own},
    }


def scored(models: Mapping[str, Any], examples: Mapping[str, Examples], beam: int) -> dict[str, dict[str, Any]]:
    """Of each model the record of each direction, told as they come."""
    found: dict[str, dict[str, Any]] = {}
    said: dict[str, dict[str, list[str]]] = {}
    for label, model in models.items():
        for pair, some in examples.items():
            search = SearchSettings(beam=beam)
            told = model.translate(list(some.sources), to=pair.split("-")[1], settings=search, keep_problems=True)
            result = assess(label, some, [each.text for each in told], measures=("bleu", "chrf"))
            found.setdefault(label, {})[pair] = record(result) | {"by_length": None, "worst": None}
            said.setdefault(label, {})[pair] = list(result.outputs)
            first = next(iter(said.values()))[pair]
            same = sum(map(str.__eq__, first, said[label][pair])) / len(first)
            figures = ", ".join(str(each) for each in result.scores)
            print(f"{label}: {pair}, {len(some):,} sentences: {figures}; the same as the first {same:.1%}", flush=True)
    return found


def zipped(folder: Path) -> float:
    """Megabytes that it takes in a wheel."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for path in folder.iterdir():
            file.write(path)
    return buffer.tell() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--prepared", type=Path, help="unset: the folder data of the model")
    parser.add_argument("--split", default="test")
    parser.add_argument("--first", type=int)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--only", help="one of the ways, by the end of its name: trained, PyTorch, CTranslate2")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--scores", type=Path, default=Path(__file__).with_name("translator.json"))
    given = parser.parse_args()
    own = read_model_json(given.model)["about"]
    examples = tests(given.prepared or given.model / "data", given.split, given.first)
    rewritten(given.model, given.output, "int8", about(own, {}))
    models: dict[str, Any] = {
        "as trained": load(given.model, given.device, precision="float32"),
        "in 8 bits by PyTorch": load(given.output, given.device, precision="float32"),
    }
    if available():
        models["in 8 bits by CTranslate2"] = load_fast(given.output)
    if given.only is not None:
        models = {name: model for name, model in models.items() if name.endswith(given.only)}
    found = scored(models, examples, given.beam)
    rewritten(given.model, given.output, "int8", about(own, found[list(found)[-1]]))
    write_text(given.scores, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    shipped = models[list(models)[-1]]
    for to, texts in LOOKED_AT.items():
        if to in shipped.languages:
            for text, result in zip(texts, shipped.translate(texts, to=to), strict=True):
                print(f"{to}: {text} → {result.text}")
    size = sum(path.stat().st_size for path in given.output.iterdir()) / 1e6
    print(f"{given.output}: {size:.1f} MB, {zipped(given.output):.1f} MB in a wheel; scores in {given.scores}")


if __name__ == "__main__":
    main()
