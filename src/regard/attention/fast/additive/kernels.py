"""Additive attention in Triton: scores, mixing, and the gradients, tile by tile.

Sequences are numbered n, whatever axes they came from. q [N, T, D], k [N, S, D], v [D], value [N, S, E].
A pair may be attended where the query and the key are real (t < query_counts[n], s < key_counts[n]), where
-left <= s - (t + shift) <= right, and where the table `keep` holds (its strides are 0 along axes it does not have).
"""

# mypy: ignore-errors
import triton
import triton.language as tl

from regard.attention.fast.additive.tiles import (
    bounded,
    hyperbolic,
    level_of,
    product,
    rough,
    rounded,
    rows_of,
    score_tile,
    slope_chunk,
)

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def allowed(t, s, t_real, s_real, keep_ptr, keep_t, keep_s, left, right, shift, HAS_KEEP: tl.constexpr):
    """[BT, BS]: which pairs of a tile may be attended."""
    beside = s[None, :] - (t[:, None] + shift)
    may = t_real[:, None] & s_real[None, :] & (beside >= -left) & (beside <= right)
    if HAS_KEEP:
        cells = keep_ptr + t.to(tl.int64)[:, None] * keep_t + s.to(tl.int64)[None, :] * keep_s
        may &= tl.load(cells, mask=may, other=0) != 0
    return may


@triton.jit
def some_allowed(t0, s0, queries, keys, left, right, shift, BT: tl.constexpr, BS: tl.constexpr):
    """Whether any pair of a tile may be attended, by the rules alone."""
    return (t0 < queries) & (s0 < keys) & (s0 + BS - 1 - (t0 + shift) >= -left) & (s0 - (t0 + BT - 1 + shift) <= right)


@triton.jit(do_not_specialize=["first", "left", "right", "shift"])
def scores_kernel(
    q_ptr, k_ptr, v_ptr, table, query_counts, key_counts, keep_ptr, out_ptr, first, T, S, width, left, right, shift,
    q_batch, q_stride, k_batch, k_stride, keep_n, keep_t, keep_s, out_rows, DP: tl.constexpr, BT: tl.constexpr,
    BS: tl.constexpr, BD: tl.constexpr, LEVELS: tl.constexpr, HAS_KEEP: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """out[n, t - first, s]: scores of the queries from `first` on, -inf where a pair may not be attended."""
    n = tl.program_id(2).to(tl.int64)
    t0, s0 = first + tl.program_id(1) * BT, tl.program_id(0) * BS
    t, s = t0 + tl.arange(0, BT), s0 + tl.arange(0, BS)
    queries, keys = tl.load(query_counts + n).to(tl.int32), tl.load(key_counts + n).to(tl.int32)
    here = out_ptr + (n * out_rows + (t - first)[:, None]) * S + s[None, :]
    inside = (t < T)[:, None] & (t - first < out_rows)[:, None] & (s < S)[None, :]
    if some_allowed(t0, s0, queries, keys, left, right, shift, BT, BS):
        t_real, s_real = (t < queries) & (t < T), (s < keys) & (s < S)
        score = score_tile(
            q_ptr + n * q_batch, t, q_stride, t_real, k_ptr + n * k_batch, s, k_stride, s_real, v_ptr, table, width,
            DP, BT, BS, BD, LEVELS, EXACT,
        )  # fmt: skip
        may = allowed(t, s, t_real, s_real, keep_ptr + n * keep_n, keep_t, keep_s, left, right, shift, HAS_KEEP)
        tl.store(here, tl.where(may, score, float("-inf")), mask=inside)
    else:
        tl.store(here, tl.full([BT, BS], float("-inf"), tl.float32), mask=inside)


@triton.jit(do_not_specialize=["first"])
def mix_kernel(
    score_ptr, value_ptr, key_counts, out_ptr, lse_ptr, first, T, S, E, value_batch, value_stride, rows,
    BT: tl.constexpr, BS: tl.constexpr, BE: tl.constexpr, PRECISE: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """out[n, t] = softmax(score[n, t]) value[n], and lse[n, t] = log Σ_s e^score; 0 and -inf where nothing is seen."""
    n = tl.program_id(2).to(tl.int64)
    t = tl.program_id(1) * BT + tl.arange(0, BT)
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    keys = tl.load(key_counts + n).to(tl.int32)
    real = (t < rows) & (first + t < T)
    largest = tl.full([BT], float("-inf"), tl.float32)
    weight = tl.zeros([BT], tl.float32)
    mixed = tl.zeros([BT, BE], tl.float32)
    for s0 in range(0, tl.minimum(S, keys), BS):
        s = s0 + tl.arange(0, BS)
        score = tl.load(
            score_ptr + (n * rows + t[:, None]) * S + s[None, :], mask=real[:, None] & (s < S)[None, :],
            other=float("-inf"),
        ) * LOG2E  # fmt: skip
        new = tl.maximum(largest, tl.max(score, 1))
        base = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(score - base[:, None])
        fade = tl.exp2(largest - base)
        weight = weight * fade + tl.sum(p, 1)
        largest = new
        inside = ((s < S) & (s < keys))[:, None] & (e < E)[None, :]
        value = tl.load(
            value_ptr + n * value_batch + s.to(tl.int64)[:, None] * value_stride + e[None, :], mask=inside, other=0.0
        )
        mixed = product(rounded(p, value.dtype, EXACT), value, mixed * fade[:, None], PRECISE, EXACT)
    seen = weight > 0
    mixed = tl.where(seen[:, None], mixed / tl.where(seen, weight, 1.0)[:, None], 0.0)
    row = n * T + first + t
    tl.store(
        out_ptr + row[:, None] * E + e[None, :], rounded(mixed, out_ptr.dtype.element_ty, EXACT),
        mask=real[:, None] & (e < E)[None, :],
    )  # fmt: skip
    if tl.program_id(0) == 0:
        lse = tl.where(seen, largest / LOG2E + tl.log(tl.where(seen, weight, 1.0)), float("-inf"))
        tl.store(lse_ptr + row, lse, mask=real)


@triton.jit(do_not_specialize=["first", "left", "right", "shift"])
def back_kernel(
    q_ptr, k_ptr, v_ptr, table, query_counts, key_counts, keep_ptr, value_ptr, lse_ptr, delta_ptr, grad_ptr, p_ptr,
    ds_ptr, first, T, S, width, E, left, right, shift, q_batch, q_stride, k_batch, k_stride, keep_n, keep_t, keep_s,
    value_batch, value_stride, rows, DP: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr, BD: tl.constexpr,
    BE: tl.constexpr, LEVELS: tl.constexpr, HAS_KEEP: tl.constexpr, PRECISE: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """p[n, t - first, s]: the weights again; ds: the gradients of the scores, p (grad · value - delta)."""
    n = tl.program_id(2).to(tl.int64)
    t0, s0 = first + tl.program_id(1) * BT, tl.program_id(0) * BS
    t, s = t0 + tl.arange(0, BT), s0 + tl.arange(0, BS)
    queries, keys = tl.load(query_counts + n).to(tl.int32), tl.load(key_counts + n).to(tl.int32)
    place = (n * rows + (t - first)[:, None]) * S + s[None, :]
    inside = (t < T)[:, None] & (t - first < rows)[:, None] & (s < S)[None, :]
    if some_allowed(t0, s0, queries, keys, left, right, shift, BT, BS):
        t_real, s_real = (t < queries) & (t < T), (s < keys) & (s < S)
        score = score_tile(
            q_ptr + n * q_batch, t, q_stride, t_real, k_ptr + n * k_batch, s, k_stride, s_real, v_ptr, table, width,
            DP, BT, BS, BD, LEVELS, EXACT,
        )  # fmt: skip
        may = allowed(t, s, t_real, s_real, keep_ptr + n * keep_n, keep_t, keep_s, left, right, shift, HAS_KEEP)
        lse = tl.load(lse_ptr + n * T + t, mask=t_real, other=float("-inf"))
        may &= (lse > float("-inf"))[:, None]
        p = tl.where(may, tl.exp2((score - tl.where(lse > float("-inf"), lse, 0.0)[:, None]) * LOG2E), 0.0)
        dp = tl.zeros([BT, BS], tl.float32)
        for e0 in range(0, E, BE):
            e = e0 + tl.arange(0, BE)
            grad = tl.load(
                grad_ptr + (n * T + t[:, None]) * E + e[None, :], mask=t_real[:, None] & (e < E)[None, :], other=0.0
            )
            value = tl.load(
                value_ptr + n * value_batch + s.to(tl.int64)[:, None] * value_stride + e[None, :],
                mask=s_real[:, None] & (e < E)[None, :], other=0.0,
            )  # fmt: skip
            dp = product(grad.to(value.dtype), tl.trans(value), dp, PRECISE, EXACT)
        delta = tl.load(delta_ptr + n * T + t, mask=t_real, other=0.0)
        ds = p * (dp - delta[:, None])
        tl.store(p_ptr + place, rounded(p, p_ptr.dtype.element_ty, EXACT), mask=inside)
        tl.store(ds_ptr + place, rounded(ds, ds_ptr.dtype.element_ty, EXACT), mask=inside)
    else:
        nothing = tl.zeros([BT, BS], tl.float32)
        tl.store(p_ptr + place, rounded(nothing, p_ptr.dtype.element_ty, EXACT), mask=inside)
        tl.store(ds_ptr + place, rounded(nothing, ds_ptr.dtype.element_ty, EXACT), mask=inside)


@triton.jit(do_not_specialize=["x_first", "y_first", "left", "right", "shift"])
def slopes_kernel(
    x_ptr, y_ptr, v_ptr, table, row_counts, column_counts, ds_ptr, out_ptr, dv_ptr, x_first, y_first, rows, columns,
    width, left, right, shift, x_batch, x_stride, y_batch, y_stride, ds_batch, ds_row, ds_column, out_batch, blocks,
    BR: tl.constexpr, BC: tl.constexpr, BD: tl.constexpr, LEVELS: tl.constexpr, WANT_V: tl.constexpr,
    ADD: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """out[n, r, d] = v_d Σ_c ds[n, r, c] (1 - tanh²(x[n, r, d] + y[n, c, d])); dv_d = Σ ds tanh, a part a program.

    x and y are queries and keys, or keys and queries. x_first and y_first: which of them ds begins with.
    `left` and `right` bound c - (r + shift), both counted from the beginning of ds.
    """
    n = tl.program_id(2).to(tl.int64)
    r0 = tl.program_id(1) * BR
    r, d = r0 + tl.arange(0, BR), tl.program_id(0) * BD + tl.arange(0, BD)
    x_count = tl.minimum(tl.load(row_counts + n).to(tl.int32) - x_first, rows)
    y_count = tl.minimum(tl.load(column_counts + n).to(tl.int32) - y_first, columns)
    x_real = r < x_count
    x = rows_of(x_ptr + n * x_batch, x_first + r, x_stride, d, x_real, width)
    v = tl.load(v_ptr + d, mask=d < width, other=0.0).to(tl.float32)
    slope = tl.zeros([BR, BD], tl.float32)
    value = tl.zeros([BR, BD], tl.float32)
    begin = tl.maximum(r0 + shift - left, 0) // BC * BC
    end = tl.minimum(y_count, r0 + BR + shift + right)
    end = tl.where(r0 < x_count, end, 0)
    ds_ptr += n * ds_batch
    for c0 in range(begin, end, BC):
        c = c0 + tl.arange(0, BC)
        y_real = c < y_count
        inside = x_real[:, None] & y_real[None, :]
        cells = ds_ptr + r.to(tl.int64)[:, None] * ds_row + c.to(tl.int64)[None, :] * ds_column
        if LEVELS > 0:
            w = tl.load(cells, mask=inside, other=0.0)
            y = rows_of(y_ptr + n * y_batch, y_first + c, y_stride, d, y_real, width)
            near, y, reach = bounded(x, y)
            level = level_of(table, reach, LEVELS)
            if level < LEVELS:
                slope, value = slope_chunk(slope, value, near, y, w, table, level, BR, BC, BD, WANT_V, EXACT)
            else:
                slope, value = plain_slopes(
                    slope, value, x, x_real, y_ptr + n * y_batch, y_first, c0, y_stride, y_count, d, width, ds_ptr, r,
                    ds_row, ds_column, BC, WANT_V, EXACT,
                )  # fmt: skip
        else:
            slope, value = plain_slopes(
                slope, value, x, x_real, y_ptr + n * y_batch, y_first, c0, y_stride, y_count, d, width, ds_ptr, r,
                ds_row, ds_column, BC, WANT_V, EXACT,
            )  # fmt: skip
    here = out_ptr + n * out_batch + (x_first + r).to(tl.int64)[:, None] * width + d[None, :]
    inside = (r < rows)[:, None] & (d < width)[None, :]
    slope = slope * v[None, :]
    if ADD:
        slope += tl.load(here, mask=inside, other=0.0).to(tl.float32)
    tl.store(here, rounded(slope, out_ptr.dtype.element_ty, EXACT), mask=inside)
    if WANT_V:
        part = dv_ptr + (n * blocks + x_first // BR + tl.program_id(1)) * width + d
        tl.store(part, tl.sum(value, 0), mask=d < width)


@triton.jit
def plain_slopes(
    slope, value, x, x_real, y_ptr, y_first, c0, y_stride, y_count, d, width, ds_ptr, r, ds_row, ds_column,
    BC: tl.constexpr, WANT_V: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """The same over BC columns, each tanh by itself."""
    for c in range(c0, tl.minimum(c0 + BC, y_count)):
        y = tl.load(y_ptr + (y_first + c).to(tl.int64) * y_stride + d, mask=d < width, other=0.0).to(tl.float32)
        w = tl.load(ds_ptr + r.to(tl.int64) * ds_row + c * ds_column, mask=x_real, other=0.0).to(tl.float32)
        turned = hyperbolic(x + y[None, :], EXACT)
        slope += w[:, None] * (1.0 - turned * turned)
        if WANT_V:
            value += w[:, None] * turned
    return slope, value


@triton.jit(do_not_specialize=["left", "right", "shift"])
def few_kernel(
    q_ptr, k_ptr, v_ptr, query_counts, key_counts, keep_ptr, value_ptr, out_ptr, lse_ptr, T, S, width, E, left, right,
    shift, q_batch, q_stride, k_batch, k_stride, keep_n, keep_t, keep_s, value_batch, value_stride, BS: tl.constexpr,
    DP: tl.constexpr, EP: tl.constexpr, HAS_KEEP: tl.constexpr, PRECISE: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """One query a program, as a decoder's step has it: keys and values are read once, and nothing else."""
    n, t = tl.program_id(0).to(tl.int64), tl.program_id(1)
    d, e = tl.arange(0, DP), tl.arange(0, EP)
    queries, keys = tl.load(query_counts + n).to(tl.int32), tl.load(key_counts + n).to(tl.int32)
    q = tl.load(q_ptr + n * q_batch + t * q_stride + d, mask=d < tl.where(t < queries, width, 0), other=0.0).to(
        tl.float32
    )
    v = tl.load(v_ptr + d, mask=d < width, other=0.0).to(tl.float32)
    largest, weight = float("-inf"), 0.0
    mixed = tl.zeros([EP], tl.float32)
    begin = tl.maximum(t + shift - left, 0) // BS * BS
    end = tl.minimum(tl.minimum(keys, S), t + shift + right + 1)
    end = tl.where(t < queries, end, 0)
    for s0 in range(begin, end, BS):
        s = s0 + tl.arange(0, BS)
        real = (s < keys) & (s < S)
        may = real & (s - (t + shift) >= -left) & (s - (t + shift) <= right)
        if HAS_KEEP:
            may &= tl.load(keep_ptr + n * keep_n + t * keep_t + s.to(tl.int64) * keep_s, mask=may, other=0) != 0
        k = rows_of(k_ptr + n * k_batch, s, k_stride, d, may, width)
        value = rows_of(value_ptr + n * value_batch, s, value_stride, e, may, E)
        turned = hyperbolic(q[None, :] + k, EXACT) if PRECISE else rough(q[None, :] + k, EXACT)
        score = tl.where(may, tl.sum(turned * v[None, :], 1), float("-inf")) * LOG2E
        new = tl.maximum(largest, tl.max(score, 0))
        base = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(score - base)
        fade = tl.exp2(largest - base)
        weight = weight * fade + tl.sum(p, 0)
        mixed = mixed * fade + tl.sum(p[:, None] * value, 0)
        largest = new
    seen = weight > 0
    mixed = tl.where(seen, mixed / tl.where(seen, weight, 1.0), 0.0)
    tl.store(out_ptr + (n * T + t) * E + e, rounded(mixed, out_ptr.dtype.element_ty, EXACT), mask=e < E)
    lse = tl.where(seen, largest / LOG2E + tl.log(tl.where(seen, weight, 1.0)), float("-inf"))
    tl.store(lse_ptr + n * T + t, lse)


@triton.jit(do_not_specialize=["left", "right", "shift"])
def few_back_kernel(
    q_ptr, k_ptr, v_ptr, query_counts, key_counts, keep_ptr, value_ptr, lse_ptr, delta_ptr, grad_ptr, dq_ptr, dk_ptr,
    dvalue_ptr, dv_ptr, S, width, E, left, right, shift, q_batch, k_batch, k_stride, keep_n, keep_s, value_batch,
    value_stride, BS: tl.constexpr, DP: tl.constexpr, EP: tl.constexpr, HAS_KEEP: tl.constexpr,
    PRECISE: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """All gradients of a single query a sequence."""
    n = tl.program_id(0).to(tl.int64)
    d, e = tl.arange(0, DP), tl.arange(0, EP)
    queries, keys = tl.load(query_counts + n).to(tl.int32), tl.load(key_counts + n).to(tl.int32)
    keys = tl.where(queries > 0, keys, 0)
    q = tl.load(q_ptr + n * q_batch + d, mask=d < tl.where(queries > 0, width, 0), other=0.0).to(tl.float32)
    v = tl.load(v_ptr + d, mask=d < width, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + n * E + e, mask=e < E, other=0.0).to(tl.float32)
    lse, delta = tl.load(lse_ptr + n), tl.load(delta_ptr + n)
    lse = tl.where(lse > float("-inf"), lse, float("inf"))
    dq, dv = tl.zeros([DP], tl.float32), tl.zeros([DP], tl.float32)
    for s0 in range(0, S, BS):
        s = s0 + tl.arange(0, BS)
        may = (s < keys) & (s < S) & (s - shift >= -left) & (s - shift <= right)
        if HAS_KEEP:
            may &= tl.load(keep_ptr + n * keep_n + s.to(tl.int64) * keep_s, mask=may, other=0) != 0
        k = rows_of(k_ptr + n * k_batch, s, k_stride, d, may, width)
        value = rows_of(value_ptr + n * value_batch, s, value_stride, e, may, E)
        turned = hyperbolic(q[None, :] + k, EXACT) if PRECISE else rough(q[None, :] + k, EXACT)
        score = tl.where(may, tl.sum(turned * v[None, :], 1), float("-inf"))
        p = tl.exp2((score - lse) * LOG2E)
        ds = p * (tl.sum(value * grad[None, :], 1) - delta)
        slope = ds[:, None] * (1.0 - turned * turned) * v[None, :]
        dq += tl.sum(slope, 0)
        dv += tl.sum(ds[:, None] * turned, 0)
        place = n * S + s.to(tl.int64)
        tl.store(
            dk_ptr + place[:, None] * width + d[None, :], rounded(slope, dk_ptr.dtype.element_ty, EXACT),
            mask=(s < S)[:, None] & (d < width)[None, :],
        )  # fmt: skip
        tl.store(
            dvalue_ptr + place[:, None] * E + e[None, :],
            rounded(p[:, None] * grad[None, :], dvalue_ptr.dtype.element_ty, EXACT),
            mask=(s < S)[:, None] & (e < E)[None, :],
        )  # fmt: skip
    tl.store(dq_ptr + n * width + d, rounded(dq, dq_ptr.dtype.element_ty, EXACT), mask=d < width)
    tl.store(dv_ptr + n * width + d, dv, mask=d < width)
