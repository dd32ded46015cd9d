"""A model run by CTranslate2 against the same model run by PyTorch."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard.attention.positions import sinusoids as reference_sinusoids
from regard.cli import main
from regard.decoding.loops import looping
from regard.decoding.repeating import loop_end
from regard.decoding.settings import SearchSettings
from regard.models.build import build
from regard.models.folder import load_folder, save_folder
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.models.weights import tensors
from regard.pipeline.fast import export_folder, is_exported, layout, load_fast
from regard.pipeline.fast.export import in_memory, obstacles
from regard.pipeline.fast.layout import sinusoids
from regard.pipeline.fast.searching import Asked, search
from regard.pipeline.model import load
from regard.support.errors import Misuse
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer
from tests.pipeline.toy import folder_of, sentence

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

NUMBERS = [[(7 * a + b * b) % 10 for b in range(1 + a % 7)] for a in range(60)]
TEXTS = [sentence("en", numbers) for numbers in NUMBERS]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator that was taught too little to be sure: ties and near misses tell searches apart."""
    return folder_of(tmp_path_factory.mktemp("toy") / "model", steps=120, languages=("es", "de"))


@pytest.fixture(scope="module")
def exported(toy: Path) -> Path:
    out = toy.parent / "exported"
    export_folder(toy, out)
    return out


@pytest.mark.parametrize("penalty", [1.0, 0.6, 0.0])
@pytest.mark.parametrize("beam", [1, 5])
def test_in_float32_it_says_what_the_model_says(toy: Path, exported: Path, beam: int, penalty: float) -> None:
    fast, plain = load_fast(exported, threads=1), load(toy)
    ours = fast.translate(TEXTS, to="es", beam=beam, length_penalty=penalty)
    theirs = plain.translate(TEXTS, to="es", beam=beam, length_penalty=penalty)
    same = [one.text == other.text for one, other in zip(ours, theirs, strict=True)]
    assert sum(same) >= 0.99 * len(TEXTS) - 1
    assert len({each.text for each in ours}) > 10
    for one, other in zip(ours, theirs, strict=True):
        if one.text == other.text:
            assert one.score == pytest.approx(other.score, abs=0.05)  # its logarithms are approximate
            assert (one.tokens, one.ending) == (other.tokens, other.ending)


def test_scores_of_tokens_and_further_results_are_the_models(toy: Path, exported: Path) -> None:
    fast, plain = load_fast(exported, threads=1), load(toy)
    ours = fast.translate(TEXTS[:9], to="de", nbest=3, beam=5, token_scores=True)
    for one, other in zip(ours, plain.translate(TEXTS[:9], to="de", nbest=3, beam=5), strict=True):
        assert [each.text for each in one.all] == [each.text for each in other.all]
        np.testing.assert_allclose(one.token_scores, other.token_scores, atol=1e-4)


def test_texts_are_cut_led_and_kept_from_words_as_the_model_does_it(toy: Path, exported: Path) -> None:
    fast, plain = load_fast(exported, threads=1), load(toy)
    long = " ".join(TEXTS[:5]) + "\n\n" + TEXTS[6]
    [ours], [theirs] = (each.translate(long, to="es", cut="always") for each in (fast, plain))
    assert (ours.text, len(ours.parts)) == (theirs.text, len(theirs.parts))
    assert fast.translate(long, to="es")[0].text.count("\n\n") == 1
    assert all(each.text.startswith("dos") for each in fast.translate(TEXTS[:6], to="es", prefix="dos"))
    assert not any("uno" in each.text for each in fast.translate(TEXTS, to="es", forbidden=["uno"]))


def test_eight_bits_are_smaller_and_nearly_the_same(toy: Path, tmp_path: Path, exported: Path) -> None:
    export_folder(toy, tmp_path / "small", "int8")
    whole, small = ((folder / "model.bin").stat().st_size for folder in (exported, tmp_path / "small"))
    table = 4 * 2048 * 48  # of positions, which stay as they are
    assert small - table < 0.4 * (whole - table)
    ours, theirs = load_fast(tmp_path / "small").translate(TEXTS, to="es"), load(toy).translate(TEXTS, to="es")
    assert sum(one.text == other.text for one, other in zip(ours, theirs, strict=True)) > 0.7 * len(TEXTS)


def test_a_model_folder_is_run_as_it_is_and_one_in_eight_bits_in_those(
    toy: Path, exported: Path, tmp_path: Path
) -> None:
    own = load_fast(toy, threads=1).translate(TEXTS[:20], to="es")
    assert [each.text for each in own] == [
        each.text for each in load_fast(exported, threads=1).translate(TEXTS[:20], to="es")
    ]
    plain = load_folder(toy)
    save_folder(tmp_path / "m", plain.model, task="translate", tokenizers=plain.tokenizers, numbers="int8")
    export_folder(toy, tmp_path / "of the whole", "int8")
    files, record, _ = in_memory(tmp_path / "m")
    assert record["kind"] == "int8"
    assert files["model.bin"] == (tmp_path / "of the whole" / "model.bin").read_bytes()
    whole, _, _ = in_memory(tmp_path / "m", "float32")
    assert len(whole["model.bin"]) > 1.5 * len(files["model.bin"])


@pytest.mark.parametrize("rotary", [True, False])
def test_its_file_holds_what_the_engine_asks_for_under_the_engines_own_names(rotary: bool) -> None:
    specs = ctranslate2.specs
    settings = TransformerSettings(
        width=16, heads=2, feed_forward=24, encoder_layers=2, decoder_layers=1, activation="gelu",
        positions="rotary_interleaved" if rotary else "sinusoidal",
    )  # fmt: skip
    more = {"rotary_dim": 8, "rotary_interleave": True} if rotary else {}
    same = {"pre_norm": True, "activation": specs.common_spec.Activation.GELU, **more}
    spec = specs.TransformerSpec(
        specs.transformer_spec.TransformerEncoderSpec(2, 2, **same),
        specs.transformer_spec.TransformerDecoderSpec(1, 2, **same),
    )
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = True
    held = tensors(build(settings, Sizes(source=9, target=9), "translate"))
    ours = layout.of(settings, {name: each.numpy() for name, each in held.items()}, "float32")
    names = {*ours.tensors, *ours.aliases}
    asked = spec.variables()
    assert set(asked) <= names
    for name in names:
        specs.model_spec.index_spec(spec, name)  # raises where there is no such name
    for name, value in asked.items():
        if value is not None:
            number = np.int8(value) if isinstance(value, bool) else value
            assert (ours.tensors[name].dtype, ours.tensors[name]) == (np.asarray(number).dtype, number), name


@pytest.mark.parametrize("tokens", [
    [1] * 24, [1] * 23, [1, 2] * 12, [3, 1, 2] * 8 + [3, 1], list(range(8)) * 5, list(range(8)) * 4, list(range(60)),
    [9, 9, *[4, 5] * 20, 1, 2], list(range(9)) * 6,
], ids=str)  # fmt: skip
def test_a_loop_is_seen_where_a_search_of_ours_sees_it(tokens: list[int]) -> None:
    lengths = [n for n in range(1, len(tokens) + 1) if bool(looping(torch.tensor([tokens[:n]]))[0])]
    assert loop_end(tokens) == (lengths[0] if lengths else None)


def scripted(*answers: tuple[str, float]) -> Any:
    """An engine that gives these hypotheses to whatever it is asked, as far as the limit allows."""

    class Engine:
        asked: list[tuple[int, int]] = []  # noqa: RUF012 - one is made for each test

        def translate_batch(self, sources: Any, *, max_decoding_length: int, num_hypotheses: int, **_: Any) -> Any:
            self.asked.append((len(sources), max_decoding_length))
            cut = [(text.split()[:max_decoding_length], score) for text, score in answers[:num_hypotheses]]
            found = SimpleNamespace(hypotheses=[pieces for pieces, _ in cut], scores=[score for _, score in cut])
            return [found for _ in sources]

        def score_batch(self, sources: Any, targets: Any) -> Any:
            return [SimpleNamespace(log_probs=[-1.0] * (len(each) + 1)) for each in targets]

    return Engine()


def test_no_result_is_longer_than_its_own_source_allows_whatever_stands_beside_it() -> None:
    engine = scripted(("a " * 25 + "</s>", -0.1))
    asked = Asked(SearchSettings(beam=1, limit_factor=1, limit_plus=4, stop_loops=False), [], [], 2048)
    short, long = search(engine, [["x"], ["x"] * 30], asked)
    assert engine.asked == [(2, 34), (1, 5)]
    assert [(len(each[0].pieces), each[0].ending) for each in (short, long)] == [(5, "limit"), (26, "end")]


def test_what_did_not_end_ranks_behind_what_did_and_loops_behind_all() -> None:
    looped, cut, ended = "a " * 40, " ".join(map(str, range(60))), "b c </s>"
    engine = scripted((looped, -0.1), (cut, -0.2), (ended, -3.0))
    asked = Asked(SearchSettings(beam=3, nbest=3, limit_factor=0, limit_plus=30), [], [], 2048)
    [found] = search(engine, [["x"]], asked)
    assert [(each.ending, len(each.pieces)) for each in found] == [("end", 3), ("limit", 30), ("loop", 24)]
    assert found[2].token_scores == (-1.0,) * 24
    assert found[2].log_prob == -24
    assert found[0].log_prob == pytest.approx(-9.0)


def test_a_model_that_repeats_itself_is_stopped_at_the_same_word_by_both(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "m", steps=3)  # taught nearly nothing, it says one thing over and over
    settings = {"beam": 1, "limit_factor": 0, "limit_plus": 60}
    [ours] = load(folder).translate("one two three four five.", **settings)
    [theirs] = load_fast(folder, threads=1).translate("one two three four five.", **settings)
    assert (ours.ending, theirs.ending) == ("loop", "loop")
    assert (theirs.text, theirs.remarks) == (ours.text, ours.remarks)
    assert theirs.score == pytest.approx(ours.score, abs=0.02)


KINDS: dict[str, dict[str, Any]] = {
    "post-norm": {"norm_place": "post"},
    "rotary": {"positions": "rotary"},
    "rotary, gated, RMS": {
        "positions": "rotary_interleaved", "norm": "rms", "gated": True, "activation": "silu", "bias": False,
    },
    "learned": {"positions": "learned", "longest": 64, "output_bias": True, "activation": "gelu"},
    "split, nothing shared": {"positions": "sinusoidal_split", "share_embeddings": False, "tie_output": False},
    "no positions": {"positions": "none", "scale_embedding": False, "start": "</s>"},
}  # fmt: skip


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_every_kind_of_network_it_runs_gives_the_same_probabilities(settings: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(3)
    tokenizer = Tokenizer.train(TEXTS, TokenizerSettings(vocabulary=280))
    sizes = Sizes(source=tokenizer.vocabulary, target=tokenizer.vocabulary)
    shape = {"width": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 48}
    model = build(TransformerSettings(**shape, **settings), sizes, "translate").eval()
    with torch.no_grad():
        for each in model.parameters():  # so that no norm nor bias is what it began as
            each.add_(torch.randn_like(each) * 0.1)
    save_folder(tmp_path / "model", model, task="translate", tokenizers={"source": tokenizer, "target": tokenizer})
    export_folder(tmp_path / "model", tmp_path / "fast")
    engine = load_fast(tmp_path / "fast", threads=1).engine
    source, target = tokenizer.encode(TEXTS[6]), tokenizer.encode(TEXTS[3])
    pieces = tokenizer.pieces
    told = engine.score_batch([[pieces[each] for each in source]], [[pieces[each] for each in target[:-1]]])[0]
    fed = torch.tensor([[model.start_token, *target[:-1]]])
    truth = model(torch.tensor([source]), fed).log_softmax(-1)[0, torch.arange(len(target)), torch.tensor(target)]
    np.testing.assert_allclose(told.log_probs, truth.detach().numpy(), atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"positions": "alibi"}, "positions: it knows alibi in a decoder alone"),
        ({"score": "dot"}, "score: it scales its scores"),
        ({"normalise": "entmax15"}, "normalise: it weighs by softmax; this model by entmax15"),
        ({"window": 4}, "window: it has no attention windows"),
        ({"heads": 4, "kv_heads": 2}, "kv_heads: its heads do not share"),
        ({"norm": "none"}, "norm: it normalises, and this model does not"),
        ({"norm_place": "post", "final_norm": True}, "final_norm: behind post-norm"),
        ({"norm_place": "pre", "final_norm": False}, "final_norm: behind pre-norm"),
        ({"output": "nearest"}, "output: its logits are products"),
        ({"feed_forward": 0}, "feed_forward: it has layers with one"),
    ],
)
def test_what_it_cannot_run_is_refused_by_name(changed: dict[str, Any], said: str) -> None:
    network = TransformerSettings(**{"width": 32, "heads": 4, **changed}).model_dump(mode="json")
    [found] = obstacles("translate", network)
    assert found.startswith(said)
    assert obstacles("tag", network) == ["it translates, and this model was built to tag"]


def test_recurrent_networks_are_refused_by_name() -> None:
    assert obstacles("translate", {"kind": "recurrent"}) == ["it runs Transformers, and this network is recurrent"]


@pytest.mark.parametrize(("places", "width", "split"), [(7, 6, False), (7, 6, True)])
def test_its_table_of_positions_is_that_of_attention(places: int, width: int, split: bool) -> None:
    truth = reference_sinusoids(places, width, "split" if split else "interleaved")
    np.testing.assert_allclose(sinusoids(places, width, split=split), truth.numpy(), atol=1e-6)


def test_what_it_does_not_do_is_said(exported: Path) -> None:
    fast = load_fast(exported)
    with pytest.raises(Misuse, match="its samples do not follow a seed"):
        fast.translate("one.", to="es", sample=True)
    with pytest.raises(Misuse, match="it does not tell where each layer and head looked"):
        fast.translate("one.", to="es", attention=True)
    with pytest.raises(Misuse, match="unknown language 'fr'"):
        fast.translate("one.", to="fr")


def test_empty_texts_and_too_long_ones_are_answered(exported: Path) -> None:
    fast = load_fast(exported)
    empty, long = fast.translate(["  ", "one " * 3000], to="es", cut="never", keep_problems=True)
    assert (empty.text, empty.problem) == ("", "")
    assert long.problem.startswith("too long: ")
    with pytest.raises(Misuse, match=r"text 2 of 2: too long"):
        fast.translate(["one.", "one " * 3000], to="es", cut="never")


def test_a_folder_that_holds_something_else_is_left_alone(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(Misuse, match="is there already, and holds no exported model"):
        export_folder(toy, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]
    export_folder(toy, tmp_path / "a")
    export_folder(toy, tmp_path / "a", "int8")
    assert json.loads((tmp_path / "a" / "exported.json").read_text())["kind"] == "int8"
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["a", "mine.txt"]


def test_a_folder_that_was_not_exported_or_is_damaged_is_a_sentence(exported: Path, tmp_path: Path) -> None:
    assert is_exported(exported)
    with pytest.raises(Misuse, match=r"holds neither a model .* nor an exported one"):
        load_fast(tmp_path)
    (tmp_path / "exported.json").write_text("{")
    with pytest.raises(Misuse, match=r"exported\.json: cannot be read"):
        load_fast(tmp_path)
    (tmp_path / "exported.json").write_text('{"format": "regard-exported", "format_version": 9}')
    with pytest.raises(Misuse, match="written in format 9; this regard reads 1"):
        load_fast(tmp_path)


def test_translating_by_the_command_reads_no_torch(exported: Path) -> None:
    code = (
        "import atexit, sys; from regard.cli import main; atexit.register(lambda: print('torch' in sys.modules)); "
        f"main(['translate', 'one two.', '--model', {str(exported)!r}, '--to', 'es'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    text, torch_was_read = done.stdout.splitlines()
    assert text == load_fast(exported).translate("one two.", to="es")[0].text
    assert torch_was_read == "False"


def test_the_command_exports_and_says_what_it_cannot(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["export", str(toy), "--output", str(tmp_path / "out"), "--numbers", "int8"])
    assert left.value.code == 0
    assert capsys.readouterr().out.strip().endswith("out: written in int8, for CTranslate2")
    assert is_exported(tmp_path / "out")
    for arguments, said in (
        (["export", str(toy), "-o", str(tmp_path / "x"), "--to", "onnx"], "unknown engine 'onnx'"),
        (
            ["export", str(toy), "-o", str(tmp_path / "x"), "--numbers", "int4"],
            "expected float32, float16, int8; got 'int4'",
        ),
        (["export", str(tmp_path / "none"), "-o", str(tmp_path / "x")], "no such folder"),
        (["predict", "one.", "--model", str(tmp_path / "out")], "was exported for CTranslate2"),
    ):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert said in capsys.readouterr().err
