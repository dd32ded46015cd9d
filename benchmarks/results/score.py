"""The figure of one row of docs/results.md: a trained model on a split of its prepared data.

    python benchmarks/results/score.py models/multi30k [--split test_2016_flickr] [--prepared FOLDER] [--device cuda]
                                       [--tokenised de] [--beam 5]

Text is scored by sacreBLEU with its signature, as the references stand and lowercased; `--tokenised` lowercased and
tokenised by sacremoses (hyphens left alone, words whole), without sacreBLEU's own tokenizer, which is how figures for
Multi30k are usually given. Also the share of outputs that equal a reference (spellings: one minus the word error;
strips: the share read right), BLEU by length of the source where the sources are text, and for tags and labels the
accuracy.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import torch

from regard.config import read_config
from regard.data.prepared import Prepared
from regard.evaluation.evaluating import evaluate
from regard.evaluation.scores import Score, accuracy, text_score, whole_error_rate
from regard.models.folder import load_folder
from regard.training.config import Config

LENGTHS = (0, 10, 20, 30, 60)
"""Words of the source at which groups by length begin."""


def right(text: dict[str, Any]) -> Any:
    return text["tags"] if "tags" in text else text.get("label", text.get("target"))


def grouped(texts: Sequence[dict[str, Any]]) -> dict[Any, list[int]]:
    """The examples of each source: a word has several pronunciations, a sentence several translations."""
    found: dict[Any, list[int]] = {}
    for row, text in enumerate(texts):
        source = text.get("source")
        found.setdefault((source, text.get("pair")) if isinstance(source, str) else row, []).append(row)
    return found


def tokenised(texts: Sequence[str], language: str) -> list[str]:
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(lang=language)
    return [tokenizer.tokenize(each.lower(), return_str=True, escape=False) for each in texts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--prepared", help="unset: what the model's configuration says")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--beam", type=int)
    parser.add_argument("--tokenised", metavar="LANGUAGE", help="the language of the target, such as de")
    given = parser.parse_args()
    loaded = load_folder(given.model, given.device)
    config = read_config(f"{given.model}/configuration.yaml", Config)
    own = config.data.folder if config.data is not None else config.prepared
    prepared = Prepared(given.prepared or own or f"{given.model}/data")
    search = config.decoding
    search = search.changed(beam=given.beam) if given.beam else search
    texts = prepared.texts(given.split)
    with torch.autocast(given.device, torch.bfloat16, enabled=given.device.startswith("cuda")):
        found = evaluate(loaded.model, prepared.splits[given.split], loaded.tokenizers, search=search, samples=0)
    print(f"{given.model} on {given.split}: {len(texts):,} examples, beam {search.beam}")
    for line in figures(loaded.task, found.outputs, texts, given.tokenised):
        print(f"  {line}")


def figures(task: str, outputs: Sequence[Any], texts: Sequence[dict[str, Any]], language: str | None) -> list[str]:
    if task == "tag":
        said = [tag for tags in outputs for tag in tags]
        return [str(accuracy(said, [tag for text in texts for tag in text["tags"]]))]
    if task == "classify":
        return [str(accuracy(outputs, [text["label"] for text in texts]))]
    groups = list(grouped(texts).values())
    said = [outputs[rows[0]] for rows in groups]
    references = [list(dict.fromkeys(right(texts[row]) for row in rows)) for rows in groups]
    wrong = whole_error_rate(said, references)
    told = [f"whole outputs right {1 - wrong.value:.4f}, wrong {wrong.value:.4f} of {len(said):,}"]
    told += [signed(text_score("bleu", said, references)), signed(text_score("bleu", said, references, lowercase=True))]
    told.append(signed(text_score("chrf", said, references)))
    if language is not None:
        plain = [tokenised(each, language) for each in references]
        told.append(
            "lowercased, tokenised: " + signed(text_score("bleu", tokenised(said, language), plain, tokenize="none"))
        )
    if all(isinstance(text.get("source"), str) for text in texts):
        told += by_length(said, references, [texts[rows[0]]["source"] for rows in groups])
    return told


def by_length(said: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]) -> list[str]:
    told = []
    for first, behind in zip(LENGTHS, [*LENGTHS[1:], 10**9], strict=True):
        rows = [row for row, source in enumerate(sources) if first <= len(source.split()) < behind]
        if len(rows) >= 20:
            score = text_score("bleu", [said[row] for row in rows], [references[row] for row in rows])
            told.append(f"sources of {first} to {min(behind - 1, 999)} words: {len(rows):,} of them, {score}")
    return told


def signed(score: Score) -> str:
    return f"{score} {score.signature}"


if __name__ == "__main__":
    main()
