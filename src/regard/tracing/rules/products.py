"""Products of matrices: sums of products."""

from regard.tracing.forms import Form, Rule, plus, scaled, times, total
from regard.tracing.index import row_strides
from regard.tracing.rules.call import Call, Source
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
