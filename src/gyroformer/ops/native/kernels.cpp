// Fused loops of the product-stereographic Transformer, float32, forward and backward.
//
// The mathematics is that of gyroformer/ops/lifted.py and gyroformer/ops/attention.py, where it is explained; the
// derivatives are written out by hand. Tokens are processed LANES at a time, coordinates transposed so that every
// inner loop runs over tokens. Nothing but sums over tokens is kept between the passes: the backward pass computes
// the rest again from its inputs.

#include <cstring>
#include <vector>
#include <omp.h>

#include "scalar.hpp"

namespace {

// set by the build from gyroformer.ops.attention: feature_floor
constexpr float FLOOR = SET_FLOOR, LOWEST = SET_LOWEST;

[[gnu::always_inline]] inline float feature(float x) {
  const float fall = exponential(x < 0.f ? (x > FLOOR ? x : FLOOR) : 0.f);
  return x > 0.f ? x + 1.f : fall;
}

// the slope of the feature map, from its value: 1 above, the value itself below, 0 at the floor
[[gnu::always_inline]] inline float feature_slope(float value) { return value > 1.f ? 1.f : (value > LOWEST ? value : 0.f); }

using Block = std::vector<float>;  // [coordinate][LANES]

// rows of `width` floats, `stride` apart, into columns of LANES; missing rows are zero
[[gnu::always_inline]] inline void load(float *to, const float *from, int64_t stride, int width, int count) {
  if (count < LANES) std::memset(to, 0, sizeof(float) * width * LANES);
  for (int l = 0; l < count; ++l) {
    const float *line = from + l * stride;
    // the same row of the next LANES tokens: short strided rows defeat the processor's own prefetching
    for (int j = 0; j < width; j += 16) __builtin_prefetch(line + LANES * stride + j);
    for (int j = 0; j < width; ++j) to[j * LANES + l] = line[j];
  }
}

[[gnu::always_inline]] inline void store(float *to, const float *from, int64_t stride, int width, int count) {
  for (int l = 0; l < count; ++l)
    for (int j = 0; j < width; ++j) to[l * stride + j] = from[j * LANES + l];
}

[[gnu::always_inline]] inline void dot(float *out, const float *a, const float *b, int width) {
  FOR_LANES out[l] = 0.f;
  for (int j = 0; j < width; ++j) FOR_LANES out[l] += a[j * LANES + l] * b[j * LANES + l];
}

[[gnu::always_inline]] inline double total(const float *x) {
  double sum = 0;
  for (int l = 0; l < LANES; ++l) sum += x[l];
  return sum;
}

// sums over tokens: acc[i][j][VECTOR] += Σ a[i] b[j]
[[gnu::always_inline]] inline void outer(float *acc, const float *a, const float *b, int rows, int columns) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      float *to = acc + (i * columns + j) * VECTOR;
      float part[VECTOR];
      for (int v = 0; v < VECTOR; ++v) part[v] = to[v];
      for (int g = 0; g < LANES; g += VECTOR)
#pragma omp simd
        for (int v = 0; v < VECTOR; ++v) part[v] += a[i * LANES + g + v] * b[j * LANES + g + v];
      for (int v = 0; v < VECTOR; ++v) to[v] = part[v];
    }
}

// out[j] = Σ_i a[i] m(i, j), four columns at a time so that a[i] is read once for them
template <typename Entry>
[[gnu::always_inline]] inline void combine(float *__restrict out, const float *__restrict a, int rows, int columns,
                                           Entry m) {
  int j = 0;
  for (; j + 4 <= columns; j += 4)
    for (int g = 0; g < LANES; g += VECTOR) {
      float s0[VECTOR] = {}, s1[VECTOR] = {}, s2[VECTOR] = {}, s3[VECTOR] = {};
      for (int i = 0; i < rows; ++i) {
        const float m0 = m(i, j), m1 = m(i, j + 1), m2 = m(i, j + 2), m3 = m(i, j + 3);
        const float *from = a + i * LANES + g;
#pragma omp simd
        for (int v = 0; v < VECTOR; ++v) {
          s0[v] += m0 * from[v];
          s1[v] += m1 * from[v];
          s2[v] += m2 * from[v];
          s3[v] += m3 * from[v];
        }
      }
      float *to = out + j * LANES + g;
      for (int v = 0; v < VECTOR; ++v) to[v] = s0[v], to[LANES + v] = s1[v], to[2 * LANES + v] = s2[v], to[3 * LANES + v] = s3[v];
    }
  for (; j < columns; ++j) {
    float *to = out + j * LANES;
    FOR_LANES to[l] = 0.f;
    for (int i = 0; i < rows; ++i) {
      const float factor = m(i, j);
      FOR_LANES to[l] += factor * a[i * LANES + l];
    }
  }
}

// out[j] = Σ_i a[i] m[i][j]
void times(float *out, const float *a, const float *m, int rows, int columns) {
  combine(out, a, rows, columns, [=](int i, int j) { return m[i * columns + j]; });
}

// out[i] = Σ_j m[i][j] b[j]
void times_transposed(float *out, const float *m, const float *b, int rows, int columns) {
  combine(out, b, columns, rows, [=](int j, int i) { return m[i * columns + j]; });
}

struct Value {  // what follows from the values of LANES tokens
  float z[LANES], sine[LANES], cosine[LANES], dsine[LANES], dcosine[LANES];
  void from(const float *v, float k, int d) {
    dot(z, v, v, d);
    FOR_LANES {
      const Turn t = turn(k * z[l]);
      sine[l] = t.sine; cosine[l] = t.cosine; dsine[l] = t.dsine; dcosine[l] = t.dcosine;
    }
  }
};

void feature_block(float *out, const float *x, const float *cosine, int d) {
  for (int j = 0; j < d; ++j)
    FOR_LANES out[j * LANES + l] = feature(cosine[l] * cosine[l] * x[j * LANES + l]);
}

void lift_block(float *out, const float *v, const Value &t, int d) {
  for (int j = 0; j < d; ++j) FOR_LANES out[j * LANES + l] = 2.f * t.cosine[l] * t.sine[l] * v[j * LANES + l];
  FOR_LANES out[d * LANES + l] = 2.f * t.cosine[l] * t.cosine[l] - 1.f;
}

// masked tokens and lanes beyond the end must not enter a sum
void mute(float *keys, const uint8_t *mask, int d, int count) {
  for (int l = 0; l < LANES; ++l)
    if (l >= count || (mask && !mask[l]))
      for (int j = 0; j < d; ++j) keys[j * LANES + l] = 0.f;
}

// Sums the threads' accumulators [thread][head][i][j][VECTOR] into out [head][i][j].
void gather(float *out, const std::vector<Block> &parts, int64_t entries) {
#pragma omp for
  for (int64_t e = 0; e < entries; ++e) {
    double sum = 0;
    for (const Block &part : parts)
      for (int v = 0; v < VECTOR; ++v) sum += part[e * VECTOR + v];
    out[e] = static_cast<float>(sum);
  }
}

// The tangent vector under ambient vectors, and what its derivative needs.
struct Unlift {
  float scale[LANES], square[LANES], ratio[LANES], by_a[LANES], by_b[LANES];
  void from(float *ambient, float k, int d) {  // normalises `ambient` in place
    FOR_LANES scale[l] = 0.f;
    for (int j = 0; j <= d; ++j) FOR_LANES {
      const float size = std::fabs(ambient[j * LANES + l]);
      scale[l] = scale[l] > size ? scale[l] : size;
    }
    FOR_LANES scale[l] = scale[l] > 0.f ? 1.f / scale[l] : 1.f;
    for (int j = 0; j <= d; ++j) FOR_LANES ambient[j * LANES + l] *= scale[l];
    dot(square, ambient, ambient, d);
    FOR_LANES {
      const Angle a = angle_over_sine(k * square[l], ambient[d * LANES + l]);
      ratio[l] = a.ratio; by_a[l] = a.by_a; by_b[l] = a.by_b;
    }
  }
};

}  // namespace

extern "C" {

// out (B, T, H, d) tangent vectors; sums (B, H, d, d + 1); qkv (B, T, 3, H, d); k (H); mask (B, T) or null
void gyroformer_attention(const float *qkv, const float *k, const uint8_t *mask, float *out, float *sums,
                          int64_t batch, int64_t tokens, int heads, int width, int threads) {
  const int d = width, columns = width + 1, all = heads * width;
  const int64_t row = 3LL * heads * d, entries = 1LL * heads * d * columns;
  // whole from the start: the system may grant fewer threads than asked for
  std::vector<Block> parts(threads, Block(entries * VECTOR, 0.f));
#pragma omp parallel num_threads(threads)
  {
    Block &acc = parts[omp_get_thread_num()];
    // all heads of a token are read in one piece: memory likes long runs
    Block xs(all * LANES), vs(all * LANES), f(d * LANES), lifted(columns * LANES);
    Value t;
    Unlift u;
    for (int64_t b = 0; b < batch; ++b) {
      const float *base = qkv + b * tokens * row;
      std::memset(acc.data(), 0, sizeof(float) * acc.size());
#pragma omp for schedule(static)
      for (int64_t t0 = 0; t0 < tokens; t0 += LANES) {
        const int count = static_cast<int>(tokens - t0 < LANES ? tokens - t0 : LANES);
        load(xs.data(), base + t0 * row + all, row, all, count);
        load(vs.data(), base + t0 * row + 2 * all, row, all, count);
        for (int h = 0; h < heads; ++h) {
          const float *x = xs.data() + h * d * LANES, *v = vs.data() + h * d * LANES;
          t.from(v, k[h], d);
          feature_block(f.data(), x, t.cosine, d);
          mute(f.data(), mask ? mask + b * tokens + t0 : nullptr, d, count);
          lift_block(lifted.data(), v, t, d);
          outer(acc.data() + 1LL * h * d * columns * VECTOR, f.data(), lifted.data(), d, columns);
        }
      }
      gather(sums + b * entries, parts, entries);
#pragma omp for schedule(static)
      for (int64_t t0 = 0; t0 < tokens; t0 += LANES) {
        const int count = static_cast<int>(tokens - t0 < LANES ? tokens - t0 : LANES);
        load(xs.data(), base + t0 * row, row, all, count);
        load(vs.data(), base + t0 * row + 2 * all, row, all, count);
        for (int h = 0; h < heads; ++h) {
          float *x = xs.data() + h * d * LANES;
          t.from(vs.data() + h * d * LANES, k[h], d);
          feature_block(f.data(), x, t.cosine, d);
          times(lifted.data(), f.data(), sums + (b * heads + h) * d * columns, d, columns);
          u.from(lifted.data(), k[h], d);
          for (int j = 0; j < d; ++j) FOR_LANES x[j * LANES + l] = .5f * u.ratio[l] * lifted[j * LANES + l];
        }
        store(out + (b * tokens + t0) * all, xs.data(), all, all, count);
      }
    }
  }
}

void gyroformer_attention_backward(const float *qkv, const float *k, const uint8_t *mask, const float *sums,
                                   const float *grad_out, float *grad_qkv, float *grad_k, int64_t batch,
                                   int64_t tokens, int heads, int width, int threads) {
  const int d = width, columns = width + 1, all = heads * width;
  const int64_t row = 3LL * heads * d, entries = 1LL * heads * d * columns;
  // whole from the start: the system may grant fewer threads than asked for
  std::vector<Block> parts(threads, Block(entries * VECTOR, 0.f));
  std::vector<double> slopes(static_cast<size_t>(threads) * heads, 0.0);
  Block grad_sums(entries), transport(tokens * heads);
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    Block &acc = parts[me];
    double *slope = slopes.data() + static_cast<size_t>(me) * heads;
    Block xs(all * LANES), vs(all * LANES), gs(all * LANES), f(d * LANES), lifted(columns * LANES), back(columns * LANES);
    float part[LANES], weight[LANES], by_k[LANES];
    Value t;
    Unlift u;
    for (int64_t b = 0; b < batch; ++b) {
      const float *base = qkv + b * tokens * row;
      float *grad_base = grad_qkv + b * tokens * row;
      std::memset(acc.data(), 0, sizeof(float) * acc.size());
      // queries: through the projection back to the sums over keys
#pragma omp for schedule(static)
      for (int64_t t0 = 0; t0 < tokens; t0 += LANES) {
        const int count = static_cast<int>(tokens - t0 < LANES ? tokens - t0 : LANES);
        load(xs.data(), base + t0 * row, row, all, count);
        load(vs.data(), base + t0 * row + 2 * all, row, all, count);
        load(gs.data(), grad_out + (b * tokens + t0) * all, all, all, count);
        for (int h = 0; h < heads; ++h) {
          const float *m = sums + (b * heads + h) * d * columns;
          const float *x = xs.data() + h * d * LANES;
          float *g = gs.data() + h * d * LANES;
          t.from(vs.data() + h * d * LANES, k[h], d);
          feature_block(f.data(), x, t.cosine, d);
          times(lifted.data(), f.data(), m, d, columns);
          u.from(lifted.data(), k[h], d);
          dot(weight, g, lifted.data(), d);
          FOR_LANES weight[l] *= .5f;
          for (int j = 0; j < d; ++j)
            FOR_LANES back[j * LANES + l] = u.scale[l] * (.5f * u.ratio[l] * g[j * LANES + l] +
                                            2.f * k[h] * weight[l] * u.by_a[l] * lifted[j * LANES + l]);
          FOR_LANES back[d * LANES + l] = u.scale[l] * weight[l] * u.by_b[l];
          FOR_LANES by_k[l] = weight[l] * u.by_a[l] * u.square[l];
          slope[h] += total(by_k);
          outer(acc.data() + 1LL * h * d * columns * VECTOR, f.data(), back.data(), d, columns);
          times_transposed(g, m, back.data(), d, columns);
          FOR_LANES part[l] = 0.f;
          for (int j = 0; j < d; ++j) FOR_LANES {
            const float q = x[j * LANES + l];
            const float slope_f = g[j * LANES + l] * feature_slope(f[j * LANES + l]);
            part[l] += q * slope_f;
            g[j * LANES + l] = t.cosine[l] * t.cosine[l] * slope_f;
          }
          for (int l = 0; l < count; ++l) transport[(t0 + l) * heads + h] = part[l];
        }
        store(grad_base + t0 * row, gs.data(), row, all, count);
      }
      gather(grad_sums.data(), parts, entries);
      // keys and values: through the sums to the lifted points
#pragma omp for schedule(static)
      for (int64_t t0 = 0; t0 < tokens; t0 += LANES) {
        const int count = static_cast<int>(tokens - t0 < LANES ? tokens - t0 : LANES);
        load(xs.data(), base + t0 * row + all, row, all, count);
        load(vs.data(), base + t0 * row + 2 * all, row, all, count);
        for (int h = 0; h < heads; ++h) {
          const float *m = grad_sums.data() + 1LL * h * d * columns;
          const float *x = xs.data() + h * d * LANES;
          float *g = gs.data() + h * d * LANES, *v = vs.data() + h * d * LANES;
          t.from(v, k[h], d);
          feature_block(f.data(), x, t.cosine, d);
          mute(f.data(), mask ? mask + b * tokens + t0 : nullptr, d, count);
          lift_block(lifted.data(), v, t, d);
          times_transposed(g, m, lifted.data(), d, columns);
          times(back.data(), f.data(), m, d, columns);
          for (int l = 0; l < LANES; ++l) part[l] = l < count ? transport[(t0 + l) * heads + h] : 0.f;
          for (int j = 0; j < d; ++j) FOR_LANES {
            const float slope_f = g[j * LANES + l] * feature_slope(f[j * LANES + l]);  // 0 where muted
            part[l] += x[j * LANES + l] * slope_f;
            g[j * LANES + l] = t.cosine[l] * t.cosine[l] * slope_f;
          }
          dot(weight, back.data(), v, d);
          FOR_LANES {
            const float c = t.cosine[l];
            const float by_c = 2.f * t.sine[l] * weight[l] + 4.f * c * back[d * LANES + l] + 2.f * c * part[l];
            const float by_s = 2.f * c * weight[l];
            const float by_z = by_s * t.dsine[l] + by_c * t.dcosine[l];
            by_k[l] = by_z * t.z[l];
            weight[l] = 2.f * k[h] * by_z;
          }
          slope[h] += total(by_k);
          for (int j = 0; j < d; ++j)
            FOR_LANES v[j * LANES + l] = 2.f * t.cosine[l] * t.sine[l] * back[j * LANES + l] + weight[l] * v[j * LANES + l];
        }
        store(grad_base + t0 * row + all, gs.data(), row, all, count);
        store(grad_base + t0 * row + 2 * all, vs.data(), row, all, count);
      }
    }
  }
  for (int h = 0; h < heads; ++h) {
    double sum = 0;
    for (int thread = 0; thread < threads; ++thread) sum += slopes[static_cast<size_t>(thread) * heads + h];
    grad_k[h] = static_cast<float>(sum);
  }
}

}  // extern "C"

namespace {

// p ⊕ x = c1 p + c2 x in tangent coordinates: c1 and c2 follow from a = |p|², b = ⟨p,x⟩, c = |x|² and k. With BACK
// also the adjoints of a, b, c and k for those of c1 and c2, e1 and e2. (Plain scalars: a loop over an object with
// members is not vectorised.)
template <bool BACK>
[[gnu::always_inline]] inline void gyro(float a, float b, float c, float k, float e1, float e2, float &c1, float &c2, float &ga, float &gb,
                 float &gc, float &gk) {
  const Turn p = turn(k * a), x = turn(k * c);
  const float ps = p.sine, pc = p.cosine, xs = x.sine, xc = x.cosine;
  const float pp = a * ps * ps, xx = c * xs * xs, m = b * ps * xs;
  const float s = positive(xc * xc * pp + 2.f * xc * pc * m + pc * pc * xx), z = k * s;
  const float alpha = pc * (1.f - 2.f * k * xx) - 2.f * k * xc * m;
  const bool cut = 1.f - z < EPS;
  const float inverse = 1.f / std::sqrt(cut ? EPS : 1.f - z);
  float ratio, slope;
  asin_ratio(z, ratio, slope);
  const float g = ratio * inverse;
  c1 = alpha * g * ps;
  c2 = xc * g * xs;
  if (!BACK) return;
  const float dg = slope * inverse + (cut ? 0.f : .5f * ratio * inverse * inverse * inverse);
  const float g_alpha = e1 * g * ps;
  const float g_z = (e1 * alpha * ps + e2 * xc * xs) * dg;
  const float g_s = g_z * k;
  const float g_m = -2.f * k * xc * g_alpha + 2.f * xc * pc * g_s;
  const float g_pp = g_s * xc * xc;
  const float g_xx = g_s * pc * pc - 2.f * k * pc * g_alpha;
  const float g_pc = g_alpha * (1.f - 2.f * k * xx) + 2.f * g_s * (xc * m + pc * xx);
  const float g_xc = e2 * g * xs - 2.f * k * m * g_alpha + 2.f * g_s * (xc * pp + pc * m);
  const float g_ps = e1 * alpha * g + 2.f * a * ps * g_pp + b * xs * g_m;
  const float g_xs = e2 * xc * g + 2.f * c * xs * g_xx + b * ps * g_m;
  const float g_zp = g_ps * p.dsine + g_pc * p.dcosine;
  const float g_zx = g_xs * x.dsine + g_xc * x.dcosine;
  ga = ps * ps * g_pp + k * g_zp;
  gb = ps * xs * g_m;
  gc = xs * xs * g_xx + k * g_zx;
  gk = g_z * s - 2.f * g_alpha * (pc * xx + xc * m) + a * g_zp + c * g_zx;
}

}  // namespace

extern "C" {

// out, p, x: (rows, H, d) tangent vectors; k (H)
void gyroformer_sum(const float *p, const float *x, const float *k, float *out, int64_t rows, int heads, int width,
                    int threads) {
  const int d = width, row = heads * width;
#pragma omp parallel num_threads(threads)
  {
    Block as(row * LANES), bs(row * LANES);
    float aa[LANES], ab[LANES], bb[LANES];
#pragma omp for schedule(static)
    for (int64_t t0 = 0; t0 < rows; t0 += LANES) {
      const int count = static_cast<int>(rows - t0 < LANES ? rows - t0 : LANES);
      load(as.data(), p + t0 * row, row, row, count);
      load(bs.data(), x + t0 * row, row, row, count);
      for (int h = 0; h < heads; ++h) {
        float *a = as.data() + h * d * LANES, *b = bs.data() + h * d * LANES;
        dot(aa, a, a, d);
        dot(ab, a, b, d);
        dot(bb, b, b, d);
        FOR_LANES {
          float c1, c2, unused;
          gyro<false>(aa[l], ab[l], bb[l], k[h], 0.f, 0.f, c1, c2, unused, unused, unused, unused);
          aa[l] = c1;
          bb[l] = c2;
        }
        for (int j = 0; j < d; ++j) FOR_LANES a[j * LANES + l] = aa[l] * a[j * LANES + l] + bb[l] * b[j * LANES + l];
      }
      store(out + t0 * row, as.data(), row, row, count);
    }
  }
}

void gyroformer_sum_backward(const float *p, const float *x, const float *k, const float *grad, float *grad_p,
                             float *grad_x, float *grad_k, int64_t rows, int heads, int width, int threads) {
  const int d = width, row = heads * width;
  std::vector<double> slopes(static_cast<size_t>(threads) * heads, 0.0);
#pragma omp parallel num_threads(threads)
  {
    Block as(row * LANES), bs(row * LANES), gs(row * LANES);
    float aa[LANES], ab[LANES], bb[LANES], e1[LANES], e2[LANES], c1[LANES], c2[LANES], by_k[LANES];
    double *slope = slopes.data() + static_cast<size_t>(omp_get_thread_num()) * heads;
#pragma omp for schedule(static)
    for (int64_t t0 = 0; t0 < rows; t0 += LANES) {
      const int count = static_cast<int>(rows - t0 < LANES ? rows - t0 : LANES);
      load(as.data(), p + t0 * row, row, row, count);
      load(bs.data(), x + t0 * row, row, row, count);
      load(gs.data(), grad + t0 * row, row, row, count);
      for (int h = 0; h < heads; ++h) {
        float *a = as.data() + h * d * LANES, *b = bs.data() + h * d * LANES;
        const float *g = gs.data() + h * d * LANES;
        dot(aa, a, a, d);
        dot(ab, a, b, d);
        dot(bb, b, b, d);
        dot(e1, g, a, d);
        dot(e2, g, b, d);
        FOR_LANES {
          float s1, s2, ga, gb, gc, gk;
          gyro<true>(aa[l], ab[l], bb[l], k[h], e1[l], e2[l], s1, s2, ga, gb, gc, gk);
          c1[l] = s1; c2[l] = s2;
          aa[l] = 2.f * ga; ab[l] = gb; bb[l] = 2.f * gc; by_k[l] = gk;
        }
        slope[h] += total(by_k);
        for (int j = 0; j < d; ++j) FOR_LANES {
          const float pa = a[j * LANES + l], pb = b[j * LANES + l], pg = g[j * LANES + l];
          a[j * LANES + l] = c1[l] * pg + aa[l] * pa + ab[l] * pb;
          b[j * LANES + l] = c2[l] * pg + bb[l] * pb + ab[l] * pa;
        }
      }
      store(grad_p + t0 * row, as.data(), row, row, count);
      store(grad_x + t0 * row, bs.data(), row, row, count);
    }
  }
  for (int h = 0; h < heads; ++h) {
    double sum = 0;
    for (int thread = 0; thread < threads; ++thread) sum += slopes[static_cast<size_t>(thread) * heads + h];
    grad_k[h] = static_cast<float>(sum);
  }
}

}  // extern "C"
