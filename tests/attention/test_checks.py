"""Bad input: each error names the argument, what was expected and what came."""

import re

import pytest
import torch

from regard.attention import attend, explain_choice, weigh

Q = torch.zeros(2, 4, 3, 8)
K = torch.zeros(2, 4, 5, 8)
SAYS = {
    "no tensor": (lambda: attend([[1.0]], K, K), "query: expected a tensor; got list"),
    "no value": (lambda: attend(Q, K, None), "value: expected a tensor; got NoneType"),
    "integers": (lambda: attend(Q.int(), K, K), "query: expected floating-point numbers; got int32"),
    "integer keys": (lambda: attend(Q, K.long(), K), "key: expected floating-point numbers; got int64"),
    "eight bits": (
        lambda: attend(Q.to(torch.float8_e4m3fn), K, K),
        "query: expected float32, float64, bfloat16 or float16; got float8_e4m3fn",
    ),
    "sparse": (
        lambda: attend(Q, K, K.to_sparse()),
        "value: expected a dense tensor; got one of the layout sparse_coo",
    ),
    "one axis": (lambda: attend(Q[0, 0, 0], K, K), "query: expected at least two axes [length, width]; got [8]"),
    "devices": (lambda: attend(Q, K.to("meta"), K), "key: is on meta, the query on cpu"),
    "kinds": (lambda: attend(Q, K, K.half()), "value: is float16, the query float32"),
    "widths": (lambda: attend(Q, K[..., :7], K), "scaled_dot: query and key must have one width; got 8 and 7"),
    "lengths": (
        lambda: attend(Q, K, K[:, :, :4]),
        "value: expected one row for each of the 5 keys; got 4 rows (key [2, 4, 5, 8], value [2, 4, 4, 8])",
    ),
    "batch": (
        lambda: attend(Q, K[:1].expand(3, 4, 5, 8), K),
        "key: its leading axes [3, 4] do not fit the query's [2, 4]",
    ),
    "value batch": (
        lambda: attend(Q, K, K[:1].expand(3, 4, 5, 8)),
        "value: its leading axes [3, 4] do not fit the query's [2, 4]",
    ),
    "heads": (lambda: attend(Q, K[:, :3], K[:, :3]), "key: its heads must divide the query's; got 3 heads for 4"),
    "more heads": (lambda: attend(Q[:, :2], K, K), "key: its heads must divide the query's; got 4 heads for 2"),
    "no heads": (lambda: attend(Q, K[:, :0], K[:, :0]), "key: its heads must divide the query's; got 0 heads for 4"),
    "value heads": (lambda: attend(Q, K[:, :2], K), "value: expected the 2 heads of the key; got 4"),
    "bias of whole numbers": (
        lambda: attend(Q, K, K, bias=torch.zeros(3, 5, dtype=torch.bool)),
        "bias: expected floating-point numbers to add to the scores; got bool (a mask goes in mask=)",
    ),
    "bias of numbers": (
        lambda: attend(Q, K, K, bias=1.0),
        "bias: expected floating-point numbers to add to the scores; got float",
    ),
    "bias shape": (
        lambda: attend(Q, K, K, bias=torch.zeros(5, 3)),
        "bias: [5, 3] does not broadcast to the scores' shape [2, 4, 3, 5]",
    ),
    "bias device": (
        lambda: attend(Q, K, K, bias=torch.zeros(3, 5, device="meta")),
        "bias: is on meta, the query on cpu",
    ),
    "mask": (lambda: attend(Q, K, K, mask=[True]), "mask: expected a tensor of booleans; got list"),
    "dropout": (lambda: attend(Q, K, K, dropout=1.2), "dropout: expected a share between 0 and 1; got 1.2"),
    "negative": (lambda: attend(Q, K, K, dropout=-0.1), "dropout: expected a share between 0 and 1; got -0.1"),
    "no share": (lambda: attend(Q, K, K, dropout="half"), "dropout: expected a share between 0 and 1; got 'half'"),
    "yes": (lambda: attend(Q, K, K, dropout=True), "dropout: expected a share between 0 and 1; got True"),
    "nan": (lambda: attend(Q, K, K, dropout=float("nan")), "dropout: expected a share between 0 and 1; got nan"),
    "implementation": (
        lambda: attend(Q, K, K, implementation="fussed"),
        "unknown implementation 'fussed'; did you mean 'fused'?",
    ),
    "of weigh": (
        lambda: weigh(Q, K, implementation="refrence"),
        "unknown implementation 'refrence'; did you mean 'reference'?",
    ),
    "of explaining": (
        lambda: explain_choice(Q, K, implementation="fuse"),
        "unknown implementation 'fuse'; did you mean 'fused'?",
    ),
    "score": (lambda: attend(Q, K, K, score="scaled-dot"), "unknown score 'scaled-dot'; did you mean 'scaled_dot'?"),
    "normaliser": (
        lambda: attend(Q, K, K, normalise="entmax"),
        "unknown normaliser 'entmax'; did you mean 'entmax15'?",
    ),
}


@pytest.mark.parametrize(("bad", "says"), SAYS.values(), ids=SAYS)
def test_bad_input_is_refused_in_words(bad, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=re.escape(says)):
        bad()
