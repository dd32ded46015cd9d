"""Decoding beside its peers in one run, with the same weights: MarianMT of Transformers, and on a CPU CTranslate2.

    python benchmarks/decoding.py                                 a CPU: 3+3 layers, width 256, 64 sentences × 16 tokens
    python benchmarks/decoding.py --device cuda                   a GPU: 6+6 layers, width 512, × 32 tokens, bfloat16

Weights are drawn, so nothing ends by itself: every sentence runs to the same number of tokens on both sides, and what
is timed is steps, not luck. That both say the same is checked first (in float32).
"""

import argparse
import copy
import itertools
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from regard.decoding.many import search_many
from regard.decoding.settings import SearchSettings
from regard.models.build import build
from regard.models.folder import save_folder
from regard.models.sizes import Sizes
from regard.models.transformer import Transformer
from regard.models.transformer_settings import TransformerSettings
from regard.pipeline.fast import available, export_folder
from regard.pipeline.precision import in_precision, pays
from regard.support.memory import keep_freed_memory
from regard.text.settings import TokenizerSettings
from regard.text.specials import END, PAD, START
from regard.text.tokenizer import Tokenizer

HEADS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "out_proj"}


def ours(layers: int, width: int, vocabulary: int) -> Transformer:
    """A Transformer of the shape that MarianMT has."""
    settings = TransformerSettings(
        width=width, heads=8, encoder_layers=layers, decoder_layers=layers, feed_forward=4 * width, activation="silu",
        norm_place="post", positions="sinusoidal_split", output_bias=True, dropout=0.0, share_embeddings=True,
    )  # fmt: skip
    model = build(settings, Sizes(source=vocabulary, target=vocabulary), "translate")
    assert isinstance(model, Transformer)
    return model.eval()


def theirs(layers: int, width: int, vocabulary: int) -> Any:
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=vocabulary, d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width, activation_function="swish",
        scale_embedding=True, pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=START, dropout=0.0,
        forced_eos_token_id=None,
    )  # fmt: skip
    return MarianMTModel(config).eval()


def pairs(layers: int) -> dict[str, str]:
    """Our name of each part → MarianMT's."""
    found = {"words.vectors.weight": "model.shared.weight", "output.bias": "final_logits_bias"}
    for stack, side in (("encoder.stack", "encoder"), ("decoder", "decoder")):
        parts = {"attention": "self_attn", "attention_norm": "self_attn_layer_norm"}
        if side == "decoder":
            parts |= {"cross": "encoder_attn", "cross_norm": "encoder_attn_layer_norm"}
        linear = {"feed_forward.inner": "fc1", "feed_forward.outer": "fc2", "feed_forward_norm": "final_layer_norm"}
        for own, other in parts.items():
            names = {f".{ours}": f".{their}" for ours, their in HEADS.items()} if "norm" not in own else {"": ""}
            linear |= {own + ours: other + their for ours, their in names.items()}
        for layer in range(layers):
            for own, other in linear.items():
                for kind in ("weight", "bias"):
                    found[f"{stack}.layers.{layer}.{own}.{kind}"] = f"model.{side}.layers.{layer}.{other}.{kind}"
    return found


def copy_weights(model: Transformer, marian: Any, layers: int, *, back: bool = False) -> None:
    """MarianMT's weights into ours, or ours into MarianMT's."""
    own, other = dict(model.state_dict()), marian.state_dict()
    with torch.no_grad():
        for ours_, theirs_ in pairs(layers).items():
            one, two = own[ours_], other[theirs_].view_as(own[ours_])
            two.copy_(one) if back else one.copy_(two)


def seconds(run: Callable[[], Any], device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    begun = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def in_turn(contestants: Mapping[str, Callable[[], Any]], device: str, times: int) -> dict[str, list[float]]:
    """Seconds of each in each round: all run one after the other, so that a busy machine is busy for all."""
    for run in contestants.values():
        seconds(run, device)
    rounds = [{name: seconds(run, device) for name, run in contestants.items()} for _ in range(times)]
    return {name: [each[name] for each in rounds] for name in contestants}


def told(taken: Mapping[str, list[float]], sentences: int, beside: str) -> str:
    """Sentences a second of each by its median, and the median of its ratios to the one it is set beside."""
    lines = []
    for name, own in taken.items():
        ratio = statistics.median(other / mine for mine, other in zip(own, taken[beside], strict=True))
        lines.append(f"    {name:<24} {sentences / statistics.median(own):>8,.0f} a second {ratio:>7.2f}")
    return "\n".join(lines)


def sources(count: int, length: int, vocabulary: int) -> Tensor:
    torch.manual_seed(0)
    source = torch.randint(4, vocabulary, (count, length))
    source[:, -1] = END
    return source


def marian_tokens(marian: Any, source: Tensor, beam: int, tokens: int) -> Tensor:
    with torch.inference_mode():
        found: Tensor = marian.generate(
            source, attention_mask=torch.ones_like(source), num_beams=beam, max_new_tokens=tokens,
            min_new_tokens=tokens, do_sample=False, length_penalty=1.0,
        )  # fmt: skip
    return found[:, 1:]


def settings(beam: int, tokens: int) -> SearchSettings:
    return SearchSettings(beam=beam, limit_factor=0, limit_plus=tokens, fewest=tokens, stop_loops=False)


def agreement(model: Transformer, marian: Any, source: Tensor, beam: int, tokens: int) -> float:
    """The share of sentences for which both say the same."""
    own = search_many(model, source.cpu().tolist(), settings(beam, tokens))
    other = marian_tokens(marian, source, beam, tokens).cpu().tolist()
    return sum(a[0].tokens == b for a, b in zip(own, other, strict=True)) / len(other)


def numbered(vocabulary: int) -> Tokenizer:
    """A tokenizer of so many tokens, for an engine that wants their names."""
    words = " ".join(f"w{number}" for number in range(vocabulary))
    made = Tokenizer.train(
        [words], TokenizerSettings(kind="words", vocabulary=vocabulary, min_count=1, split_digits=False)
    )
    assert made.vocabulary == vocabulary, made.vocabulary
    return made


class Engine:
    """CTranslate2 with the same weights, through `regard export`'s own writing."""

    def __init__(self, model: Transformer, kind: str, threads: int) -> None:
        import ctranslate2

        tokenizer = numbered(model.vocabulary)
        self.pieces = tokenizer.pieces
        self.numbers = {piece: number for number, piece in enumerate(self.pieces)}
        with tempfile.TemporaryDirectory() as folder:
            save_folder(f"{folder}/own", model, task="translate", tokenizers={"source": tokenizer, "target": tokenizer})
            export_folder(f"{folder}/own", f"{folder}/exported", kind)  # type: ignore[arg-type]
            self.translator = ctranslate2.Translator(
                f"{folder}/exported", device="cpu", compute_type=kind, intra_threads=threads, inter_threads=1
            )

    def __call__(self, source: list[list[int]], beam: int, tokens: int, size: int = 32) -> list[list[int]]:
        found = self.translator.translate_batch(
            [[self.pieces[number] for number in each] for each in source], beam_size=beam, max_batch_size=size,
            max_decoding_length=tokens, min_decoding_length=tokens, length_penalty=1.0, max_input_length=0,
        )  # fmt: skip
        return [[self.numbers[piece] for piece in each.hypotheses[0]] for each in found]


def engines(model: Transformer, source: Tensor, tokens: int) -> dict[str, Engine]:
    """CTranslate2 in float32 and int8, where it is installed, and how often it says the same."""
    if not available():
        print("CTranslate2 is not installed (pip install 'regard[serve]'): without it")
        return {}
    found = {kind: Engine(model, kind, torch.get_num_threads()) for kind in ("float32", "int8")}
    own = [each[0].tokens for each in search_many(model, source.tolist(), settings(5, tokens))]
    for kind, engine in found.items():
        same_ = sum(a == b for a, b in zip(own, engine(source.tolist(), 5, tokens), strict=True)) / len(own)
        print(f"CTranslate2 ({kind}) says the same for {same_:.0%} of them")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--batches", default=None, help="batch sizes of MarianMT, with commas between")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--beams", default="5,1")
    parser.add_argument("--rows", type=int, help="sentences side by side in regard's batches")
    parser.add_argument("--trace", help="a GPU: write a profile of one search to this file")
    given = parser.parse_args()
    gpu = given.device == "cuda"
    layers, width = given.layers or (6 if gpu else 3), given.width or (512 if gpu else 256)
    tokens, count = given.tokens or (32 if gpu else 16), given.sentences or (2048 if gpu else 64)
    sizes = [int(each) for each in (given.batches or ("64,256,512,1024,2048" if gpu else "16,32,64")).split(",")]
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    model, marian = ours(layers, width, given.vocabulary), theirs(layers, width, given.vocabulary)
    copy_weights(model, marian, layers)
    model, marian = model.to(given.device), marian.to(given.device)
    source = sources(count, tokens, given.vocabulary).to(given.device)
    print(
        f"{layers}+{layers} layers, width {width}, vocabulary {given.vocabulary}, {count} sentences × {tokens} tokens,"
    )
    where = torch.cuda.get_device_name() if gpu else f"{torch.get_num_threads()} CPU threads"
    print(f"{where}, torch {torch.__version__}")
    some = source[:32]
    print(f"both say the same for {agreement(model, marian, some, 5, tokens):.0%} of 32 sentences (float32, beam 5)")
    if gpu:
        model, marian = model.bfloat16(), marian.bfloat16()
    kinds = {"bfloat16" if gpu else "float32": model}
    if not gpu:
        keep_freed_memory()  # as regard's commands do; MarianMT has it too
    for kind in () if gpu else ("packed", "bfloat16"):
        if pays(kind):  # type: ignore[arg-type]
            kinds[kind] = in_precision(copy.deepcopy(model), kind)  # type: ignore[arg-type,assignment]
            print(f"{kind}: regard says the same for {same(model, kinds[kind], some, tokens):.0%} of them")
    others = {} if gpu else engines(model, some, tokens)
    lists = source.cpu().tolist()
    if given.trace:
        profiled(lambda: search_many(model, lists, settings(5, tokens), rows=given.rows), given.trace)
    for beam, size in itertools.product(map(int, given.beams.split(",")), sizes):
        part = lists[: min(count, 2 * size)] if gpu and not given.rows else lists

        def other(part: list[list[int]] = part, size: int = size, beam: int = beam) -> None:
            for start in range(0, len(part), size):
                marian_tokens(marian, source[start : min(start + size, len(part))], beam, tokens)

        runs: dict[str, Callable[[], Any]] = {
            f"regard ({kind})": partial(search_many, own, part, settings(beam, tokens), rows=given.rows)
            for kind, own in kinds.items()
        }
        runs |= {f"CTranslate2 ({kind})": partial(engine, part, beam, tokens, size) for kind, engine in others.items()}
        name = f"MarianMT, batches of {size}"
        taken = in_turn(runs | {name: other}, given.device, given.times)
        print(f"beam {beam}, {len(part)} sentences; ratio to MarianMT\n{told(taken, len(part), name)}", flush=True)


def same(one: Transformer, other: Transformer, source: Tensor, tokens: int) -> float:
    """The share of sentences for which two models say the same."""
    lists = source.cpu().tolist()
    pairs = zip(*(search_many(each, lists, settings(5, tokens)) for each in (one, other)), strict=True)
    return sum(a[0].tokens == b[0].tokens for a, b in pairs) / len(lists)


def profiled(run: Callable[[], Any], path: str) -> None:
    """What the kernels of one run took, after two that do not count."""
    from torch.profiler import ProfilerActivity, profile

    run()
    run()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        run()
    with open(path, "w", encoding="utf-8") as file:
        file.write(found.key_averages().table(sort_by="self_cuda_time_total", row_limit=40, max_name_column_width=70))


if __name__ == "__main__":
    main()
