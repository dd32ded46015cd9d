"""A translator of number words, trained in seconds: enough to tell a right answer from a wrong one."""

import random
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from regard.decoding.many import beside
from regard.models.build import build
from regard.models.folder import save_folder
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.text.settings import TokenizerSettings
from regard.text.specials import PAD, START
from regard.text.tokenizer import Tokenizer

WORDS = {
    "en": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
    "es": ["uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez"],
    "de": ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"],
}


def sentence(language: str, numbers: list[int]) -> str:
    return " ".join(WORDS[language][number] for number in numbers) + "."


def folder_of(folder: Path, *, steps: int = 400, languages: tuple[str, ...] = ("es",)) -> Path:
    """A model folder; with several languages each has a tag. One thread: several would wait for one another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dice = random.Random(1)
    corpus = [sentence(language, [n]) for language in ("en", *languages) for n in range(10)] * 3
    tags = languages if len(languages) > 1 else ()
    tokenizer = Tokenizer.train(corpus, TokenizerSettings(vocabulary=400), languages=tags)
    settings = TransformerSettings(
        width=48, heads=4, feed_forward=96, encoder_layers=1, decoder_layers=2, dropout=0.0, positions="rotary",
        share_embeddings=False,
    )  # fmt: skip
    sizes = Sizes(source=tokenizer.vocabulary, target=tokenizer.vocabulary)
    model = build(settings, sizes, "translate")
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * min(1.0, step / 40) * (1 - step / steps)
        sources, targets = [], []
        for _ in range(32):
            numbers = [dice.randrange(10) for _ in range(dice.randint(1, 7))]
            language = dice.choice(languages)
            sources.append(tokenizer.encode(sentence("en", numbers), language=language if tags else None))
            targets.append(tokenizer.encode(sentence(language, numbers)))
        source, lengths = beside(sources)
        target, _ = beside(targets)
        fed = torch.cat([torch.full_like(target[:, :1], START), target[:, :-1]], 1)
        loss = cross_entropy(model(source, fed, lengths).flatten(0, 1), target.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)
    about = {"source": "en", "target": languages[0] if len(languages) == 1 else list(languages)}
    save_folder(folder, model, task="translate", tokenizers={"source": tokenizer, "target": tokenizer}, about=about)
    return folder


if __name__ == "__main__":
    import sys
    import time

    import regard

    begun = time.time()
    folder_of(Path(sys.argv[1]), steps=int(sys.argv[2]), languages=tuple(sys.argv[3].split(",")))
    print(time.time() - begun)
    model = regard.load(sys.argv[1])
    for each in model.translate(["one two three.", "nine nine one ten.", "five."], to=sys.argv[3].split(",")[-1]):
        print(each.text, each.score)
