"""A case for every rule: an operation on random inputs, in float64 so that rounding is out of sight."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

aten = torch.ops.aten
Case = Callable[[], Tensor]
Function = Callable[[Tensor], Tensor]


def r(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def p(*shape: int) -> Tensor:
    """Positive."""
    return torch.rand(*shape, dtype=torch.float64) + 0.1


def i(high: int, *shape: int) -> Tensor:
    return torch.randint(0, high, shape)


def b(*shape: int) -> Tensor:
    return torch.rand(*shape) > 0.5


def into(size: tuple[int, ...], write: Callable[[Tensor], object]) -> Tensor:
    buffer = r(*size)
    write(buffer)
    return buffer * 1.5


def inferred(make: Case) -> Tensor:
    with torch.inference_mode():
        return make()


ANY = ("exp", "tanh", "sigmoid", "relu", "erf", "abs", "sin", "cos", "tan", "atan", "square", "floor", "ceil", "trunc",
       "sign", "expm1", "exp2", "neg", "isinf", "isnan", "silu", "gelu", "mish", "elu", "softplus", "leaky_relu",
       "hardtanh", "isneginf", "isposinf")  # fmt: skip
POSITIVE = ("log", "sqrt", "rsqrt", "reciprocal", "log1p", "log2", "log10")

CASES: dict[str, Case] = {
    **{name: (lambda name=name: getattr(aten, name)(r(2, 3))) for name in ANY},
    **{name: (lambda name=name: getattr(aten, name)(p(2, 3))) for name in POSITIVE},
    "gelu by tanh": lambda: F.gelu(r(2, 3), approximate="tanh"),
    "softplus with beta": lambda: F.softplus(r(2, 9) * 9, beta=2.0, threshold=4.0),
    "elu scaled": lambda: F.selu(r(2, 3)),
    "add": lambda: r(2, 1, 3) + r(4, 1),
    "add a number": lambda: r(2, 3) + 2.5,
    "add scaled": lambda: torch.add(r(3), r(2, 3), alpha=2.5),
    "add taken off": lambda: torch.add(r(3), r(2, 3), alpha=-2),
    "sub": lambda: r(2, 3) - r(3),
    "sub scaled": lambda: torch.sub(r(2, 3), r(3), alpha=3),
    "rsub": lambda: 1 - r(2, 3),
    "mul": lambda: r(2, 3) * r(2, 1),
    "div": lambda: r(2, 3) / p(3),
    "div floor": lambda: torch.div(r(2, 3), p(3), rounding_mode="floor"),
    "div trunc": lambda: torch.div(r(2, 3), p(3), rounding_mode="trunc"),
    "floor_divide": lambda: i(9, 2, 3) // 2,
    "remainder": lambda: r(2, 3) % p(3),
    "maximum": lambda: torch.maximum(r(2, 3), r(3)),
    "minimum": lambda: torch.minimum(r(2, 3), r(3)),
    "pow": lambda: p(2, 3) ** 2.5,
    "pow of a number": lambda: 2 ** r(2, 3),
    "pow of tensors": lambda: p(2, 3) ** r(3),
    "addcmul": lambda: torch.addcmul(r(2, 3), r(2, 1), r(3), value=0.5),
    "addcdiv": lambda: torch.addcdiv(r(2, 3), r(2, 1), p(3), value=0.5),
    "lerp": lambda: torch.lerp(r(2, 3), r(2, 3), 0.25),
    "lerp by tensors": lambda: torch.lerp(r(2, 3), r(2, 3), p(3)),
    "clamp": lambda: r(2, 3).clamp(-0.3, 0.3),
    "clamp_min": lambda: r(2, 3).clamp_min(0.1),
    "clamp_max": lambda: r(2, 3).clamp_max(0.1),
    **{
        name: (lambda name=name: getattr(aten, name)(i(3, 2, 4), i(3, 4)))
        for name in ("lt", "le", "gt", "ge", "eq", "ne")
    },
    "lt a number": lambda: r(2, 3) < 0.2,
    **{
        name: (lambda name=name: getattr(torch, name)(b(2, 4), b(4)))
        for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")
    },
    "logical_not": lambda: torch.logical_not(b(5)),
    "bitwise_not": lambda: ~b(5),
    "where": lambda: torch.where(b(2, 3), r(2, 3), r(3)),
    "where with a number": lambda: torch.where(b(2, 3), r(2, 3), -torch.inf),
    "masked_fill": lambda: r(2, 3).masked_fill(b(3), -torch.inf),
    "to another dtype": lambda: r(2, 3).float(),
    "to half": lambda: (r(2, 3) * 9).bfloat16(),
    "to whole numbers": lambda: (r(2, 3) * 9).long(),
    "a copy in place": lambda: into((2, 3), lambda x: x.copy_(torch.tensor([1.5, 2, 3]))),
    "a copy of another dtype in place": lambda: into((2, 3), lambda x: x.copy_(torch.tensor([1, 2, 3]))),
    "prelu": lambda: F.prelu(r(2, 3), torch.tensor([0.25], dtype=torch.float64)),
    "log_sigmoid": lambda: F.logsigmoid(r(2, 3)),
    "threshold": lambda: F.threshold(r(2, 3), 0.1, -3.0),
    "hardsigmoid": lambda: F.hardsigmoid(r(2, 9) * 4),
    "hardswish": lambda: F.hardswish(r(2, 9) * 4),
    "glu": lambda: F.glu(r(2, 6, 3), 1),
    "round": lambda: (r(2, 9) * 4).round(),
    "erfc": lambda: r(2, 3).erfc(),
    "logit": lambda: (p(2, 3) / 2).logit(),
    "fmod": lambda: torch.fmod(r(2, 9) * 4, p(9)),
    "logaddexp": lambda: torch.logaddexp(r(2, 3), r(3)),
    "hypot": lambda: torch.hypot(r(2, 3), r(3)),
    "cumprod": lambda: r(2, 3, 4).cumprod(1),
    "conv2d transposed": lambda: F.conv_transpose2d(r(2, 3, 3, 2), r(3, 2, 2, 3), stride=(2, 1), padding=(0, 1)),
    "dropout": lambda: aten.native_dropout(r(4, 5), 0.3, True)[0],
    "dropout of a function": lambda: F.dropout(r(4, 5), 0.3),
    # moves
    "clone": lambda: r(2, 3).clone() * 2,
    "repeat": lambda: r(2, 3).repeat(2, 1, 2),
    "flip": lambda: r(2, 3).flip(1),
    "roll": lambda: r(2, 3).roll(1, 1),
    "index_select": lambda: r(4, 3).index_select(0, i(4, 5)),
    "index": lambda: r(4, 3)[i(4, 5)],
    "index on two axes": lambda: r(4, 3, 2)[i(4, 5), i(3, 5)],
    "index with a gap": lambda: r(4, 3, 2)[i(4, 5), :, i(2, 5)],
    "index by truth": lambda: r(4, 3)[torch.tensor([True, False, True, True])],
    "gather": lambda: r(4, 3).gather(1, i(3, 4, 2)),
    "take": lambda: r(4, 3).take(i(12, 5)),
    "tril": lambda: r(3, 4).tril(),
    "triu": lambda: r(3, 4).triu(1),
    "pixel_shuffle": lambda: F.pixel_shuffle(r(1, 4, 2, 2), 2),
    "reflection_pad1d": lambda: F.pad(r(2, 5), (2, 1), mode="reflect"),
    "reflection_pad2d": lambda: F.pad(r(1, 3, 3), (1, 1, 2, 0), mode="reflect"),
    "replication_pad1d": lambda: F.pad(r(2, 5), (2, 1), mode="replicate"),
    "replication_pad2d": lambda: F.pad(r(1, 3, 3), (1, 1, 2, 0), mode="replicate"),
    "masked_select": lambda: r(5).masked_select(torch.tensor([True, False, True, True, False])),
    "diag_embed": lambda: r(2, 3).diag_embed(),
    "fill with a tensor": lambda: into((2, 3), lambda x: x.fill_(torch.tensor(2.5))),
    "fill": lambda: into((2, 3), lambda x: x[0].fill_(2.5)),
    "zero": lambda: into((2, 3), lambda x: x[:, 1].zero_()),
    "pack_padded_sequence": lambda: (
        torch.nn.utils.rnn.pack_padded_sequence(r(3, 4, 2), torch.tensor([4, 2, 1]), batch_first=True).data
    ),
    "constant_pad_nd": lambda: F.pad(r(2, 3), (1, 2), value=-1.5),
    "cat": lambda: torch.cat([r(2, 3), r(2, 1), r(2, 2)], -1),
    "stack": lambda: torch.stack([r(2, 3), r(2, 3)], 1),
    "embedding": lambda: F.embedding(i(5, 2, 3), r(5, 4)),
    "slice_scatter": lambda: aten.slice_scatter(r(4, 3), r(2, 3), 0, 1, 3),
    "select_scatter": lambda: aten.select_scatter(r(4, 3), r(4), 1, 2),
    "diagonal_scatter": lambda: aten.diagonal_scatter(r(3, 3), r(3)),
    "index_copy": lambda: r(4, 3).index_copy(0, torch.tensor([2, 0]), r(2, 3)),
    "masked_scatter": lambda: r(5).masked_scatter(torch.tensor([True, False, True, True, False]), r(5)),
    "scatter": lambda: r(4, 3).scatter(1, torch.tensor([[0], [2], [1], [0]]), r(4, 2)),
    "scatter a number": lambda: r(4, 3).scatter(1, torch.tensor([[0], [2], [1], [0]]), 7.5),
    "index_fill": lambda: r(4, 3).index_fill(0, torch.tensor([2, 0]), 7.5),
    "index_put": lambda: into((4, 3), lambda x: x.__setitem__(torch.tensor([2, 0]), r(2, 3))),
    "index_put of rows and columns": lambda: into(
        (4, 3), lambda x: x.__setitem__((torch.tensor([2, 0]), torch.tensor([1, 1])), r(2))
    ),
    "index_put by truth": lambda: into((4,), lambda x: x.__setitem__(torch.tensor([True, False, True, True]), 2.5)),
    "index_put adding": lambda: r(4, 3).index_put([torch.tensor([2, 0, 2])], r(3, 3), accumulate=True),
    "index_put adding a row": lambda: r(4, 3).index_put([torch.tensor([2, 0, 2])], r(1, 3), accumulate=True),
    "scatter_add": lambda: r(4, 3).scatter_add(0, i(4, 5, 3), r(6, 3)),
    "index_add": lambda: r(4, 3).index_add(0, i(4, 5), r(5, 3)),
    "sort": lambda: r(3, 4).sort(-1).values,
    "topk": lambda: r(3, 4).topk(2).values,
    "pixel_unshuffle": lambda: F.pixel_unshuffle(r(1, 1, 4, 4), 2),
    "channel_shuffle": lambda: F.channel_shuffle(r(1, 4, 2, 2), 2),
    "view_copy": lambda: aten.view_copy(r(2, 3), [3, 2]),
    "permute_copy": lambda: aten.permute_copy(r(2, 3), [1, 0]),
    "expand_copy": lambda: aten.expand_copy(r(1, 3), [2, 3]),
    "unfold_copy": lambda: aten.unfold_copy(r(5), 0, 3, 1),
    "select_copy": lambda: aten.select_copy(r(2, 3), 1, 2),
    "slice_copy": lambda: aten.slice_copy(r(2, 3), 1, 1, 3),
    "select_backward": lambda: aten.select_backward(r(2), [2, 3], 1, 2),
    "slice_backward": lambda: aten.slice_backward(r(2, 2), [2, 5], 1, 1, 5, 2),
    "diagonal_backward": lambda: aten.diagonal_backward(r(3), [3, 3], 0, 0, 1),
    # products
    "linear": lambda: inferred(lambda: F.linear(r(2, 5, 3), r(4, 3), r(4))),
    "linear without a bias": lambda: inferred(lambda: F.linear(r(3), r(4, 3))),
    "mm": lambda: r(2, 3) @ r(3, 4),
    "mm turned": lambda: r(3, 2).T @ r(4, 3).T,
    "bmm": lambda: r(2, 5, 2, 3) @ r(2, 5, 3, 4),
    "addmm": lambda: F.linear(r(2, 3), r(4, 3), r(4)),
    "addmm scaled": lambda: torch.addmm(r(2, 4), r(2, 3), r(3, 4), beta=0.5, alpha=2),
    "addmm alone": lambda: torch.addmm(r(4), r(2, 3), r(3, 4), beta=0),
    "baddbmm": lambda: torch.baddbmm(r(2, 1, 4), r(2, 3, 3), r(2, 3, 4), beta=2, alpha=0.5),
    "mv": lambda: r(2, 3) @ r(3),
    "addmv": lambda: torch.addmv(r(2), r(2, 3), r(3), beta=0.5, alpha=2),
    "dot": lambda: r(3) @ r(3),
    "vdot": lambda: torch.vdot(r(3), r(3)),
    "einsum": lambda: torch.einsum("bid,bjd->bij", r(2, 2, 3), r(2, 4, 3)),
    "conv1d": lambda: F.conv1d(r(2, 3, 7), r(4, 3, 3), r(4), stride=2, padding=1, dilation=2),
    "conv2d": lambda: F.conv2d(r(2, 2, 4, 5), r(3, 2, 3, 2), r(3), stride=(1, 2), padding=(1, 0)),
    "conv2d in groups": lambda: F.conv2d(r(1, 4, 3, 3), r(6, 2, 2, 2), groups=2),
    "conv1d transposed": lambda: F.conv_transpose1d(r(2, 3, 4), r(3, 2, 3), r(2), stride=2, padding=1),
    "conv1d transposed in groups": lambda: F.conv_transpose1d(r(1, 4, 3), r(4, 2, 3), groups=2, stride=2),
    # reductions
    **{
        name: (lambda name=name: getattr(torch, name)(r(2, 3, 4), 1))
        for name in ("sum", "mean", "amax", "amin", "prod", "argmax", "argmin", "cumsum", "logsumexp")
    },
    "isin": lambda: torch.isin(i(9, 2, 3), torch.tensor([[1, 2], [5, 7]])),
    "any": lambda: b(2, 3).any(1),
    "all": lambda: b(2, 3).all(),
    "sum of all": lambda: r(2, 3).sum(),
    "sum of nothing": lambda: r(2, 0).sum(1),
    "sum over several": lambda: r(2, 3, 4).sum((0, 2), keepdim=True),
    "max": lambda: r(2, 3).max(),
    "max along": lambda: r(2, 3).max(1, keepdim=True).values,
    "max along, where": lambda: r(2, 3).max(1).indices,
    "min along": lambda: r(2, 3).min(0).values,
    "argmax of all": lambda: r(2, 3).argmax(),
    "var": lambda: r(2, 3).var(1),
    "var of all": lambda: r(2, 3).var(unbiased=False),
    "std": lambda: r(2, 3).std(1, correction=0),
    "var_mean": lambda: torch.var_mean(r(2, 3), 1)[0] + torch.var_mean(r(2, 3), 1)[1],
    "std_mean": lambda: torch.std_mean(r(2, 3), 1)[0] + torch.std_mean(r(2, 3), 1)[1],
    "norm": lambda: torch.linalg.vector_norm(r(2, 3), dim=1),
    "norm of order 1": lambda: torch.linalg.vector_norm(r(2, 3), 1),
    "norm, the largest": lambda: torch.linalg.vector_norm(r(2, 3), torch.inf, 1),
    "an older norm": lambda: aten.norm.ScalarOpt_dim(r(2, 3), 2, [1]),
    "softmax": lambda: r(2, 3, 4).softmax(1),
    "softmax with blocked cells": lambda: (
        r(2, 4).masked_fill(torch.tensor([True, False, False, True]), -torch.inf).softmax(1)
    ),
    "log_softmax": lambda: r(2, 3, 4).log_softmax(-1),
    "safe softmax": lambda: aten._safe_softmax(
        torch.tensor([[1.0, -torch.inf, 2], [-torch.inf] * 3], dtype=torch.float64), -1
    ),
    "max_pool2d": lambda: F.max_pool2d(r(1, 2, 5, 5), 3, 2, 1),
    "max_pool1d": lambda: F.max_pool1d(r(1, 2, 6).requires_grad_(), 2),
    "avg_pool2d": lambda: F.avg_pool2d(r(1, 2, 4, 4), 2),
    "avg_pool2d padded": lambda: F.avg_pool2d(r(1, 2, 4, 4), 3, 2, 1),
    "avg_pool2d of what is there": lambda: F.avg_pool2d(r(1, 2, 4, 4), 3, 2, 1, count_include_pad=False),
    "max_pool3d": lambda: F.max_pool3d(r(1, 1, 4, 4, 4), 2),
    "avg_pool3d": lambda: F.avg_pool3d(r(1, 1, 4, 4, 4), 2),
    "avg_pool2d by another number": lambda: F.avg_pool2d(r(1, 2, 4, 4), 2, divisor_override=3),
    "avg_pool2d that reaches out": lambda: F.avg_pool2d(r(1, 2, 5, 5), 2, ceil_mode=True),
    "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(r(1, 2, 5, 7), (2, 3)),
    "adaptive_avg_pool3d": lambda: F.adaptive_avg_pool3d(r(1, 1, 3, 5, 4), 2),
    "adaptive_max_pool2d": lambda: F.adaptive_max_pool2d(r(1, 2, 5, 4), 3),
    "adaptive_max_pool3d": lambda: F.adaptive_max_pool3d(r(1, 1, 3, 5, 4), 2),
    "unfold into windows": lambda: F.unfold(r(1, 2, 4, 4), 2, padding=1, stride=2),
    "fold": lambda: F.fold(r(2, 8, 9), (4, 4), 2),
    "fold with padding": lambda: F.fold(r(1, 4, 4), (3, 3), 2, padding=1, stride=2),
    "upsample_nearest1d": lambda: F.interpolate(r(1, 2, 3), scale_factor=2),
    "upsample_nearest2d": lambda: F.interpolate(r(1, 2, 3, 3), size=(5, 4)),
    "upsample_nearest3d": lambda: F.interpolate(r(1, 1, 2, 3, 2), scale_factor=2),
    "upsample_nearest_exact1d": lambda: F.interpolate(r(1, 2, 3), size=5, mode="nearest-exact"),
    "upsample_nearest_exact2d": lambda: F.interpolate(r(1, 2, 3, 3), size=(5, 4), mode="nearest-exact"),
    "logcumsumexp": lambda: r(2, 3, 4).logcumsumexp(1),
    "cummax": lambda: r(2, 5).cummax(1).values,
    "cummin": lambda: r(2, 5).cummin(0).values,
    "nansum": lambda: torch.nansum(torch.where(b(3, 4), r(3, 4), torch.nan), 1),
    "count_nonzero": lambda: torch.count_nonzero(i(2, 3, 4), 1),
    "aminmax": lambda: torch.aminmax(r(3, 4), dim=1).max - torch.aminmax(r(3)).min,
    "trace": lambda: torch.trace(r(3, 4)),
    "cdist": lambda: torch.cdist(r(2, 3, 4), r(2, 5, 4)),
    "cdist of order 1": lambda: torch.cdist(r(3, 4), r(5, 4), p=1),
    "median": lambda: r(3, 5).median(1).values,
    "median kept": lambda: r(3, 5).nanmedian(0, keepdim=True).values,
    "kthvalue": lambda: r(3, 5).kthvalue(2).values,
    "mode": lambda: i(3, 3, 5).mode(1).values,
    "diag": lambda: r(3, 3).diag() + r(3),
    "rot90": lambda: r(2, 3).rot90(),
    "reflection_pad3d": lambda: F.pad(r(1, 1, 3, 3, 3), (1, 1, 1, 0, 2, 1), mode="reflect"),
    "replication_pad3d": lambda: F.pad(r(1, 1, 2, 2, 2), (1, 1, 1, 0, 2, 1), mode="replicate"),
    "scatter_reduce": lambda: r(4, 3).scatter_reduce(0, i(4, 5, 3), r(6, 3), "sum"),
    "scatter_reduce by products": lambda: r(4, 3).scatter_reduce(0, i(4, 5, 3), r(6, 3), "prod"),
    "embedding_bag": lambda: F.embedding_bag(i(5, 2, 3), r(5, 4)),
    "embedding_bag, the sum": lambda: F.embedding_bag(i(5, 6), r(5, 4), torch.tensor([0, 2, 2]), mode="sum"),
    "embedding_bag, the largest": lambda: F.embedding_bag(i(5, 2, 3), r(5, 4), mode="max"),
    "embedding_bag with weights": lambda: F.embedding_bag(i(5, 2, 3), r(5, 4), mode="sum", per_sample_weights=r(2, 3)),
    "embedding_bag with padding": lambda: F.embedding_bag(torch.tensor([[1, 0, 2], [3, 3, 0]]), r(5, 4), padding_idx=0),
    "embedding_bag that learns": lambda: F.embedding_bag(i(5, 2, 3), r(5, 4).requires_grad_()),
    "addr": lambda: torch.addr(r(2, 3), r(2), r(3), beta=0.5, alpha=2),
    "addbmm": lambda: torch.addbmm(r(2, 5), r(3, 2, 4), r(3, 4, 5), beta=0.5, alpha=2),
    "bilinear": lambda: F.bilinear(r(2, 3), r(2, 4), r(5, 3, 4), r(5)),
    "weight_norm": lambda: torch._weight_norm_interface(r(3, 4), p(3, 1))[0],
    "weight_norm, the norms": lambda: torch._weight_norm_interface(r(3, 4, 2), p(1, 1, 2), 2)[1],
    "celu": lambda: F.celu(r(2, 3), 0.5),
    "hardshrink": lambda: F.hardshrink(r(2, 9), 0.4),
    "softshrink": lambda: F.softshrink(r(2, 9), 0.4),
    "rrelu_with_noise": lambda: F.rrelu(r(2, 9), 0.1, 0.5),
    **{
        name: (lambda name=name: getattr(torch, name)(r(2, 3))) for name in ("sinh", "cosh", "asinh", "frac", "deg2rad")
    },
    **{name: (lambda name=name: getattr(torch, name)(p(2, 3) / 2)) for name in ("asin", "acos", "atanh", "rad2deg")},
    "acosh": lambda: torch.acosh(p(2, 3) + 1),
    "atan2": lambda: torch.atan2(r(2, 3), r(3)),
    "logaddexp2": lambda: torch.logaddexp2(r(2, 3), r(3)),
    "ldexp": lambda: aten.ldexp(r(2, 3), i(3, 3)),
    "heaviside": lambda: torch.heaviside(r(2, 3).round(), r(3)),
    "fmax": lambda: torch.fmax(r(2, 3), r(3)),
    "fmin": lambda: torch.fmin(r(2, 3), r(3)),
    "nan_to_num": lambda: torch.nan_to_num(torch.tensor([1.0, torch.nan, torch.inf, -torch.inf]), 0.5),
    "cross": lambda: torch.linalg.cross(r(2, 3), r(2, 3)),
    "cross along another axis": lambda: torch.linalg.cross(r(3, 2), r(3, 2), dim=0),
    "mean squares": lambda: F.mse_loss(r(2, 3), r(2, 3)),
    "binary cross-entropy, weighted": lambda: F.binary_cross_entropy(p(2, 3) / 2, p(2, 3) / 2, weight=p(3)),
    "of logits, weighted": lambda: F.binary_cross_entropy_with_logits(r(2, 3), p(2, 3), p(3), pos_weight=p(3)),
    "of logits, each, weighted": lambda: F.binary_cross_entropy_with_logits(
        r(2, 3), p(2, 3), pos_weight=p(3), reduction="none"
    ),
    # norms
    "layer_norm": lambda: F.layer_norm(r(2, 3, 4), (4,), r(4), r(4)),
    "layer_norm over two axes": lambda: F.layer_norm(r(2, 3, 4), (3, 4), r(3, 4)),
    "layer_norm plain": lambda: F.layer_norm(r(2, 4), (4,)),
    "group_norm": lambda: F.group_norm(r(2, 4, 3), 2, r(4), r(4)),
    "batch_norm in training": lambda: F.batch_norm(
        r(4, 3), torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64), r(3), r(3), True
    ),
    "batch_norm": lambda: F.batch_norm(r(4, 3, 2), r(3), p(3), r(3), r(3)),
    "batch_norm by its other name": lambda: aten._native_batch_norm_legit(
        r(4, 3), r(3), r(3), r(3), p(3), True, 0.1, 1e-5
    )[0],
    "batch_norm not training, by its other name": lambda: aten._native_batch_norm_legit_no_training(
        r(4, 3), r(3), r(3), r(3), p(3), 0.1, 1e-5
    )[0],
    "rms_norm": lambda: F.rms_norm(r(2, 3, 4), (4,), r(4), eps=1e-5),
    "rms_norm plain": lambda: F.rms_norm(r(2, 4), (4,)),
}

GRADIENTS: dict[str, Function] = {
    "matmul": lambda x: x @ r(4, 2),
    "matmul from the right": lambda x: r(2, 3) @ x,
    "batches": lambda x: x.expand(2, 3, 4) @ r(2, 4, 3),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "blocked": lambda x: x.masked_fill(torch.eye(3, 4).bool(), -torch.inf).softmax(-1),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": F.elu,
    "elu in place": lambda x: F.elu(x * 1, inplace=True),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.5),
    "silu": F.silu,
    "gelu": F.gelu,
    "softplus": lambda x: F.softplus(x, 2.0),
    "logsigmoid": F.logsigmoid,
    "dropout": lambda x: aten.native_dropout(x, 0.4, True)[0],
    "layer_norm": lambda x: F.layer_norm(x, (4,), r(4), r(4)),
    "layer_norm over two axes": lambda x: F.layer_norm(x, (3, 4), r(3, 4)),
    "rms_norm": lambda x: F.rms_norm(x, (4,), r(4)),
    "rms_norm in one": lambda x: aten._fused_rms_norm(x, [4], p(4), 1e-5)[0],
    "mean": lambda x: x.mean(1),
    "max": lambda x: x.max(1).values,
    "amax": lambda x: x.amax(0),
    "var": lambda x: x.var(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "cumsum": lambda x: x.cumsum(1),
    "division": lambda x: 1 / (x * x + 1),
    "power": lambda x: (x * x + 1) ** 1.5,
    "exp, log, sqrt": lambda x: (x.exp() + 1).log().sqrt(),
    "index": lambda x: x[torch.tensor([0, 2, 0])],
    "select and slice": lambda x: x[1, 1:3],
    "gather": lambda x: x.gather(1, torch.tensor([[0, 0], [1, 2], [3, 3]])),
    "embedding": lambda x: F.embedding(torch.tensor([0, 2, 0]), x),
    "embedding_bag": lambda x: F.embedding_bag(torch.tensor([[0, 2, 0], [1, 2, 2]]), x),
    "embedding_bag, the sum": lambda x: F.embedding_bag(torch.tensor([[0, 2, 0], [1, 2, 2]]), x, mode="sum"),
    "embedding with padding": lambda x: F.embedding(torch.tensor([0, 2, 1, 0]), x, padding_idx=1),
    "cat": lambda x: torch.cat([x, x * 2], 1),
    "where": lambda x: torch.where(x > 0, x * 2, x * 3),
    "sort": lambda x: x.sort(1).values,
    "diagonal": lambda x: x.diagonal(),
    "broadcast": lambda x: x[:, :1] * r(3, 4) + x[0],
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1])),
    "cross_entropy, weighted": lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1]), p(4)),
    "cross_entropy, some ignored": lambda x: F.cross_entropy(x, torch.tensor([0, -100, 1]), reduction="sum"),
    "cross_entropy, each": lambda x: F.cross_entropy(x, torch.tensor([0, -100, 1]), p(4), reduction="none"),
    "cross_entropy, smoothed": lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1]), label_smoothing=0.1),
    "cross_entropy of places": lambda x: F.cross_entropy(x.view(1, 3, 2, 2), torch.tensor([[[0, 2], [1, 1]]])),
    "conv1d": lambda x: F.conv1d(x.view(1, 2, 6), r(3, 2, 3), r(3), stride=2, padding=1),
    "conv1d by its weight": lambda x: F.conv1d(r(2, 4, 5), x.view(3, 4, 1).repeat(1, 1, 2), padding=1, dilation=2),
    "conv2d in groups": lambda x: F.conv2d(x.view(1, 2, 2, 3), r(4, 1, 2, 2), groups=2, padding=1),
    "conv2d in groups by its weight": lambda x: F.conv2d(r(2, 2, 4, 4), x.view(4, 1, 1, 3), groups=2),
    "conv1d by its bias": lambda x: F.conv1d(r(2, 2, 5), r(12, 2, 2), x.reshape(12)),
    "group_norm": lambda x: F.group_norm(x.view(1, 4, 3), 2, r(4), r(4)),
    "group_norm by its weight": lambda x: F.group_norm(r(2, 12, 3), 3, x.reshape(12), r(12)),
    "group_norm by its bias": lambda x: F.group_norm(r(2, 12, 3), 3, r(12), x.reshape(12)),
    "group_norm plain": lambda x: F.group_norm(x.view(1, 4, 3), 2),
    "batch_norm in training": lambda x: F.batch_norm(x, None, None, p(4), r(4), True),
    "batch_norm": lambda x: F.batch_norm(x, r(4), p(4), p(4), r(4)),
    "batch_norm by its weight": lambda x: F.batch_norm(r(5, 12, 2), None, None, x.reshape(12), r(12), True),
    "batch_norm by its bias": lambda x: F.batch_norm(r(5, 12), r(12), p(12), r(12), x.reshape(12)),
    "mse_loss": lambda x: F.mse_loss(x, r(3, 4)),
    "mse_loss, summed": lambda x: F.mse_loss(x, r(3, 4), reduction="sum"),
    "mse_loss, each": lambda x: F.mse_loss(x, r(3, 4), reduction="none"),
    "binary cross-entropy": lambda x: F.binary_cross_entropy(x.sigmoid(), p(3, 4) / 2),
    "binary cross-entropy, each": lambda x: F.binary_cross_entropy(x.sigmoid(), p(3, 4) / 2, reduction="none"),
    "binary cross-entropy of logits": lambda x: F.binary_cross_entropy_with_logits(x, p(3, 4) / 2),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, r(3, 4), beta=0.7),
    "huber_loss": lambda x: F.huber_loss(x, r(3, 4), delta=0.7, reduction="sum"),
    "l1_loss": lambda x: F.l1_loss(x, r(3, 4)),
    "kl_div": lambda x: F.kl_div(x.log_softmax(-1), r(3, 4).softmax(-1), reduction="batchmean"),
}
"""Functions of a matrix [3, 4], to be differentiated."""
