"""A tile of additive scores, and of their gradients, in Triton: by sums of sines on the matrix units, or term by term.

    score[t, s] = Σ_d v_d tanh(q[t, d] + k[s, d])

Shape letters of a tile: BT rows, BS columns, BD dimensions taken at a time.
Interpreted (EXACT) there is no inline assembly, and the same arithmetic is done by Triton's own functions.
"""

# mypy: ignore-errors
import triton
import triton.language as tl

from regard.attention.fast.additive.series import LONGEST

TERMS: tl.constexpr = tl.constexpr(LONGEST)
ROW: tl.constexpr = tl.constexpr(3 + 2 * LONGEST)
"""Numbers of a level in the flat table."""
SATURATED: tl.constexpr = tl.constexpr(9.0)
"""From here on tanh is 1 in float32."""
TWO_LOG2E: tl.constexpr = tl.constexpr(2.8853900817779268)


@triton.jit
def sine(x, EXACT: tl.constexpr):
    if EXACT:
        return tl.sin(x)
    return tl.inline_asm_elementwise("sin.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def cosine(x, EXACT: tl.constexpr):
    if EXACT:
        return tl.cos(x)
    return tl.inline_asm_elementwise("cos.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def reciprocal(x, EXACT: tl.constexpr):
    if EXACT:
        return 1.0 / x
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def hyperbolic(x, EXACT: tl.constexpr):
    """tanh to the last bits of float32: 1 - 2 / (1 + e^2x), whose overflow ends at 1."""
    return 1.0 - 2.0 * reciprocal(1.0 + tl.exp2(x * TWO_LOG2E), EXACT)


@triton.jit
def rough(x, EXACT: tl.constexpr):
    """tanh by the hardware, to 2^-11: enough for half precision, and one instruction."""
    if EXACT:
        return 1.0 - 2.0 / (1.0 + tl.exp2(x * TWO_LOG2E))
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def rounded(x, kind: tl.constexpr, EXACT: tl.constexpr):
    """float32 in another kind of numbers, to the nearest; an interpreter would cut the digits of bfloat16 off."""
    if EXACT:  # noqa: SIM102 - constants are told apart one after the other
        if kind == tl.bfloat16:
            bits = x.to(tl.int32, bitcast=True)
            bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & -65536
            x = bits.to(tl.float32, bitcast=True)
    return x.to(kind)


@triton.jit
def product(a, b, total, PRECISE: tl.constexpr, EXACT: tl.constexpr):
    """total + a b, summed in float32; of float32 without losing digits. An interpreter multiplies no bfloat16."""
    if EXACT:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), total)
    if PRECISE:
        return tl.dot(a, b, total, input_precision="ieee")
    return tl.dot(a, b, total)


@triton.jit
def rows_of(ptr, row, stride, d, real, width):
    """[rows, BD] in float32; 0 where a row is not real or d is beyond the width."""
    inside = real[:, None] & (d < width)[None, :]
    return tl.load(ptr + row.to(tl.int64)[:, None] * stride + d[None, :], mask=inside, other=0.0).to(tl.float32)


@triton.jit
def column_of(ptr, row, stride, d, real):
    """[rows] in float32: one dimension of each row."""
    return tl.load(ptr + row.to(tl.int64) * stride + d, mask=real, other=0.0).to(tl.float32)


@triton.jit
def bounded(q, k):
    """q and k without what lies where tanh has long turned, and the largest |q + k| that is left."""
    q_most = tl.max(tl.max(tl.abs(q), 1), 0)
    k_most = tl.max(tl.max(tl.abs(k), 1), 0)
    q_reach = tl.minimum(q_most, k_most + SATURATED)
    k_reach = tl.minimum(k_most, q_most + SATURATED)
    q = tl.minimum(tl.maximum(q, -q_reach), q_reach)
    k = tl.minimum(tl.maximum(k, -k_reach), k_reach)
    return q, k, q_reach + k_reach


@triton.jit
def level_of(table, reach, LEVELS: tl.constexpr):
    """The first level that reaches so far; LEVELS where none does (nor where there is a NaN)."""
    level = 0
    for each in tl.static_range(LEVELS):
        level += tl.where(reach <= tl.load(table + each * ROW), 0, 1)
    return level


@triton.jit
def turned(s, c, s2, c2):
    """The sine and cosine of an angle two steps further on."""
    return s * c2 + c * s2, c * c2 - s * s2


@triton.jit
def side_by_side(a, b, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """[ROWS, COLUMNS] twice → [ROWS, 2 COLUMNS], the one between the other."""
    return tl.reshape(tl.join(a, b), (ROWS, 2 * COLUMNS))


@triton.jit
def score_chunk(
    total, q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, largest, table, d0, width,
    BT: tl.constexpr, BS: tl.constexpr, BD: tl.constexpr, LEVELS: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """total + Σ over BD dimensions from d0 on of v_d / largest · tanh(q + k)."""
    d = d0 + tl.arange(0, BD)
    q = rows_of(q_ptr, q_row, q_stride, d, q_real, width)
    k = rows_of(k_ptr, k_row, k_stride, d, k_real, width)
    q, k, reach = bounded(q, k)
    level = level_of(table, reach, LEVELS)
    if level < LEVELS:
        v = tl.load(v_ptr + d, mask=d < width, other=0.0).to(tl.float32) / largest
        rate = tl.load(table + level * ROW + 1)
        terms = tl.load(table + level * ROW + 2).to(tl.int32)
        qs, qc = sine(rate * q, EXACT), cosine(rate * q, EXACT)
        ks, kc = sine(rate * k, EXACT), cosine(rate * k, EXACT)
        qs2, qc2 = 2.0 * qs * qc, 1.0 - 2.0 * qs * qs
        ks2, kc2 = 2.0 * ks * kc, 1.0 - 2.0 * ks * ks
        qs, qc = qs * v[None, :], qc * v[None, :]
        for m in range(terms):
            c = tl.load(table + level * ROW + 3 + m)
            left = side_by_side((qs * c).to(tl.float16), (qc * c).to(tl.float16), BT, BD)
            right = side_by_side(kc.to(tl.float16), ks.to(tl.float16), BS, BD)
            total = product(left, tl.trans(right), total, False, EXACT)
            qs, qc = turned(qs, qc, qs2, qc2)
            ks, kc = turned(ks, kc, ks2, kc2)
    else:
        total = plain_chunk(
            total, q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, largest, d0,
            tl.minimum(width - d0, BD), EXACT,
        )  # fmt: skip
    return total


@triton.jit
def plain_chunk(
    total, q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, largest, d0, count,
    EXACT: tl.constexpr,
):  # fmt: skip
    """The same, each tanh by itself: right for all numbers."""
    for j in range(count):
        q = column_of(q_ptr, q_row, q_stride, d0 + j, q_real)
        k = column_of(k_ptr, k_row, k_stride, d0 + j, k_real)
        v = tl.load(v_ptr + d0 + j).to(tl.float32) / largest
        total += v * hyperbolic(q[:, None] + k[None, :], EXACT)
    return total


@triton.jit
def fast_chunk(
    total, q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, largest, d0, EXACT: tl.constexpr
):  # fmt: skip
    """Four dimensions with one reciprocal: Σ v (1 - 2 / y) with y = 1 + e^2q e^2k, over a common denominator."""
    q0 = tl.exp2(column_of(q_ptr, q_row, q_stride, d0, q_real) * TWO_LOG2E)
    q1 = tl.exp2(column_of(q_ptr, q_row, q_stride, d0 + 1, q_real) * TWO_LOG2E)
    q2 = tl.exp2(column_of(q_ptr, q_row, q_stride, d0 + 2, q_real) * TWO_LOG2E)
    q3 = tl.exp2(column_of(q_ptr, q_row, q_stride, d0 + 3, q_real) * TWO_LOG2E)
    k0 = tl.exp2(column_of(k_ptr, k_row, k_stride, d0, k_real) * TWO_LOG2E)
    k1 = tl.exp2(column_of(k_ptr, k_row, k_stride, d0 + 1, k_real) * TWO_LOG2E)
    k2 = tl.exp2(column_of(k_ptr, k_row, k_stride, d0 + 2, k_real) * TWO_LOG2E)
    k3 = tl.exp2(column_of(k_ptr, k_row, k_stride, d0 + 3, k_real) * TWO_LOG2E)
    v0 = tl.load(v_ptr + d0).to(tl.float32) / largest
    v1 = tl.load(v_ptr + d0 + 1).to(tl.float32) / largest
    v2 = tl.load(v_ptr + d0 + 2).to(tl.float32) / largest
    v3 = tl.load(v_ptr + d0 + 3).to(tl.float32) / largest
    y0 = 1.0 + q0[:, None] * k0[None, :]
    y1 = 1.0 + q1[:, None] * k1[None, :]
    y2 = 1.0 + q2[:, None] * k2[None, :]
    y3 = 1.0 + q3[:, None] * k3[None, :]
    front, back = y0 * y1, y2 * y3
    above = (v0 * y1 + v1 * y0) * back + (v2 * y3 + v3 * y2) * front
    return total + ((v0 + v1 + v2 + v3) - 2.0 * above * reciprocal(front * back, EXACT))


@triton.jit
def exact_chunk(
    total, q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, largest, d0, width,
    BD: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """BD dimensions in float32's own precision; four to a reciprocal where their product cannot overflow."""
    d = d0 + tl.arange(0, BD)
    q = rows_of(q_ptr, q_row, q_stride, d, q_real, width)
    k = rows_of(k_ptr, k_row, k_stride, d, k_real, width)
    most = tl.max(tl.max(tl.abs(q), 1), 0) + tl.max(tl.max(tl.abs(k), 1), 0)
    count = tl.minimum(width - d0, BD)
    fours = tl.where(most < 10.5, count // 4, 0)  # e^(4 · 2 · 10.5) is below the largest float32
    for four in range(fours):
        total = fast_chunk(
            total, q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, largest, d0 + 4 * four, EXACT
        )
    return plain_chunk(
        total, q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, largest, d0 + 4 * fours,
        count - 4 * fours, EXACT,
    )  # fmt: skip


@triton.jit
def score_tile(
    q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, table, width, DP: tl.constexpr,
    BT: tl.constexpr, BS: tl.constexpr, BD: tl.constexpr, LEVELS: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """[BT, BS]: the scores of a tile. Without levels each tanh is taken in float32's precision."""
    all_d = tl.arange(0, DP)
    largest = tl.max(tl.abs(tl.load(v_ptr + all_d, mask=all_d < width, other=0.0).to(tl.float32)), 0)
    largest = tl.where(largest > 0, largest, 1.0)
    total = tl.zeros([BT, BS], tl.float32)
    for d0 in range(0, width, BD):
        if LEVELS > 0:
            total = score_chunk(
                total, q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, largest, table, d0,
                width, BT, BS, BD, LEVELS, EXACT,
            )  # fmt: skip
        else:
            total = exact_chunk(
                total, q_ptr, q_row, q_stride, q_real, k_ptr, k_row, k_stride, k_real, v_ptr, largest, d0, width,
                BD, EXACT,
            )  # fmt: skip
    return total * largest


@triton.jit
def slope_chunk(
    slope, value, x, y, w, table, level, BR: tl.constexpr, BC: tl.constexpr, BD: tl.constexpr,
    WANT_V: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """slope + Σ_c w (1 - tanh²(x + y)) and value + Σ_c w tanh(x + y), over the columns: x [BR, BD], y [BC, BD]."""
    rate = tl.load(table + level * ROW + 1)
    terms = tl.load(table + level * ROW + 2).to(tl.int32)
    xs, xc = sine(rate * x, EXACT), cosine(rate * x, EXACT)
    ys, yc = sine(rate * y, EXACT), cosine(rate * y, EXACT)
    xs2, xc2 = 2.0 * xs * xc, 1.0 - 2.0 * xs * xs
    ys2, yc2 = 2.0 * ys * yc, 1.0 - 2.0 * ys * ys
    for m in range(terms):
        g = tl.load(table + level * ROW + 3 + TERMS + m)
        cosines = product(w, rounded(yc, w.dtype, EXACT), tl.zeros([BR, BD], tl.float32), False, EXACT)
        sines = product(w, rounded(ys, w.dtype, EXACT), tl.zeros([BR, BD], tl.float32), False, EXACT)
        slope += g * (xc * cosines - xs * sines)
        if WANT_V:
            c = tl.load(table + level * ROW + 3 + m)
            value += c * (xs * cosines + xc * sines)
        xs, xc = turned(xs, xc, xs2, xc2)
        ys, yc = turned(ys, yc, ys2, yc2)
    return slope, value
