"""Attention over short rows in Triton: one program sees all keys of a head, and nothing but the result is written.

q [B, T, H, D], k [B, S, G, D], value [B, S, G, E], out [B, T, H, E], lse [B, H, T]: logarithms of the sums of
exponentials. Query head h reads key head h / (H / G). A pair may be attended where the query and the key are real
(t < query_counts[b], s < key_counts[b]), where s <= t + shift, and where the table `keep` holds (its strides are 0
along axes it does not have). Exponentials are those of two, log₂ e being part of the scale.
"""

# mypy: ignore-errors
import triton
import triton.language as tl

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def product(a, b, EXACT: tl.constexpr):
    """a b, added up in float32; what is float32 already is not rounded. An interpreter has no bfloat16 products."""
    if EXACT:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def tile(ptr, row, row_stride, real, width, WP: tl.constexpr):
    """[rows, WP]: rows of numbers that stand side by side, 0 where a row is not real."""
    w = tl.arange(0, WP)
    return tl.load(ptr + row[:, None] * row_stride + w[None, :], mask=real[:, None] & (w < width)[None, :], other=0.0)


@triton.jit
def allowed(t, s, t_real, s_real, keep_ptr, keep_t, keep_s, shift, HAS_KEEP: tl.constexpr):
    """[BT, BS]: which pairs may be attended."""
    may = t_real[:, None] & s_real[None, :] & (s[None, :] <= t[:, None] + shift)
    if HAS_KEEP:
        may &= tl.load(keep_ptr + t[:, None] * keep_t + s[None, :] * keep_s, mask=may, other=0) != 0
    return may


@triton.jit
def counted(counts, b, size, HAS: tl.constexpr):
    """How many places of sequence b are real."""
    if HAS:
        return tl.minimum(tl.load(counts + b).to(tl.int32), size)
    return size


@triton.jit
def real_ones(t, queries, keys, shift):
    """Queries that see some key, and how many keys some query sees: nothing else is read, whatever stands in it."""
    seen = tl.maximum(tl.where(queries > 0, tl.minimum(keys, queries + shift), 0), 0)
    return (t < tl.where(keys > 0, queries, 0)) & (t + shift >= 0), seen


@triton.jit(do_not_specialize=["T", "S", "shift"])
def forward_kernel(
    q_ptr, k_ptr, value_ptr, out_ptr, lse_ptr, query_counts, key_counts, keep_ptr, T, S, H, G, D, E, shift, scale,
    q_b, q_t, q_h, k_b, k_s, k_g, value_b, value_s, value_g, keep_b, keep_h, keep_t, keep_s, HAS_QUERIES: tl.constexpr,
    HAS_KEYS: tl.constexpr, HAS_KEEP: tl.constexpr, WANT_LSE: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr,
    DP: tl.constexpr, EP: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """BT queries of one head; keys BS at a time."""
    b, h = (tl.program_id(0) // H).to(tl.int64), tl.program_id(0) % H
    g = h // (H // G)
    queries, keys = counted(query_counts, b, T, HAS_QUERIES), counted(key_counts, b, S, HAS_KEYS)
    t = tl.program_id(1) * BT + tl.arange(0, BT)
    t_real, seen = real_ones(t, queries, keys, shift)
    q = tile(q_ptr + b * q_b + h * q_h, t, q_t, t_real, D, DP)
    keep = keep_ptr + b * keep_b + h * keep_h
    largest = tl.full([BT], float("-inf"), tl.float32)
    total = tl.zeros([BT], tl.float32)
    mixed = tl.zeros([BT, EP], tl.float32)
    last = tl.minimum(seen, tl.program_id(1) * BT + BT + shift)
    for s0 in range(0, last, BS):
        s = s0 + tl.arange(0, BS)
        s_real = s < seen
        k = tile(k_ptr + b * k_b + g * k_g, s, k_s, s_real, D, DP)
        value = tile(value_ptr + b * value_b + g * value_g, s, value_s, s_real, E, EP)
        score = product(q, tl.trans(k), EXACT) * scale
        may = allowed(t, s, t_real, s_real, keep, keep_t, keep_s, shift, HAS_KEEP)
        score = tl.where(may, score, float("-inf"))
        higher = tl.maximum(largest, tl.max(score, 1))
        from_here = tl.where(higher == float("-inf"), 0.0, higher)
        shrunk = tl.exp2(largest - from_here)
        weight = tl.exp2(score - from_here[:, None])
        total = total * shrunk + tl.sum(weight, 1)
        mixed = mixed * shrunk[:, None] + product(weight.to(value.dtype), value, EXACT)
        largest = higher
    some = total > 0
    mixed = mixed / tl.where(some, total, 1.0)[:, None]
    e = tl.arange(0, EP)
    inside = (t < T)[:, None] & (e < E)[None, :]
    here = out_ptr + ((b * T + t[:, None]) * H + h) * E + e[None, :]
    tl.store(here, mixed.to(out_ptr.dtype.element_ty), mask=inside)
    if WANT_LSE:
        logs = (largest + tl.log2(tl.where(some, total, 1.0))) * LN2
        tl.store(lse_ptr + (b * H + h) * T + t, tl.where(some, logs, float("-inf")), mask=t < T)


@triton.jit(do_not_specialize=["T", "S", "shift"])
def backward_kernel(
    q_ptr, k_ptr, value_ptr, lse_ptr, grad_ptr, dq_ptr, dk_ptr, dvalue_ptr, q_sums, k_sums, value_sums, query_counts,
    key_counts, keep_ptr, T, S, H, G, D, E, shift, scale, q_b, q_t, q_h, k_b, k_s, k_g, value_b, value_s, value_g,
    grad_b, grad_t, grad_h, dq_b, dq_t, dq_h, dk_b, dk_s, dk_g, dvalue_b, dvalue_s, dvalue_g, sums_b, keep_b, keep_h,
    keep_t, keep_s,
    HAS_QUERIES: tl.constexpr, HAS_KEYS: tl.constexpr, HAS_KEEP: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr,
    DP: tl.constexpr, EP: tl.constexpr, SUMS: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """All queries (at most BT) and keys (at most BS) of one key head, and of the query heads that read it in turn.

    p = exp(score - lse)        dvalue = pᵀ do        dp = do valueᵀ        ds = p (dp - Σ_s p dp)
    dq = scale ds k             dk = scale dsᵀ q

    SUMS: and what each of the three adds up to in this sequence, head beside head.
    """
    b, g = (tl.program_id(0) // G).to(tl.int64), tl.program_id(0) % G
    queries, keys = counted(query_counts, b, T, HAS_QUERIES), counted(key_counts, b, S, HAS_KEYS)
    t, s = tl.arange(0, BT), tl.arange(0, BS)
    t_real, seen = real_ones(t, queries, keys, shift)
    s_real = s < seen
    d, e = tl.arange(0, DP), tl.arange(0, EP)
    k = tile(k_ptr + b * k_b + g * k_g, s, k_s, s_real, D, DP)
    value = tile(value_ptr + b * value_b + g * value_g, s, value_s, s_real, E, EP)
    dk, dvalue = tl.zeros([BS, DP], tl.float32), tl.zeros([BS, EP], tl.float32)
    for number in range(H // G):
        h = g * (H // G) + number
        q = tile(q_ptr + b * q_b + h * q_h, t, q_t, t_real, D, DP)
        grad = tile(grad_ptr + b * grad_b + h * grad_h, t, grad_t, t_real, E, EP)
        lse = tl.load(lse_ptr + (b * H + h) * T + t, mask=t_real, other=float("-inf"))
        score = product(q, tl.trans(k), EXACT) * (scale * LOG2E)
        keep = keep_ptr + b * keep_b + h * keep_h
        may = allowed(t, s, t_real & (lse > float("-inf")), s_real, keep, keep_t, keep_s, shift, HAS_KEEP)
        weight = tl.where(may, tl.exp2(score - tl.where(lse > float("-inf"), lse, 0.0)[:, None] * LOG2E), 0.0)
        dvalue += product(tl.trans(weight.to(grad.dtype)), grad, EXACT)
        further = product(grad, tl.trans(value), EXACT)
        slope = (weight * (further - tl.sum(weight * further, 1)[:, None]) * scale).to(q.dtype)
        dq = product(slope, k, EXACT)
        here = dq_ptr + b * dq_b + t[:, None] * dq_t + h * dq_h + d[None, :]
        tl.store(here, dq.to(dq_ptr.dtype.element_ty), mask=(t < T)[:, None] & (d < D)[None, :])
        if SUMS:
            tl.store(q_sums + b * sums_b + h * D + d, tl.sum(dq, 0), mask=d < D)
        dk += product(tl.trans(slope), q, EXACT)
    within = (s < S)[:, None]
    there = dk_ptr + b * dk_b + s[:, None] * dk_s + g * dk_g + d[None, :]
    tl.store(there, dk.to(dk_ptr.dtype.element_ty), mask=within & (d < D)[None, :])
    there = dvalue_ptr + b * dvalue_b + s[:, None] * dvalue_s + g * dvalue_g + e[None, :]
    tl.store(there, dvalue.to(dvalue_ptr.dtype.element_ty), mask=within & (e < E)[None, :])
    if SUMS:
        tl.store(k_sums + b * sums_b + g * D + d, tl.sum(dk, 0), mask=d < D)
        tl.store(value_sums + b * sums_b + g * E + e, tl.sum(dvalue, 0), mask=e < E)
