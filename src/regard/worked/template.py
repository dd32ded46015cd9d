"""What `regard new-problem` writes: a problem that works as it stands, and says in comments what may be changed."""

from pathlib import Path

from regard.support.atomic import write_text
from regard.support.errors import Misuse

TEMPLATE = """\
# A worked problem. `regard work FILE` works it, `regard worksheet FILE` prints it to be filled in, and
# `regard check FILE` marks the answer under `claimed`. docs/worked.md tells it all.

title: Three words look at each other
about: One sentence on what it is about; it may be left out.

# What the problem starts from: numbers, rows of numbers, matrices. Rows are vectors. The digits are kept as written.
given:
  # The rows of a matrix may have names, so that tables say which word is which.
  X: {how: [1, 0, 1], are: [0, 2, 0], you: [1, 1, 1]}
  W_Q: [[1, 0], [0, 1], [1, 1]]
  W_K: [[0, 1], [1, 0], [1, 0]]
  W_V: [[2, 0], [0, 3], [1, 1]]

# Givens whose printed digits were rounded, and so carry half a unit of their last digit:
# given_rounded: [W_Q]

# Each step: a name and a formula over what is given and the steps before it.
#   @ multiplies matrices, + - * / ** go cell by cell, .T turns rows into columns, M[0, 1:3] is a piece (from 0)
#   softmax(x, axis=…)  sparsemax  relu  tanh  sigmoid  exp  log  log10  sqrt  sum  mean  var  max  argmax  norm
#   dot(a, b)  concat(a, b)  stack(a, b)  scale(x, d)  mask(E, causal | window(n) | lengths(n, …) | a matrix)
#   positional(n, d)  one_hot  embed  layer_norm  cross_entropy  correlation  rnn_cell  gru_cell  lstm_cell
#   additive_score
# Whole layers in one line, worked step by step:
#   O: self_attention(X, W_Q, W_K, W_V, scale=root, mask=causal)
#   cross_attention  multi_head  bahdanau  luong  encoder_layer  decoder_layer
steps:
  Q: X @ W_Q
  K: X @ W_K
  V: X @ W_V
  E: Q @ K.T
  S: scale(E, 2) # E divided by the root of 2
  M: mask(S, causal)
  A: softmax(M)
  O: A @ V

# Somebody's answer, to be marked: any of the steps, with the digits as they were written. -inf is a blocked cell.
# An answer may also be a file of its own, with `problem: FILE`, `name: …` and `claimed:` alone.
claimed:
  E: [[3, 4, 5], [2, 0, 2], [3, 4, 6]]
  A: [[1, 0, 0], [0.804, 0.196, 0], [0.088, 0.178, 0.734]]
"""


def write_template(path: str | Path, *, replace: bool = False) -> None:
    """Write it; a file that is there already stays, unless it is to be replaced."""
    if Path(path).exists() and not replace:
        raise Misuse(f"{path} is there already; name another file, or say --force to write over it")
    try:
        write_text(path, TEMPLATE)
    except OSError as error:
        raise Misuse(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from None
