"""How what networks are made of is written in formulas: activations, losses, and the gradients of both."""

from typing import TYPE_CHECKING, Any

from regard.tracing.spelled import ALONE, POWER, PRODUCT, Part, Writer, difference, held, is_tensor, pattern, scaled

if TYPE_CHECKING:
    from regard.tracing.formulas import Formulas


def _likelihood(f: "Formulas", args: Any, kwargs: Any) -> Part:
    reduction = args[3] if len(args) > 3 else kwargs.get("reduction", 1)
    return f"{('', 'mean ', 'sum ')[reduction]}nll({f.value(args[0])[0]}, {f.value(args[1])[0]})", ALONE


def _reduced(reduction: int, part: Part) -> Part:
    return part if reduction == 0 else (f"{('', 'mean', 'sum')[reduction]}({part[0]})", ALONE)


def _squared_error(f: "Formulas", args: Any, kwargs: Any) -> Part:
    reduction = args[2] if len(args) > 2 else kwargs.get("reduction", 1)
    return _reduced(reduction, (f"({difference(f, args[:2], {})[0]})²", POWER))


def _cross_entropy(f: "Formulas", args: Any, kwargs: Any, name: str = "bce", at: int = 3) -> Part:
    reduction = args[at] if len(args) > at else kwargs.get("reduction", 1)
    tensors = [f.value(each)[0] for each in args[:at] if is_tensor(each)]
    return _reduced(reduction, (f"{name}({', '.join(tensors)})", ALONE))


def _of_logits(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return _cross_entropy(f, args, kwargs, "bce of logits", 4)


def _rounded_corner(name: str, bound: str) -> Writer:
    def write(f: "Formulas", args: Any, kwargs: Any) -> Part:
        reduction = args[2] if len(args) > 2 else kwargs.get("reduction", 1)
        at = args[3] if len(args) > 3 else kwargs.get(bound, 1.0)
        parts = [f.value(each)[0] for each in args[:2]] + ([f"{bound}={f.value(at)[0]}"] if at != 1 else [])
        return _reduced(reduction, (f"{name}({', '.join(parts)})", ALONE))

    return write


def _likelihood_backward(f: "Formulas", args: Any, kwargs: Any) -> Part:
    g, target, weights = (f.value(args[k]) for k in (0, 2, 6))
    over = f" / {held(weights, ALONE)}" if args[4] == 1 else ""
    return f"-{held(g, PRODUCT)}{over} at {target[0]}", PRODUCT


def _squared_error_backward(f: "Formulas", args: Any, kwargs: Any) -> Part:
    g, count = f.value(args[0]), f.records[args[1].record].shape.numel()
    over = f" / {count}" if args[3] == 1 else ""
    return f"2 · {held(g, PRODUCT)} · ({difference(f, args[1:3], {})[0]}){over}", PRODUCT


def _leaky(f: "Formulas", args: Any, kwargs: Any) -> Part:
    x, slope = f.value(args[0]), args[1] if len(args) > 1 else kwargs.get("negative_slope", 0.01)
    return f"{x[0]} if {x[0]} > 0 else {scaled(x, slope)}", 0


def _kinked(f: "Formulas", args: Any, kwargs: Any) -> Part:
    """PReLU, whose slope is learned."""
    x, slope = (f.value(each) for each in args[:2])
    return f"{x[0]} if {x[0]} > 0 else {held(slope, POWER)} · {held(x, POWER)}", 0


def _exponential(f: "Formulas", args: Any, kwargs: Any) -> Part:
    x, level = f.value(args[0])
    alpha, scale, k = (args[n] if len(args) > n else kwargs.get(name, 1) for n, name in enumerate(
        ("alpha", "scale", "input_scale"), 1
    ))  # fmt: skip
    power = f"e^{held((x, level), ALONE)}" if k == 1 else f"e^({scaled((x, level), k)})"
    low = f"{power} - 1" if alpha * scale == 1 else f"{alpha * scale:.4g} · ({power} - 1)"
    return f"{scaled((x, level), scale) if scale != 1 else x} if {x} > 0 else {low}", 0


def _above(f: "Formulas", args: Any, kwargs: Any) -> Part:
    x, least, otherwise = (f.value(each)[0] for each in args[:3])
    return f"{x} if {x} > {least} else {otherwise}", 0


def _dropped(f: "Formulas", args: Any, kwargs: Any) -> Part:
    x, p = f.value(args[0]), args[1]
    return (f"dropout({x[0]}, {p:g})", ALONE) if args[2] is not False else x


def _in_groups(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return f"GroupNorm({f.value(args[0])[0]}, {args[6]} groups)", ALONE


NETWORKS: dict[str, Writer] = {
    "tanh_backward": pattern("{0} · (1 - {1}²)"), "sigmoid_backward": pattern("{0} · {1} · (1 - {1})"),
    "_softmax_backward_data": pattern("{1} · ({0} - Σ {0} · {1})"),
    "_log_softmax_backward_data": pattern("{0} - e^{1} · Σ {0}"),
    "threshold_backward": pattern("{0} · ({1} > {2})"), "nll_loss_backward": _likelihood_backward,
    "nll_loss2d_backward": _likelihood_backward, "mse_loss_backward": _squared_error_backward,
    "mse_loss": _squared_error, "native_dropout_backward": pattern("{0} · {1} · {2}"),
    "binary_cross_entropy": _cross_entropy, "binary_cross_entropy_with_logits": _of_logits,
    "smooth_l1_loss": _rounded_corner("smooth L1", "beta"), "huber_loss": _rounded_corner("Huber", "delta"),
    "leaky_relu": _leaky, "_prelu_kernel": _kinked, "elu": _exponential, "threshold": _above,
    "native_dropout": _dropped, "native_group_norm": _in_groups, "nll_loss_forward": _likelihood,
    "nll_loss2d_forward": _likelihood,
}  # fmt: skip
