"""Products of matrices: sums of products."""

from regard.tracing.forms import Form, Rule, divided, over, plus, scaled, times, total
from regard.tracing.index import row_strides
from regard.tracing.rules.call import Call, Source, axis
from regard.tracing.rules.table import rule


@rule("over", "mm", "bmm")
def mm(c: Call) -> Rule:
    """C[.., i, j] = Σ_k A[.., i, k] B[.., k, j]"""
    return c.rule(_product(c, c.source("self"), c.source("mat2")))


def _product(c: Call, a: Source, b: Source) -> Form:
    c.inner = (a.shape[-1],)
    (*batch_a, row, along_a), (*batch_b, along_b, column) = row_strides(a.shape), row_strides(b.shape)
    return total(times(c.read(a, (*batch_a, row, 0, along_a)), c.read(b, (*batch_b, 0, column, along_b))))


@rule("over", "addmm", "baddbmm")
def addmm(c: Call) -> Rule:
    """β bias + α A B"""
    first, second = ("mat1", "mat2") if "mat1" in c.arguments else ("batch1", "batch2")
    product = scaled(_product(c, c.source(first), c.source(second)), c["alpha"])
    return c.rule(product if c["beta"] == 0 else plus(product, scaled(c.at(c["self"]), c["beta"])))


@rule("over", "mv")
def mv(c: Call) -> Rule:
    return c.rule(_vector(c, c.source("self"), c.source("vec")))


@rule("over", "addmv")
def addmv(c: Call) -> Rule:
    product = scaled(_vector(c, c.source("mat"), c.source("vec")), c["alpha"])
    return c.rule(product if c["beta"] == 0 else plus(product, scaled(c.at(c["self"]), c["beta"])))


def _vector(c: Call, a: Source, b: Source) -> Form:
    c.inner = b.shape
    return total(times(c.read(a, row_strides(a.shape)), c.read(b, (0, 1))))


@rule("over", "dot", "vdot")
def dot(c: Call) -> Rule:
    c.inner = c.source("self").shape
    return c.rule(
        total(times(c.read(c.source("self"), (1,)), c.read(c["tensor" if "tensor" in c.arguments else "other"], (1,))))
    )


@rule("over", "linear")
def linear(c: Call) -> Rule:
    """x Wᵀ + b; seen whole where nothing records gradients."""
    x, weight = c.source("input"), c.source("weight")
    c.inner = (x.shape[-1],)
    *places, along = row_strides(x.shape)
    body = total(
        times(c.read(x, (*places, 0, along)), c.read(weight, (*(0 for _ in places), *row_strides(weight.shape))))
    )
    return c.rule(body if c.get("bias") is None else plus(body, c.at(c["bias"])))


@rule("each", "addr")
def addr(c: Call) -> Rule:
    """β self + α x_i y_j"""
    product = scaled(times(c.at(c["vec1"], [0]), c.at(c["vec2"], [1])), c["alpha"])
    return c.rule(product if c["beta"] == 0 else plus(product, scaled(c.at(c["self"]), c["beta"])))


@rule("over", "addbmm")
def addbmm(c: Call) -> Rule:
    """β self + α Σ_b Σ_k A[b, i, k] B[b, k, j]"""
    a, b = c.source("batch1"), c.source("batch2")
    c.inner = (a.shape[0], a.shape[2])
    (each, row, along), (other, beside, column) = row_strides(a.shape), row_strides(b.shape)
    product = total(times(c.read(a, (row, 0, each, along)), c.read(b, (0, column, other, beside))))
    product = scaled(product, c["alpha"])
    return c.rule(product if c["beta"] == 0 else plus(product, scaled(c.at(c["self"]), c["beta"])))


@rule("over", "_trilinear")
def trilinear(c: Call) -> Rule:
    """Σ of a · b · c over some of the axes, where each has axes of size 1 put in: a bilinear layer is one."""
    names = (("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3"))
    count = c.source("i1").axes + len(c["expand1"])
    sizes, found = [1] * count, []
    for name, put_in in names:
        source = c.source(name)
        axes = [d for d in range(count) if d not in c[put_in]]
        for d, n in zip(axes, source.shape, strict=True):
            sizes[d] = max(sizes[d], n)
        found.append((source, dict(zip(axes, zip(source.shape, row_strides(source.shape), strict=True), strict=True))))
    order = [d for d in range(count) if d not in c["sumdim"]] + sorted(c["sumdim"])
    c.inner = tuple(sizes[d] for d in sorted(c["sumdim"]))
    reads = []
    for source, axes_ in found:
        strides = [axes_[d][1] if d in axes_ and axes_[d][0] > 1 else 0 for d in order]
        reads.append(c.read(source, strides))
    return c.rule(total(times(*reads)))


@rule("over", "_weight_norm_interface")
def weight_norm(c: Call) -> Rule:
    """v g / |v|, the norm over all axes but one; and that norm."""
    v = c.source("v")
    dim = axis(c["dim"], v.axes)
    c.inner = tuple(n for d, n in enumerate(v.shape) if d != dim)
    strides = row_strides(v.shape)
    outer = [strides[d] if d == dim else 0 for d in range(v.axes)]
    length = over("norm", c.read(v, (*outer, *(s for d, s in enumerate(strides) if d != dim))), 2)
    return c.rule(length if c.output else times(c.at(v), divided(c.at(c["g"]), length)))
