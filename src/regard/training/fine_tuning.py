"""Training on from a model folder: its network, its weights, its tokenizers, and more tokens where they are asked for.

Numbers of tokens keep their meaning: what is added comes behind, with new rows in the tables of embeddings.
"""

from pathlib import Path

import torch
from torch import Tensor

from regard.data.prepared import Prepared
from regard.data.settings import DataSettings, TokenizerFiles
from regard.models.build import build
from regard.models.contract import Model
from regard.models.folder import Loaded, load_folder
from regard.models.reading import read_model_json
from regard.models.weights import tensors
from regard.support.errors import Misuse
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer
from regard.training.config import Config
from regard.training.corpus import Corpus

MADE = "tokenizers"
"""In the folder of the prepared data: tokenizers with more in them."""


def checked(config: Config) -> None:
    """What can be said before any work starts; Misuse where the folder cannot be trained on from."""
    if config.init_from is None:
        return
    held = read_model_json(config.init_from)
    if held["task"] != config.task:
        raise Misuse(f"init_from: {config.init_from} holds a model for the task {held['task']}, not {config.task}")
    own = None if config.network is None else config.network.model_dump(mode="json")
    if own is not None:
        differing = [key for key, value in own.items() if held["network"].get(key, value) != value and key != "parts"]
        if differing:
            raise Misuse(
                f"network: {', '.join(differing)} differ from the network of {config.init_from}; leave network out to "
                "train on from it (dropout too is as it was)"
            )


def tokenizers_of(folder: str) -> TokenizerFiles | None:
    """The files of a model folder's tokenizers, as `data.tokenizer` takes them."""
    held = read_model_json(folder).get("tokenizers", {})
    if not held:
        return None
    paths = {side: str(Path(folder) / name) for side, name in held.items()}
    one = next(iter(paths.values()))
    return TokenizerFiles(source=paths.get("source", one), target=paths.get("target", one))


def extended(init_from: str, prepared: Prepared, folder: Path) -> TokenizerFiles:
    """The model's tokenizers with the tokens and languages that those learned from the new data have more."""
    files = tokenizers_of(init_from)
    if files is None:
        raise Misuse(f"extend_vocabulary: {init_from} has no tokenizer that could be extended")
    (folder / MADE).mkdir(parents=True, exist_ok=True)
    made: dict[str, str] = {}
    for side in ("source", "target"):
        old, new = Tokenizer.load(getattr(files, side)), prepared.tokenizers.get(side)
        path = folder / MADE / f"{side}.json"
        try:
            (old if new is None else old.merged(new)).save(path)
        except ValueError as error:
            raise Misuse(f"extend_vocabulary: {error}; set data.tokenizer.kind to {old.kind}") from None
        made[side] = str(path)
    if len(set(map(Tokenizer.load, made.values()))) == 1:
        made["target"] = made["source"]
    return TokenizerFiles(**made)


def with_tokenizer(data: DataSettings, files: TokenizerFiles | None) -> DataSettings:
    """The data made with these tokenizers; settings to learn others by would be of no effect and are refused."""
    if files is None:
        return data
    if data.tokenizer != TokenizerSettings():
        raise Misuse(
            "data.tokenizer: with init_from the tokenizers are the model's; leave it out, or set extend_vocabulary"
        )
    return data.changed(tokenizer=files.source if files.source == files.target else files)


def begun(init_from: str, corpus: Corpus, task: str) -> Model:
    """A model for the data with the weights of the folder; rows that it has more begin as any new ones do."""
    loaded = load_folder(init_from)
    _same_tokens(loaded, corpus, init_from)
    if corpus.names and loaded.names != corpus.names:
        raise Misuse(f"init_from: {init_from} knows {', '.join(loaded.names)}; the data have {', '.join(corpus.names)}")
    model = build(loaded.model.settings, corpus.sizes, task)  # type: ignore[arg-type]
    held = tensors(loaded.model)
    for name, own in tensors(model).items():
        _put(own, held[name], f"{init_from}: {name}")
    return model


def _put(own: Tensor, held: Tensor, name: str) -> None:
    if own.shape[1:] != held.shape[1:] or own.shape[:1] < held.shape[:1]:
        raise Misuse(f"{name} has the shape {list(held.shape)}; the data need {list(own.shape)}")
    with torch.no_grad():
        (own if own.ndim == 0 else own[: len(held)]).copy_(held)


def _same_tokens(loaded: Loaded, corpus: Corpus, init_from: str) -> None:
    for side, old in loaded.tokenizers.items():
        new = corpus.tokenizers.get(side)
        if new is None or new.pieces[: old.vocabulary] != old.pieces:
            raise Misuse(
                f"init_from: the data were prepared with another tokenizer of the {side} than that of {init_from}; "
                "prepare them with its own"
            )
