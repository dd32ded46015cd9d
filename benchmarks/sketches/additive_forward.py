"""A sketch, not part of the package: how fast can additive scores be on one GPU, and which tiles get there?

    python benchmarks/sketches/additive_forward.py

prints milliseconds and the share of the hardware's tanh rate for several tiles, scores alone and with mixing.
What it taught stands in docs/performance.md. It has no guard against overflow and no masks.

    tanh(q + k) = 1 - 2 / (1 + e^2q e^2k)     Σ_d v_d tanh = Σ v - 2 max|v| Σ_d 1 / (p_d + a_d b_d)
    a = e^2q / v~    b = e^2k    p = 1 / v~    v~ = v / max|v|

Four terms share one reciprocal: num / den collects 1/y0 + 1/y1 + ... by num = num y + den, den = den y.

Shape suffixes of a tile: R registers, W warps, L lanes, each for the rows T and the columns S.
"""

import torch
import triton
import triton.language as tl
from triton.testing import do_bench

TANH_A_SECOND = 4.13e12  # measured on an H200


@triton.jit
def reciprocal(x):
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def exponentials(
    x_ptr, scale_ptr, out_ptr, n_rows, width, padded, SCALED: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr
):
    """out[b, d // 4, n, d % 4] = e^(2 x[b, n, d]), times scale[d]: four dimensions lie side by side for one load."""
    batch = tl.program_id(2)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    inside = (n[:, None] < n_rows) & (d[None, :] < width)
    x = tl.load(x_ptr + (batch * n_rows + n[:, None]) * width + d[None, :], mask=inside, other=0.0).to(tl.float32)
    e = tl.exp2(x * 2.8853900817779268)
    if SCALED:
        e = e * tl.load(scale_ptr + d, mask=d < width, other=1.0)[None, :]
    place = (batch * width // 4 + d[None, :] // 4) * padded * 4 + n[:, None] * 4 + d[None, :] % 4
    tl.store(out_ptr + place, e, mask=(d[None, :] < width) & (n[:, None] < padded))


@triton.jit
def four(x):
    """[..., 4] → four tensors, in order."""
    even, odd = tl.split(tl.reshape(x, x.shape[:-1] + [2, 2]))  # noqa: RUF005 - Triton has no unpacking
    x0, x2 = tl.split(even)
    x1, x3 = tl.split(odd)
    return x0, x1, x2, x3


@triton.jit
def sum_of_four(a, b, p):
    y0 = a[0] * b[0] + p[0]
    y1 = a[1] * b[1] + p[1]
    num = y0 + y1
    den = y0 * y1
    y2 = a[2] * b[2] + p[2]
    num = num * y2 + den
    den = den * y2
    y3 = a[3] * b[3] + p[3]
    num = num * y3 + den
    den = den * y3
    return num * reciprocal(den)


@triton.jit
def score_tile(
    a_ptr, b_ptr, p_ptr, t_padded, s_padded, width, TR: tl.constexpr, SR: tl.constexpr, TW: tl.constexpr,
    SW: tl.constexpr, TL: tl.constexpr, SL: tl.constexpr, STAGES: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    # Register axes first, then warps, then lanes: Triton's default layout then gives each thread a TR × SR tile.
    tr = tl.arange(0, TR)[:, None, None, None, None, None, None]
    sr = tl.arange(0, SR)[None, :, None, None, None, None, None]
    tw = tl.arange(0, TW)[None, None, :, None, None, None, None]
    sw = tl.arange(0, SW)[None, None, None, :, None, None, None]
    t_lane = tl.arange(0, TL)[None, None, None, None, :, None, None]
    s_lane = tl.arange(0, SL)[None, None, None, None, None, :, None]
    within = tl.arange(0, 4)[None, None, None, None, None, None, :]
    a_place = ((tr * TW + tw) * TL + t_lane) * 4 + within
    b_place = ((sr * SW + sw) * SL + s_lane) * 4 + within
    total = tl.zeros([TR, SR, TW, SW, TL, SL], tl.float32)
    for chunk in tl.range(0, width // (4 * U), num_stages=STAGES):
        for u in tl.static_range(U):
            d = chunk * U + u
            a = four(tl.load(a_ptr + d * t_padded * 4 + a_place))
            p = four(tl.load(p_ptr + d * 4 + within))
            b = four(tl.load(b_ptr + d * s_padded * 4 + b_place))
            total += sum_of_four(a, b, p)
    return total


@triton.jit
def forward(
    a_ptr, b_ptr, p_ptr, v_ptr, o_ptr, scratch_ptr, T, S, t_padded, s_padded, width, E, v_sum, v_max,
    TR: tl.constexpr, SR: tl.constexpr, TW: tl.constexpr, SW: tl.constexpr, TL: tl.constexpr, SL: tl.constexpr,
    STAGES: tl.constexpr, U: tl.constexpr, BE: tl.constexpr, BS2: tl.constexpr, MIX: tl.constexpr,
):  # fmt: skip
    BT: tl.constexpr = TR * TW * TL
    BS: tl.constexpr = SR * SW * SL
    batch = tl.program_id(1)
    t0 = tl.program_id(0) * BT
    scratch = scratch_ptr + (batch * tl.num_programs(0) + tl.program_id(0)) * BT * s_padded
    row = (
        tl.arange(0, TR)[:, None, None, None, None, None] * TW + tl.arange(0, TW)[None, None, :, None, None, None]
    ) * TL + tl.arange(0, TL)[None, None, None, None, :, None]
    column = (
        tl.arange(0, SR)[None, :, None, None, None, None] * SW + tl.arange(0, SW)[None, None, None, :, None, None]
    ) * SL + tl.arange(0, SL)[None, None, None, None, None, :]
    a_ptr += batch * width * t_padded + t0 * 4
    b_ptr += batch * width * s_padded
    for s0 in range(0, S, BS):
        tile = score_tile(
            a_ptr, b_ptr + s0 * 4, p_ptr, t_padded, s_padded, width, TR, SR, TW, SW, TL, SL, STAGES, U
        )  # fmt: skip
        tl.store(scratch + row * s_padded + column + s0, tile)
    if MIX:
        tl.debug_barrier()
        r = tl.arange(0, BT)
        for e0 in range(0, E, BE):
            e = e0 + tl.arange(0, BE)
            largest = tl.full([BT], float("-inf"), tl.float32)
            weight = tl.zeros([BT], tl.float32)
            mixed = tl.zeros([BT, BE], tl.float32)
            for s0 in range(0, S, BS2):
                s = s0 + tl.arange(0, BS2)
                tile = tl.load(scratch + r[:, None] * s_padded + s[None, :])
                score = (v_sum - 2.0 * tile * v_max) * 1.4426950408889634
                score = tl.where(s[None, :] < S, score, float("-inf"))
                new = tl.maximum(largest, tl.max(score, 1))
                p = tl.exp2(score - new[:, None])
                keep = tl.exp2(largest - new)
                weight = weight * keep + tl.sum(p, 1)
                largest = new
                inside = (s[:, None] < S) & (e[None, :] < E)
                value = tl.load(v_ptr + (batch * S + s[:, None]) * E + e[None, :], mask=inside, other=0.0)
                mixed = mixed * keep[:, None] + tl.dot(p.to(value.dtype), value)
            inside = ((t0 + r)[:, None] < T) & (e[None, :] < E)
            place = (batch * T + (t0 + r)[:, None]) * E + e[None, :]
            tl.store(o_ptr + place, (mixed / weight[:, None]).to(o_ptr.dtype.element_ty), mask=inside)


class Run:
    """Inputs q, k, v [B, N, width] and the vector of the score, brought into the form the kernels read."""

    def __init__(self, q, k, v, vector):
        self.q, self.k, self.v = q, k, v
        (B, T, D), S = q.shape, k.shape[1]
        self.v_max = vector.abs().max().item()
        unit = vector.float() / self.v_max
        unit = torch.where(unit.abs() < 1e-6, torch.where(unit < 0, -1e-6, 1e-6), unit)
        self.p, self.v_sum = (1 / unit).contiguous(), vector.float().sum().item()
        self.t_padded, self.s_padded = triton.cdiv(T, 128) * 128, triton.cdiv(S, 128) * 128
        self.a = torch.empty(B * D * self.t_padded, device=q.device)
        self.b = torch.empty(B * D * self.s_padded, device=q.device)
        self.o = torch.empty(B, T, v.shape[-1], device=q.device, dtype=q.dtype)
        self.scratch = torch.empty(B * self.t_padded * self.s_padded, device=q.device)

    def prepare(self):
        for x, out, padded, scaled in ((self.q, self.a, self.t_padded, True), (self.k, self.b, self.s_padded, False)):
            B, N, D = x.shape
            grid = (triton.cdiv(padded, 32), triton.cdiv(D, 32), B)
            exponentials[grid](x, self.p, out, N, D, padded, scaled, 32, 32)

    def run(self, tile, warps, stages, unroll, mix):
        (B, T, D), (S, E) = self.q.shape, self.v.shape[1:]
        TR, _, TW, _, TL, _ = tile
        return forward[(triton.cdiv(T, TR * TW * TL), B)](
            self.a, self.b, self.p, self.v, self.o, self.scratch, T, S, self.t_padded, self.s_padded, D, E,
            self.v_sum, self.v_max, *tile, stages, unroll, 256, 64, mix, num_warps=warps, num_stages=2 if mix else 1,
        )  # fmt: skip


def truth(q, k, v, vector):
    scores = torch.tanh(q.double()[:, None] + k.double()[None]) @ vector.double()
    return scores.softmax(-1) @ v.double()


def main():
    torch.manual_seed(0)
    B, T, D = 8, 1024, 512
    q, k, v = (torch.randn(B, T, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    vector = (torch.rand(D, device="cuda") * 2 - 1) / D**0.5
    run = Run(q, k, v, vector)
    run.prepare()
    print(f"exponentials: {do_bench(run.prepare, quantiles=[0.5]):.3f} ms")
    tanh_ms = B * T * T * D / TANH_A_SECOND * 1e3
    want = truth(q[0], k[0], v[0], vector)
    for tile, warps in (((8, 4, 2, 4, 4, 8), 8), ((4, 4, 2, 4, 4, 8), 8), ((8, 4, 1, 4, 4, 8), 4)):
        for stages, unroll in ((3, 4), (3, 2), (2, 4)):
            for mix in (False, True):
                kernel = run.run(tile, warps, stages, unroll, mix)
                ms = do_bench(lambda: run.run(tile, warps, stages, unroll, mix), quantiles=[0.5])  # noqa: B023
                error = ((run.o[0].double() - want).norm() / want.norm()).item() if mix else 0
                print(
                    f"{tile} warps {warps} stages {stages} unroll {unroll} {'mixed' if mix else 'scores'}: {ms:.3f} ms,"
                    f" {tanh_ms / ms:.2f} of tanh, {kernel.n_regs} registers, error {error:.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
