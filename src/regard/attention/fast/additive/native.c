/* Scores v . tanh(q + k) of all pairs, and their gradients, without the tensor of T x S x d.

   tanh(q + k) = 1 - 2 / (1 + e^2q e^2k): the exponentials are per row, not per pair, and one reciprocal serves the four
   terms of a group over their common denominator. Rows are padded with zeros (and v with them) to whole groups.

   What may overflow takes another way, decided for each pair by the largest |q| and |k| of its rows: groups of four,
   of two, or e^2(q + k) itself, where the sum is bounded as the separate terms are not. Backward each term has a
   reciprocal of its own. No sum depends on how many threads there are. Plain C, which is C++ as well. */

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(_OPENMP)
#include <omp.h>
#else
#define omp_get_thread_num() 0
#endif

#if defined(__AVX512F__)
#include <immintrin.h>
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define GROUP (4 * LANES) /* dimensions taken together: four terms in each lane */
#define FOUR 10.4f        /* up to this |q| + |k| the product of four terms is a number: (1 + e^2x)^4 < e^84 */
#define TWO 20.8f
#define ONE 42.0f
#ifdef __cplusplus
#define CALLED extern "C"
#else
#define CALLED
#endif
#define INSIDE static inline __attribute__((always_inline))

typedef float V __attribute__((vector_size(4 * LANES)));
typedef float Anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t I __attribute__((vector_size(4 * LANES)));

INSIDE V all(float x) { return x - (V){0}; }
INSIDE V load(const float *p) { return *(const Anywhere *)p; }
INSIDE void store(float *p, V x) { *(Anywhere *)p = x; }
/* What is no number in x stays. */
#if defined(__AVX512F__)
INSIDE V larger(V x, V y) { return (V)_mm512_max_ps((__m512)y, (__m512)x); }
INSIDE V smaller(V x, V y) { return (V)_mm512_min_ps((__m512)y, (__m512)x); }
#else
INSIDE V pick(I where, V x, V y) { return (V)((where & (I)x) | (~where & (I)y)); }
INSIDE V larger(V x, V y) { return pick((I)(y > x), y, x); }
INSIDE V smaller(V x, V y) { return pick((I)(y < x), y, x); }
#endif
INSIDE V bounded(V x, float most) { return smaller(larger(x, all(-most)), all(most)); }

INSIDE V inverse(V x) {
#if defined(__AVX512F__)
  V near = (V)_mm512_rcp14_ps((__m512)x);
  return near * (2.0f - x * near);
#else
  return 1.0f / x;
#endif
}

/* e^x for |x| <= 87: 2^n times a polynomial of what is left */
INSIDE V power(V x) {
  V n = x * 1.44269504f + 12582912.0f; /* adding 1.5 * 2^23 rounds, and leaves n in the lowest bits */
  I scale = ((I)n << 23) + (127 << 23);
  n -= 12582912.0f;
  V f = x - n * 0.693145752f;
  f = f - n * 1.42860677e-6f;
  V p = f * (1.0f / 5040) + 1.0f / 720;
  p = p * f + 1.0f / 120;
  p = p * f + 1.0f / 24;
  p = p * f + 1.0f / 6;
  p = p * f + 0.5f;
  p = p * f + 1.0f;
  p = p * f + 1.0f;
  return p * (V)scale;
}

INSIDE float sum(V x) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)x);
#else
  float total = 0;
  for (int i = 0; i < LANES; i++) total += x[i];
  return total;
#endif
}

/* A vector of a row that has `left` numbers from here on, and how one is put back */
INSIDE V some_of(const float *p, long left) {
  if (left >= LANES) return load(p);
  V x = {0};
  if (left > 0) memcpy(&x, p, 4 * left);
  return x;
}
INSIDE void put(float *p, V x, long left) {
  if (left >= LANES) store(p, x);
  else if (left > 0) memcpy(p, &x, 4 * left);
}

/* e^2x of a row, and its largest |x| */
static void powers(const float *x, float *out, float *most, long width, long padded) {
  V top = {0};
  for (long i = 0; i < padded; i += LANES) {
    V own = some_of(x + i, width - i);
    top = larger(top, larger(own, -own));
    own = bounded(own, ONE);
    store(out + i, power(own + own));
  }
  float largest = 0;
  for (int i = 0; i < LANES; i++) largest = top[i] > largest ? top[i] : largest;
  *most = largest;
}

/* The sum of v / y over the four terms y of each lane */
INSIDE V fractions(const V *y, const float *v, int together) {
  V v0 = load(v), v1 = load(v + LANES), v2 = load(v + 2 * LANES), v3 = load(v + 3 * LANES);
  V above = v0 * y[1] + v1 * y[0], below = y[0] * y[1], above2 = v2 * y[3] + v3 * y[2], below2 = y[2] * y[3];
  if (together == 4) return (above * below2 + above2 * below) * inverse(below * below2);
  return above * inverse(below) + above2 * inverse(below2);
}

/* The scores of one query and `keys` keys from their exponentials. `half` holds half the sum of each four v: taken off
   at once, the sums stay as small as those of tanh are. */
INSIDE void by_powers(const float *a, const float *b, long step, const float *v, const float *half, long padded,
                      float *out, int together, int keys) {
  V total[4];
  for (int s = 0; s < keys; s++) total[s] = all(0);
  for (long i = 0; i < padded; i += GROUP) {
    V own[4], off = load(half + i / 4);
    for (int j = 0; j < 4; j++) own[j] = load(a + i + j * LANES);
    for (int s = 0; s < keys; s++) {
      V y[4];
      for (int j = 0; j < 4; j++) y[j] = own[j] * load(b + s * step + i + j * LANES) + 1.0f;
      total[s] += fractions(y, v + i, together) - off;
    }
  }
  for (int s = 0; s < keys; s++) out[s] = -2.0f * sum(total[s]);
}

/* The same for one pair from q and k themselves */
static float by_itself(const float *q, const float *k, const float *v, const float *half, long width, long padded) {
  V total = {0};
  for (long i = 0; i < padded; i += GROUP) {
    V y[4];
    for (int j = 0; j < 4; j++) {
      long at = i + j * LANES;
      V x = bounded(some_of(q + at, width - at) + some_of(k + at, width - at), FOUR);
      y[j] = power(x + x) + 1.0f;
    }
    total += fractions(y, v + i, 4) - load(half + i / 4);
  }
  return -2.0f * sum(total);
}

/* What both passes share: the sizes, v, and one sequence at a time with the exponentials of its rows */
typedef struct {
  long N, T, S, D, padded, step;
  int alone; /* so few pairs that exponentials of rows would not pay */
  const float *q, *k;
  float *v, *half, scale, *a, *b, *largest_q, *largest_k;
} Work;

static long padded_to(long D) { return (D + GROUP - 1) / GROUP * GROUP; }
static int is_alone(long T, long S) { return T == 1 || S == 1; }
/* With many sequences a thread has one to itself, in its own cache; else all threads work at one. */
static int is_apart(long N, int threads) { return N >= 2 * threads; }
/* Rows a power of two apart would share their cache lines. */
static long of_rows(long T, long S, long padded) { return is_alone(T, S) ? 0 : (T + S) * (padded + LANES + 1); }

/* How many floats of scratch a call wants */
CALLED long scratch(long N, long T, long S, long D, int backward, int threads) {
  long padded = padded_to(D), each = of_rows(T, S, padded) + (backward ? S * GROUP : 0);
  return 2 * padded + threads * each + (backward ? N * padded : 0);
}

static Work begin(const float *v, float *room, const long *sizes) {
  Work w;
  w.N = sizes[0], w.T = sizes[1], w.S = sizes[2], w.D = sizes[3];
  w.padded = padded_to(w.D), w.step = w.padded + LANES, w.alone = is_alone(w.T, w.S);
  w.v = room, w.half = w.v + w.padded;
  float top = 0;
  int exponent = 0;
  for (long i = 0; i < w.D; i++) top = fabsf(v[i]) > top ? fabsf(v[i]) : top;
  if (top > 0 && top <= 1e38f) frexpf(top, &exponent); /* v is brought to 1: no product of four with it is too large */
  w.scale = ldexpf(1, exponent > 120 ? 120 : exponent < -120 ? -120 : exponent);
  for (long i = 0; i < w.padded; i++) w.v[i] = i < w.D ? v[i] / w.scale : 0;
  for (long i = 0; i < w.padded; i += GROUP)
    for (int j = 0; j < LANES; j++) {
      const float *four = w.v + i + j;
      w.half[i / 4 + j] = ((four[0] + four[LANES]) + (four[2 * LANES] + four[3 * LANES])) / 2;
    }
  return w;
}

/* The same work at sequence n, its rows in this room */
INSIDE Work at_sequence(const Work *all, const float *q, const float *k, float *room, long n) {
  Work w = *all;
  w.q = q + n * w.T * w.D, w.k = k + n * w.S * w.D;
  w.a = room, w.b = w.a + (w.alone ? 0 : w.T * w.step), w.largest_q = w.b + (w.alone ? 0 : w.S * w.step);
  w.largest_k = w.largest_q + (w.alone ? 0 : w.T);
  return w;
}

static void prepare(const Work *w, long row) {
  if (row < w->T) powers(w->q + row * w->D, w->a + row * w->step, w->largest_q + row, w->D, w->padded);
  else {
    row -= w->T;
    powers(w->k + row * w->D, w->b + row * w->step, w->largest_k + row, w->D, w->padded);
  }
}

static void score(const Work *w, long query, long key, float *out, int keys) {
  if (w->alone) {
    for (int s = 0; s < keys; s++)
      out[s] = by_itself(w->q + query * w->D, w->k + (key + s) * w->D, w->v, w->half, w->D, w->padded);
    return;
  }
  const float *a = w->a + query * w->step, *b = w->b + key * w->step;
  float far = w->largest_k[key];
  for (int s = 1; s < keys; s++) far = w->largest_k[key + s] > far ? w->largest_k[key + s] : far;
  far += w->largest_q[query];
  if (far <= FOUR && keys == 4) by_powers(a, b, w->step, w->v, w->half, w->padded, out, 4, 4);
  else if (far <= TWO && keys == 4) by_powers(a, b, w->step, w->v, w->half, w->padded, out, 2, 4);
  else
    for (int s = 0; s < keys; s++) {
      if (far <= TWO) by_powers(a, b + s * w->step, 0, w->v, w->half, w->padded, out + s, 2, 1);
      else out[s] = by_itself(w->q + query * w->D, w->k + (key + s) * w->D, w->v, w->half, w->D, w->padded);
    }
}

/* Four queries of a sequence with all its keys */
static void four_queries(const Work *w, long first, const uint8_t *keep, const long *strides, float *out) {
  long last = first + 4 < w->T ? first + 4 : w->T;
  for (long s = 0; s < w->S; s += 4)
    for (long t = first; t < last; t++) {
      int keys = (int)(w->S - s < 4 ? w->S - s : 4), kept = keep == 0;
      float *own = out + t * w->S + s;
      for (int j = 0; !kept && j < keys; j++) kept = keep[t * strides[1] + (s + j) * strides[2]];
      if (!kept) memset(own, 0, 4 * keys);
      else {
        score(w, t, s, own, keys);
        for (int j = 0; j < keys; j++) own[j] *= w->scale;
      }
    }
}

/* out [N, T, S]. `keep`: bytes for pairs, by strides over n, t and s; where four neighbours are not kept 0 is written. */
CALLED void forward(const float *q, const float *k, const float *v, const uint8_t *keep, const long *strides,
                    float *out, float *room, const long *sizes, int threads) {
  Work all = begin(v, room, sizes);
  int apart = is_apart(all.N, threads);
  long rows = all.alone ? 0 : all.T + all.S, each = of_rows(all.T, all.S, all.padded);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    float *own = room + 2 * all.padded + (apart ? omp_get_thread_num() * each : 0);
    if (apart) {
#pragma omp for schedule(dynamic)
      for (long n = 0; n < all.N; n++) {
        Work w = at_sequence(&all, q, k, own, n);
        for (long i = 0; i < rows; i++) prepare(&w, i);
        for (long t = 0; t < w.T; t += 4)
          four_queries(&w, t, keep == 0 ? 0 : keep + n * strides[0], strides, out + n * w.T * w.S);
      }
    } else {
      for (long n = 0; n < all.N; n++) {
        Work w = at_sequence(&all, q, k, own, n);
#pragma omp for schedule(static)
        for (long i = 0; i < rows; i++) prepare(&w, i);
#pragma omp for schedule(dynamic)
        for (long t = 0; t < w.T; t += 4)
          four_queries(&w, t, keep == 0 ? 0 : keep + n * strides[0], strides, out + n * w.T * w.S);
      }
    }
  }
}

/* e^2(q + k), from the rows' powers or by itself */
INSIDE V together(V a, V b, const float *q, const float *k, long left, int apart) {
  if (!apart) return a * b;
  V x = bounded(some_of(q, left) + some_of(k, left), ONE);
  return power(x + x);
}

/* One key's part in the gradients of one query, or of two, over one group of dimensions. With x = e^2(q + k) and
   r = 1 / (1 + x): tanh = x r - r, and a quarter of 1 - tanh^2 is x r r, as exact near 0 as near 1. */
INSIDE void pair(const V *a, V *d, V *dv, float *dk, const float *b, const float *const *q, const float *k,
                 const float *e, long left, int apart, int queries) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    long at = j * LANES;
    V own = load(dk + at), key = apart ? all(0) : load(b + at);
#pragma GCC unroll 2
    for (int i = 0; i < queries; i++) {
      V x = together(a[4 * i + j], key, q[i] + at, k + at, left - at, apart), r = inverse(x + 1.0f), l = x * r;
      dv[j] += e[i] * (l - r);
      l *= r;
      d[4 * i + j] += e[i] * l;
      own += e[i] * l;
    }
    store(dk + at, own);
  }
}

/* One or two queries with all keys */
static void queries_with_keys(const Work *w, long query, long c, const float *grad, float *dq, float *dk, V *dv,
                              const V *four, int apart, int queries) {
  V a[8], d[8];
  const float *q[2] = {w->q + query * w->D + c, w->q + (query + queries - 1) * w->D + c};
  float most = 0;
  long left = w->D - c;
  for (int i = 0; i < 4 * queries; i++) {
    a[i] = apart ? all(0) : load(w->a + (query + i / 4) * w->step + c + i % 4 * LANES);
    d[i] = all(0);
  }
  for (int i = 0; i < queries && !apart; i++)
    most = w->largest_q[query + i] > most ? w->largest_q[query + i] : most;
  for (long s = 0; s < w->S; s++) {
    float e[2] = {grad[query * w->S + s], queries > 1 ? grad[(query + 1) * w->S + s] : 0};
    if (e[0] == 0 && e[1] == 0) continue; /* masked */
    const float *k = w->k + s * w->D + c, *b = w->b + s * w->step + c;
    if (apart || !(most + w->largest_k[s] <= ONE)) pair(a, d, dv, dk + s * GROUP, b, q, k, e, left, 1, queries);
    else pair(a, d, dv, dk + s * GROUP, b, q, k, e, left, 0, queries);
  }
  for (int i = 0; i < 4 * queries; i++) {
    long at = i % 4 * LANES;
    put(dq + (query + i / 4) * w->D + c + at, w->scale * four[i % 4] * d[i], left - at);
  }
}

/* Dimensions from c on of a sequence: nothing here is shared with another group, so that each may have its thread. */
static void slopes(const Work *w, long c, const float *grad, float *dq, float *dk, float *out_k, float *out_v) {
  V dv[4], four[4];
  long left = w->D - c;
  for (int j = 0; j < 4; j++) dv[j] = all(0), four[j] = 4.0f * load(w->v + c + j * LANES);
  memset(dk, 0, 4 * w->S * GROUP);
  for (long t = 0; t < w->T; t += 2) {
    if (w->alone && t + 1 == w->T) queries_with_keys(w, t, c, grad, dq, dk, dv, four, 1, 1);
    else if (w->alone) queries_with_keys(w, t, c, grad, dq, dk, dv, four, 1, 2);
    else if (t + 1 == w->T) queries_with_keys(w, t, c, grad, dq, dk, dv, four, 0, 1);
    else queries_with_keys(w, t, c, grad, dq, dk, dv, four, 0, 2);
  }
  for (long s = 0; s < w->S; s++)
    for (int j = 0; j < 4; j++) {
      V own = w->scale * four[j] * load(dk + s * GROUP + j * LANES);
      put(out_k + s * w->D + c + j * LANES, own, left - j * LANES);
    }
  for (int j = 0; j < 4; j++) store(out_v + c + j * LANES, dv[j]);
}

/* From the gradient of the scores [N, T, S] those of q, k and v */
CALLED void backward(const float *q, const float *k, const float *v, const float *grad, float *dq, float *dk, float *dv,
                     float *room, const long *sizes, int threads) {
  Work all = begin(v, room, sizes);
  int apart = is_apart(all.N, threads);
  long rows = all.alone ? 0 : all.T + all.S, each = of_rows(all.T, all.S, all.padded), keys = all.S * GROUP;
  float *sums = room + 2 * all.padded, *rest = sums + all.N * all.padded;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    float *dk_room = rest + omp_get_thread_num() * keys;
    float *own = rest + threads * keys + (apart ? omp_get_thread_num() * each : 0);
    if (apart) {
#pragma omp for schedule(dynamic)
      for (long n = 0; n < all.N; n++) {
        Work w = at_sequence(&all, q, k, own, n);
        for (long i = 0; i < rows; i++) prepare(&w, i);
        for (long c = 0; c < w.padded; c += GROUP)
          slopes(&w, c, grad + n * w.T * w.S, dq + n * w.T * w.D, dk_room, dk + n * w.S * w.D, sums + n * w.padded);
      }
    } else {
      for (long n = 0; n < all.N; n++) {
        Work w = at_sequence(&all, q, k, own, n);
#pragma omp for schedule(static)
        for (long i = 0; i < rows; i++) prepare(&w, i);
#pragma omp for schedule(dynamic)
        for (long c = 0; c < w.padded; c += GROUP)
          slopes(&w, c, grad + n * w.T * w.S, dq + n * w.T * w.D, dk_room, dk + n * w.S * w.D, sums + n * w.padded);
      }
    }
  }
  for (long d = 0; d < all.D; d++) {
    double total = 0;
    for (long n = 0; n < all.N; n++) total += sums[n * all.padded + d];
    dv[d] = (float)total;
  }
}
