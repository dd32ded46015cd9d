"""Triton kernels of a Transformer in training: what stands between the products of matrices, each in one pass.

Rows are places of sentences, all of them one below the other. What is drawn by chance is a function of the seed, of the
place in the network and of the number's own place, so that the backward pass draws the same again and nothing is kept.

Shape letters of a tile: BR rows, BD (BC) numbers of a row. `exact`, EXACT: run by an interpreter.
"""

# mypy: ignore-errors
import triton
import triton.language as tl

from regard.attention.fast.additive.tiles import rounded


@triton.jit
def mixed(x, key):
    """A hash of 32 bits whose every bit depends on every bit (Wellons, lowbias32), with a second key in the middle."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) + key
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def keys_of(seed_ptr, place):
    """Two numbers of 32 bits for a place in the network, from the 64 of the seed."""
    seed = tl.load(seed_ptr)
    low, high = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    own = place.to(tl.uint32)
    return mixed(low ^ own, high), mixed(high ^ own, low)


@triton.jit
def kept(first, second, at, level):
    """Whether each number stays: with the chance 1 - level / 2^24."""
    return (mixed(at.to(tl.uint32) ^ first, second) >> 8).to(tl.int32) >= level


@triton.jit
def row_tile(first, rows, D: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr):
    """Rows from `first` on, and where their numbers stand: four side by side to a thread, of whatever kind they are, so
    that what one load gives a thread is what it needs beside that of the others."""
    row, d = first + tl.arange(0, BR), tl.arange(0, BD)
    d = tl.max_contiguous(d, 4)
    return row, d, row.to(tl.int64)[:, None] * D + d[None, :], (row < rows)[:, None] & (d < D)[None, :]


@triton.jit(do_not_specialize=["rows", "place", "level"])
def add_norm_kernel(
    x_ptr, a_ptr, b_ptr, weight_ptr, shift_ptr, seed_ptr, out_ptr, y_ptr, mean_ptr, rate_ptr, rows, place, level,
    scale, epsilon, D: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr, ADDS: tl.constexpr, HAS_B: tl.constexpr,
    DROPS: tl.constexpr, LAYER: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """x' = x + drop(a + b), y = norm(x'): of layers, or (LAYER false) by the root of the mean square."""
    row, d, at, real = row_tile(tl.program_id(0) * BR, rows, D, BR, BD)
    x = tl.load(x_ptr + at, mask=real, other=0.0)
    if ADDS:
        a = tl.load(a_ptr + at, mask=real, other=0.0).to(tl.float32)
        if HAS_B:
            a += tl.load(b_ptr + d, mask=d < D, other=0.0)[None, :]
        if DROPS:
            first, second = keys_of(seed_ptr, place)
            a = tl.where(kept(first, second, at, level), a * scale, 0.0)
        x += a
        tl.store(out_ptr + at, x, mask=real)
    if LAYER:
        mean = tl.sum(tl.where(real, x, 0.0), 1) / D
        tl.store(mean_ptr + row, mean, mask=row < rows)
        x = x - mean[:, None]
    x = tl.where(real, x, 0.0)
    rate = 1.0 / tl.sqrt(tl.sum(x * x, 1) / D + epsilon)
    tl.store(rate_ptr + row, rate, mask=row < rows)
    y = x * rate[:, None] * tl.load(weight_ptr + d, mask=d < D, other=0.0)[None, :]
    if LAYER:
        y += tl.load(shift_ptr + d, mask=d < D, other=0.0)[None, :]
    tl.store(y_ptr + at, rounded(y, y_ptr.dtype.element_ty, EXACT), mask=real)


@triton.jit(do_not_specialize=["rows", "place", "level", "blocks"])
def add_norm_back_kernel(
    dx_ptr, dy_ptr, x_ptr, mean_ptr, rate_ptr, weight_ptr, seed_ptr, dout_ptr, da_ptr, sums_ptr, rows, place, level,
    scale, blocks, columns, D: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr, HAS_DX: tl.constexpr,
    ADDS: tl.constexpr, DROPS: tl.constexpr, LAYER: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """Of x (dout) and a from those of x' (dx) and y; each program's sums for weight, shift and b in a row of `columns`.

    g = dy weight        dout = dx + rate (g - n mean(g n) - mean(g))        n: x', normalised
    """
    d = tl.max_contiguous(tl.arange(0, BD), 4)
    weight = tl.load(weight_ptr + d, mask=d < D, other=0.0)[None, :]
    of_weight, of_shift, of_b = (
        tl.zeros([BR, BD], tl.float32), tl.zeros([BR, BD], tl.float32), tl.zeros([BR, BD], tl.float32)
    )  # fmt: skip
    if DROPS:
        first, second = keys_of(seed_ptr, place)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        row, _, at, real = row_tile(block * BR, rows, D, BR, BD)
        x = tl.load(x_ptr + at, mask=real, other=0.0)
        dy = tl.load(dy_ptr + at, mask=real, other=0.0).to(tl.float32)
        if HAS_DX:
            dx = tl.load(dx_ptr + at, mask=real, other=0.0)
        rate = tl.load(rate_ptr + row, mask=row < rows, other=0.0)[:, None]
        if LAYER:
            x = tl.where(real, x - tl.load(mean_ptr + row, mask=row < rows, other=0.0)[:, None], 0.0)
            of_shift += dy
        n = x * rate
        of_weight += dy * n
        dy *= weight
        own = dy - n * (tl.sum(dy * n, 1) / D)[:, None]
        if LAYER:
            own -= (tl.sum(dy, 1) / D)[:, None]
        own *= rate
        if HAS_DX:
            own += dx
        tl.store(dout_ptr + at, own, mask=real)
        if ADDS:
            if DROPS:
                own = tl.where(kept(first, second, at, level), own * scale, 0.0)
            tl.store(da_ptr + at, rounded(own, da_ptr.dtype.element_ty, EXACT), mask=real)
            of_b += tl.where(real, own, 0.0)
    here = sums_ptr + tl.program_id(0) * columns + d
    tl.store(here, tl.sum(of_weight, 0), mask=d < D)
    if LAYER:
        tl.store(here + D, tl.sum(of_shift, 0), mask=d < D)
    if ADDS:
        tl.store(here + 2 * D, tl.sum(of_b, 0), mask=d < D)


@triton.jit
def activated(z, ACT: tl.constexpr):
    if ACT == "relu":
        return tl.maximum(z, 0.0)
    if ACT == "silu":
        return z / (1.0 + tl.exp(-z))
    if ACT == "gelu":
        return 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))
    return z


@triton.jit
def slope_of(z, ACT: tl.constexpr):
    """The derivative; of relu from its result as well as from what went in."""
    if ACT == "relu":
        return tl.where(z > 0, 1.0, 0.0)
    if ACT == "silu":
        s = 1.0 / (1.0 + tl.exp(-z))
        return s * (1.0 + z * (1.0 - s))
    if ACT == "gelu":
        return 0.5 * (1.0 + tl.erf(z * 0.7071067811865476)) + z * 0.3989422804014327 * tl.exp(-0.5 * z * z)
    return tl.full(z.shape, 1.0, tl.float32)


@triton.jit(do_not_specialize=["rows", "place", "level"])
def hidden_kernel(
    z_ptr, b_ptr, seed_ptr, h_ptr, rows, place, level, scale, C: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
    HAS_B: tl.constexpr, DROPS: tl.constexpr, ACT: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """h = drop(act(z + b))."""
    row, c = tl.program_id(0) * BR + tl.arange(0, BR), tl.program_id(1) * BC + tl.arange(0, BC)
    real = (row < rows)[:, None] & (c < C)[None, :]
    at = row.to(tl.int64)[:, None] * C + c[None, :]
    z = tl.load(z_ptr + at, mask=real, other=0.0).to(tl.float32)
    if HAS_B:
        z += tl.load(b_ptr + c, mask=c < C, other=0.0)[None, :]
    h = activated(z, ACT)
    if DROPS:
        first, second = keys_of(seed_ptr, place)
        h = tl.where(kept(first, second, at, level), h * scale, 0.0)
    tl.store(h_ptr + at, rounded(h, h_ptr.dtype.element_ty, EXACT), mask=real)


@triton.jit(do_not_specialize=["rows", "place", "level", "blocks"])
def hidden_back_kernel(
    dh_ptr, z_ptr, b_ptr, seed_ptr, dz_ptr, sums_ptr, rows, place, level, scale, blocks, columns, C: tl.constexpr,
    BR: tl.constexpr, BC: tl.constexpr, HAS_B: tl.constexpr, DROPS: tl.constexpr, ACT: tl.constexpr,
    SUMS: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """dz = dh act'(z + b), and each program's sums for b, in a row of `columns`. ACT "relu" reads h for z, and what
    was dropped is 0 there; ACT "none" reads dh and makes the sums alone."""
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    sums = tl.zeros([BR, BC], tl.float32)
    if HAS_B:
        b = tl.load(b_ptr + c, mask=c < C, other=0.0)[None, :]
    if DROPS and ACT != "relu":
        first, second = keys_of(seed_ptr, place)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        row = block * BR + tl.arange(0, BR)
        real = (row < rows)[:, None] & (c < C)[None, :]
        at = row.to(tl.int64)[:, None] * C + c[None, :]
        dz = tl.load(dh_ptr + at, mask=real, other=0.0).to(tl.float32)
        if ACT != "none":
            z = tl.load(z_ptr + at, mask=real, other=0.0).to(tl.float32)
            if HAS_B:
                z += b
            dz *= slope_of(z, ACT)
            if DROPS:
                dz *= scale
                if ACT != "relu":
                    dz = tl.where(kept(first, second, at, level), dz, 0.0)
            tl.store(dz_ptr + at, rounded(dz, dz_ptr.dtype.element_ty, EXACT), mask=real)
        if SUMS:
            sums += tl.where(real, dz, 0.0)
    if SUMS:
        tl.store(sums_ptr + tl.program_id(0) * columns + c, tl.sum(sums, 0), mask=c < C)


@triton.jit(do_not_specialize=["rows", "places", "place", "level"])
def words_kernel(
    token_ptr, table_ptr, at_ptr, seed_ptr, out_ptr, rows, places, place, level, scale, times, D: tl.constexpr,
    BR: tl.constexpr, BD: tl.constexpr, HAS_AT: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """drop(table[token] times + at[t]), where t is a row's place in its sentence."""
    row, d = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, BD)
    real = (row < rows)[:, None] & (d < D)[None, :]
    token = tl.load(token_ptr + row, mask=row < rows, other=0).to(tl.int64)
    x = tl.load(table_ptr + token[:, None] * D + d[None, :], mask=real, other=0.0) * times
    if HAS_AT:
        x += tl.load(at_ptr + (row % places)[:, None] * D + d[None, :], mask=real, other=0.0)
    at = row.to(tl.int64)[:, None] * D + d[None, :]
    if DROPS:
        first, second = keys_of(seed_ptr, place)
        x = tl.where(kept(first, second, at, level), x * scale, 0.0)
    tl.store(out_ptr + at, x, mask=real)


@triton.jit(do_not_specialize=["rows", "place", "level"])
def dropped_kernel(
    x_ptr, seed_ptr, out_ptr, rows, place, level, scale, D: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr
):
    """What was dropped at this place, dropped again; the rest times the scale."""
    row, d = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, BD)
    real = (row < rows)[:, None] & (d < D)[None, :]
    at = row.to(tl.int64)[:, None] * D + d[None, :]
    first, second = keys_of(seed_ptr, place)
    x = tl.load(x_ptr + at, mask=real, other=0.0)
    tl.store(out_ptr + at, tl.where(kept(first, second, at, level), x * scale, 0.0), mask=real)


@triton.jit(do_not_specialize=["nothing"])
def loss_kernel(z_ptr, wanted_ptr, loss_ptr, logs_ptr, z_row, smoothing, nothing, V: tl.constexpr, BV: tl.constexpr):
    """A row's smoothed cross-entropy, and the logarithm of its sum of exponentials; 0 and 0 where nothing is wanted."""
    row = tl.program_id(0).to(tl.int64)
    y = tl.load(wanted_ptr + row)
    if y == nothing:
        tl.store(loss_ptr + row, 0.0)
        tl.store(logs_ptr + row, 0.0)
    else:
        z_ptr += row * z_row
        largest, total, mean = float("-inf"), 0.0, 0.0
        for start in range(0, V, BV):
            v = start + tl.arange(0, BV)
            z = tl.load(z_ptr + v, mask=v < V, other=float("-inf")).to(tl.float32)
            higher = tl.maximum(largest, tl.max(z, 0))
            total = total * tl.exp(largest - higher) + tl.sum(tl.exp(z - higher), 0)
            mean += tl.sum(tl.where(v < V, z, 0.0), 0)
            largest = higher
        logs = largest + tl.log(total)
        right = tl.load(z_ptr + y).to(tl.float32)
        tl.store(logs_ptr + row, logs)
        tl.store(loss_ptr + row, logs - (1 - smoothing) * right - smoothing * (mean / V))


@triton.jit(do_not_specialize=["nothing"])
def loss_back_kernel(
    z_ptr, wanted_ptr, logs_ptr, grad_ptr, dz_ptr, z_row, smoothing, nothing, V: tl.constexpr, W: tl.constexpr,
    BV: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """∂L/∂z_v = p_v - ε / V - (1 - ε) [v = y], times the gradient of L; rows of W numbers, 0 behind V."""
    row, v = tl.program_id(0).to(tl.int64), tl.program_id(1) * BV + tl.arange(0, BV)
    y = tl.load(wanted_ptr + row)
    here = dz_ptr + row * W + v
    if y == nothing:
        tl.store(here, tl.zeros([BV], dz_ptr.dtype.element_ty), mask=v < W)
    else:
        z = tl.load(z_ptr + row * z_row + v, mask=v < V, other=float("-inf")).to(tl.float32)
        p = tl.exp(z - tl.load(logs_ptr + row)) - smoothing / V
        dz = tl.where(v < V, tl.where(v == y, p - (1 - smoothing), p) * tl.load(grad_ptr), 0.0)
        tl.store(here, rounded(dz, dz_ptr.dtype.element_ty, EXACT), mask=v < W)
