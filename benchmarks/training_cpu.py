"""A training step on a CPU beside MarianMT of Transformers: the bare model, cross-entropy, AdamW.

    python benchmarks/training_cpu.py [--threads N] [--rounds N] [--dropout P] [--processor]

3 + 3 layers of width 256, vocabulary 8,000, 64 sentences of 16 tokens. Theirs runs in float32 (and in bfloat16 for
comparison where the CPU has it); ours in float32, and in bfloat16 autocast where the CPU has instructions for it.
Rounds alternate; figures are medians, target tokens a second.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from torch.nn import functional

from regard.models.sizes import Sizes
from regard.models.transformer import Transformer
from regard.models.transformer_settings import TransformerSettings
from regard.training.compiling import cpu_has_bfloat16
from regard.training.objective import smoothed

LAYERS, WIDTH, HEADS, HIDDEN, WORDS = 3, 256, 8, 1024, 8000
SENTENCES, PLACES = 64, 16

Step = Callable[[], None]


def marian(dropout: float, bfloat16: bool) -> Step:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import MarianConfig, MarianMTModel

        config = MarianConfig(
            vocab_size=WORDS, d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, dropout=dropout,
            encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=HIDDEN,
            decoder_ffn_dim=HIDDEN, activation_function="swish", scale_embedding=True, pad_token_id=0,
            eos_token_id=3, decoder_start_token_id=0, max_position_embeddings=512,
        )  # fmt: skip
        model = MarianMTModel(config).train()

    def logits(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = model(input_ids=source, decoder_input_ids=target, use_cache=False).logits
        return output

    return step(logits, model, bfloat16)


def ours(dropout: float, bfloat16: bool) -> Step:
    settings = TransformerSettings(
        width=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, heads=HEADS, feed_forward=HIDDEN,
        activation="silu", norm_place="post", positions="sinusoidal_split", output_bias=True, dropout=dropout,
    )  # fmt: skip
    model = Transformer(settings, Sizes(source=WORDS, target=WORDS)).train()
    lengths = torch.full((SENTENCES,), PLACES)
    return step(lambda source, target: model(source, target, lengths), model, bfloat16, smoothed)


def plain(logits: torch.Tensor, wanted: torch.Tensor, smoothing: float) -> torch.Tensor:
    return functional.cross_entropy(
        logits.flatten(0, 1).float(), wanted.flatten(), label_smoothing=smoothing, reduction="sum"
    )


def step(
    logits: Callable[..., torch.Tensor],
    model: torch.nn.Module,
    bfloat16: bool,
    loss: Callable[..., torch.Tensor] = plain,
) -> Step:
    """One step of training on the same tokens each time; ours has the loss of `regard train`."""
    source, target, wanted = (torch.randint(4, WORDS, (SENTENCES, PLACES)) for _ in range(3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def run() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            out = logits(source, target)
        (loss(out, wanted, 0.1) / wanted.numel()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return run


def seconds(run: Step, clock: Callable[[], float]) -> float:
    start = clock()
    run()
    return clock() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--processor", action="store_true", help="its seconds, all threads together: for busy machines")
    given = parser.parse_args()
    clock = time.process_time if given.processor else time.perf_counter
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    runs = {"MarianMT, float32": marian(given.dropout, False), "regard, float32": ours(given.dropout, False)}
    if cpu_has_bfloat16():
        runs["MarianMT, bfloat16"] = marian(given.dropout, True)
        runs["regard, bfloat16"] = ours(given.dropout, True)
    for run in runs.values():
        run()
    rounds = [{name: seconds(run, clock) for name, run in runs.items()} for _ in range(given.rounds)]
    counted = ", seconds of the processor" if given.processor else ""
    print(
        f"torch {torch.__version__}, {given.threads} threads, dropout {given.dropout}, {given.rounds} rounds{counted}"
    )
    print(f"{'':22}{'ms a step':>10}{'tokens/s':>10}{'times MarianMT in float32':>28}")
    for name in runs:
        took = statistics.median(each[name] for each in rounds)
        ratio = statistics.median(each["MarianMT, float32"] / each[name] for each in rounds)
        print(f"{name:22}{took * 1e3:10.1f}{SENTENCES * PLACES / took:10.0f}{ratio:28.2f}")


if __name__ == "__main__":
    main()
