// Linear attention of the product-stereographic Transformer in fused loops, float32, forward and backward.
//
// The mathematics is that of gyroformer/ops/lifted.py and gyroformer/ops/attention.py, where it is explained; the
// derivatives are written out by hand. Tokens are processed LANES at a time, coordinates transposed so that every
// inner loop runs over tokens. Nothing but sums over tokens is kept between the passes: the backward pass computes
// the rest again from its inputs.

#include <algorithm>
#include <cstring>
#include <vector>
#include <omp.h>

#include "lanes.hpp"
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

// out (B, R, H, d) tangent vectors of the first R tokens; sums (B, H, d, d + 1); qkv (B, T, 3, H, d); k (H); mask (B, T)
// or null
void gyroformer_attention(const float *qkv, const float *k, const uint8_t *mask, float *out, float *sums,
                          int64_t batch, int64_t tokens, int64_t read, int heads, int width, int threads) {
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
      for (int64_t t0 = 0; t0 < read; t0 += LANES) {
        const int count = static_cast<int>(read - t0 < LANES ? read - t0 : LANES);
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
        store(out + (b * read + t0) * all, xs.data(), all, all, count);
      }
    }
  }
}

void gyroformer_attention_backward(const float *qkv, const float *k, const uint8_t *mask, const float *sums,
                                   const float *grad_out, float *grad_qkv, float *grad_k, int64_t batch,
                                   int64_t tokens, int64_t read, int heads, int width, int threads) {
  const int d = width, columns = width + 1, all = heads * width;
  const int64_t row = 3LL * heads * d, entries = 1LL * heads * d * columns;
  // whole from the start: the system may grant fewer threads than asked for
  std::vector<Block> parts(threads, Block(entries * VECTOR, 0.f));
  std::vector<double> slopes(static_cast<size_t>(threads) * heads, 0.0);
  Block grad_sums(entries), transport(read * heads);
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
      for (int64_t t0 = 0; t0 < read; t0 += LANES) {
        const int count = static_cast<int>(read - t0 < LANES ? read - t0 : LANES);
        load(xs.data(), base + t0 * row, row, all, count);
        load(vs.data(), base + t0 * row + 2 * all, row, all, count);
        load(gs.data(), grad_out + (b * read + t0) * all, all, all, count);
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
          for (int l = 0; l < LANES; ++l) part[l] = t0 + l < read ? transport[(t0 + l) * heads + h] : 0.f;
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
        for (int64_t t1 = std::max(t0, read); t1 < t0 + count; ++t1)  // queries that nobody asked for
          std::memset(grad_base + t1 * row, 0, sizeof(float) * all);
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
