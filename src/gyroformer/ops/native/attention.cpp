// Linear attention of the product-stereographic Transformer in fused loops, float32, forward and backward.
//
// The mathematics is that of gyroformer/ops/lifted.py and gyroformer/ops/attention.py, where it is explained; the
// derivatives are written out by hand. Tokens are processed LANES at a time, coordinates transposed so that every
// inner loop runs over tokens. Nothing but sums over tokens is kept between the passes: the backward pass computes
// the rest again from its inputs.
//
// Both directions have two passes over the tokens with a sum between them. A caller who has only some of the tokens
// asks for one pass at a time, and adds up the sums of all tokens in between.

#include <algorithm>
#include <cstring>
#include <vector>
#include <omp.h>

#include "heads.hpp"

extern "C" {

// out (B, R, H, d) tangent vectors of the first R tokens; sums (B, H, d, d + 1); qkv (B, T, 3, H, d); k (H); mask (B, T)
// or null; pass: FIRST writes the sums only, SECOND takes them and writes `out`
void gyroformer_attention(const float *qkv, const float *k, const uint8_t *mask, float *out, float *sums,
                          int64_t batch, int64_t tokens, int64_t read, int pass, int heads, int width,
                          int threads) {
  const int d = width, columns = width + 1, all = heads * width;
  const int64_t row = 3LL * heads * d, entries = 1LL * heads * d * columns;
  // whole from the start: the system may grant fewer threads than asked for
  std::vector<Block> parts(threads, Block(entries * VECTOR, 0.f));
#pragma omp parallel num_threads(threads)
  {
    Block &acc = parts[omp_get_thread_num()];
    // all heads of a token are read in one piece: memory likes long runs
    Block xs(all * LANES), vs(all * LANES);
    Keys keys(d);
    Queries queries(d);
    for (int64_t b = 0; b < batch; ++b) {
      const float *base = qkv + b * tokens * row;
      std::memset(acc.data(), 0, sizeof(float) * acc.size());
      if (pass & FIRST) {
#pragma omp for schedule(static)
        for (int64_t t0 = 0; t0 < tokens; t0 += LANES) {
          const int count = static_cast<int>(tokens - t0 < LANES ? tokens - t0 : LANES);
          load(xs.data(), base + t0 * row + all, row, all, count);
          load(vs.data(), base + t0 * row + 2 * all, row, all, count);
          for (int h = 0; h < heads; ++h) {
            const int at = h * d * LANES;
            keys.from(xs.data() + at, vs.data() + at, k[h], mask ? mask + b * tokens + t0 : nullptr, count);
            keys.add(acc.data() + 1LL * h * d * columns * VECTOR);
          }
        }
        gather(sums + b * entries, parts, entries);
      }
      if (pass & SECOND) {
#pragma omp for schedule(static)
        for (int64_t t0 = 0; t0 < read; t0 += LANES) {
          const int count = static_cast<int>(read - t0 < LANES ? read - t0 : LANES);
          load(xs.data(), base + t0 * row, row, all, count);
          load(vs.data(), base + t0 * row + 2 * all, row, all, count);
          for (int h = 0; h < heads; ++h) {
            float *x = xs.data() + h * d * LANES;
            queries.answer(x, x, vs.data() + h * d * LANES, sums + (b * heads + h) * d * columns, k[h]);
          }
          store(out + (b * read + t0) * all, xs.data(), all, all, count);
        }
      }
    }
  }
}

// grad_sums (H, d, d + 1) and transport (R, H) lie between the passes, of one sequence at a time; pass: FIRST
// writes them and the gradient of the queries, SECOND takes them and writes that of keys and values; grad_k is added to
void gyroformer_attention_backward(const float *qkv, const float *k, const uint8_t *mask, const float *sums,
                                   const float *grad_out, float *grad_qkv, float *grad_k, float *grad_sums,
                                   float *transport, int64_t batch, int64_t tokens, int64_t read, int pass, int heads,
                                   int width, int threads) {
  const int d = width, columns = width + 1, all = heads * width;
  const int64_t row = 3LL * heads * d, entries = 1LL * heads * d * columns;
  // whole from the start: the system may grant fewer threads than asked for
  std::vector<Block> parts(threads, Block(entries * VECTOR, 0.f));
  Slopes slopes(threads, heads);
#pragma omp parallel num_threads(threads)
  {
    Block &acc = parts[omp_get_thread_num()];
    double *slope = slopes.of(omp_get_thread_num());
    Block xs(all * LANES), vs(all * LANES), gs(all * LANES), means(d * LANES);
    Keys keys(d);
    Queries queries(d);
    float part[LANES];
    for (int64_t b = 0; b < batch; ++b) {
      const float *base = qkv + b * tokens * row;
      float *grad_base = grad_qkv + b * tokens * row;
      std::memset(acc.data(), 0, sizeof(float) * acc.size());
      // queries: through the projection back to the sums over keys
      if (pass & FIRST) {
#pragma omp for schedule(static)
        for (int64_t t0 = 0; t0 < read; t0 += LANES) {
          const int count = static_cast<int>(read - t0 < LANES ? read - t0 : LANES);
          load(xs.data(), base + t0 * row, row, all, count);
          load(vs.data(), base + t0 * row + 2 * all, row, all, count);
          load(gs.data(), grad_out + (b * read + t0) * all, all, all, count);
          for (int h = 0; h < heads; ++h) {
            const int at = h * d * LANES;
            const float *x = xs.data() + at, *m = sums + (b * heads + h) * d * columns;
            queries.answer(means.data(), x, vs.data() + at, m, k[h]);
            slope[h] += queries.back(gs.data() + at, x, m, acc.data() + 1LL * h * d * columns * VECTOR, part, k[h]);
            for (int l = 0; l < count; ++l) transport[(t0 + l) * heads + h] = part[l];
          }
          store(grad_base + t0 * row, gs.data(), row, all, count);
        }
        gather(grad_sums, parts, entries);
      }
      // keys and values: through the sums to the lifted points
      if (pass & SECOND) {
#pragma omp for schedule(static)
        for (int64_t t0 = 0; t0 < tokens; t0 += LANES) {
          const int count = static_cast<int>(tokens - t0 < LANES ? tokens - t0 : LANES);
          load(xs.data(), base + t0 * row + all, row, all, count);
          load(vs.data(), base + t0 * row + 2 * all, row, all, count);
          for (int h = 0; h < heads; ++h) {
            const int at = h * d * LANES;
            float *v = vs.data() + at;
            keys.from(xs.data() + at, v, k[h], mask ? mask + b * tokens + t0 : nullptr, count);
            for (int l = 0; l < LANES; ++l) part[l] = t0 + l < read ? transport[(t0 + l) * heads + h] : 0.f;
            slope[h] += keys.back(xs.data() + at, v, grad_sums + 1LL * h * d * columns, part, k[h]);
          }
          store(grad_base + t0 * row + all, xs.data(), row, all, count);
          store(grad_base + t0 * row + 2 * all, vs.data(), row, all, count);
          for (int64_t t1 = std::max(t0, read); t1 < t0 + count; ++t1)  // queries that nobody asked for
            std::memset(grad_base + t1 * row, 0, sizeof(float) * all);
        }
      }
    }
  }
  for (int h = 0; h < heads; ++h) grad_k[h] += slopes.total(h);
}

}  // extern "C"
