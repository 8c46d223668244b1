// The feed-forward part of a block at small widths in one pass, float32, forward and backward:
// u ↦ (W₂ ReLU(W₁ LN(u) + b₁) + b₂) ⊕ u. A token is read once and written once; the backward pass computes the rest again.

#include <algorithm>
#include <vector>
#include <omp.h>

#include "block_parts.hpp"
#include "translation.hpp"

namespace {

struct FeedForward {
  Norm norm;
  Linear up, down;
  const float *k;
  int heads, step;
  Block u, normal, hidden, out;
  Translation translation;

  FeedForward(Norm norm, Linear up, Linear down, const float *k, int heads)
      : norm(std::move(norm)), up(up), down(down), k(k), heads(heads), step(up.in / heads * LANES), u(up.in * LANES),
        normal(up.in * LANES), hidden(up.out * LANES), out(up.in * LANES), translation(up.in / heads) {}

  // up to the step that is added to u
  void to_step(const float *from, int count) {
    load(u.data(), from, up.in, up.in, count);
    norm.apply(normal.data(), u.data());
    up.apply(hidden.data(), normal.data());
    for (float &x : hidden) x = x < 0.f ? 0.f : x;  // NaN stays
    down.apply(out.data(), hidden.data());
  }

  void add() {
    for (int h = 0; h < heads; ++h) translation.apply(out.data() + h * step, u.data() + h * step, k[h]);
  }
};

enum { NORM_WEIGHT, NORM_BIAS, UP_WEIGHT, UP_BIAS, DOWN_WEIGHT, DOWN_BIAS };

}  // namespace

extern "C" {

// out, u (rows, dim); norm_weight, norm_bias (dim); up (hidden, dim); down (dim, hidden); k (H)
void gyroformer_feed_forward(const float *u, const float *norm_weight, const float *norm_bias, const float *up,
                             const float *up_bias, const float *down, const float *down_bias, const float *k,
                             float *out, int64_t rows, int hidden, int heads, int dim, float eps, int threads) {
#pragma omp parallel num_threads(threads)
  {
    FeedForward part({norm_weight, norm_bias, dim, eps}, {up, up_bias, dim, hidden}, {down, down_bias, hidden, dim}, k, heads);
#pragma omp for schedule(static)
    for (int64_t t0 = 0; t0 < rows; t0 += LANES) {
      const int count = static_cast<int>(std::min<int64_t>(rows - t0, LANES));
      part.to_step(u + t0 * dim, count);
      part.add();
      store(out + t0 * dim, part.out.data(), dim, dim, count);
    }
  }
}

void gyroformer_feed_forward_backward(const float *u, const float *norm_weight, const float *norm_bias, const float *up,
                                      const float *up_bias, const float *down, const float *down_bias, const float *k,
                                      const float *grad, float *grad_u, float *grad_norm_weight, float *grad_norm_bias,
                                      float *grad_up, float *grad_up_bias, float *grad_down, float *grad_down_bias,
                                      float *grad_k, int64_t rows, int hidden, int heads, int dim, float eps,
                                      int threads) {
  const Linear first{up, up_bias, dim, hidden}, second{down, down_bias, hidden, dim};
  Gradients sums(threads, {dim, dim, first.entries(), hidden, second.entries(), dim});
  Slopes slopes(threads, heads);
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    FeedForward part({norm_weight, norm_bias, dim, eps}, first, second, k, heads);
    Block g(dim * LANES), by_hidden(hidden * LANES);
    Rows normal(dim), inner(hidden);
    double *slope = slopes.of(me);
#pragma omp for schedule(static)
    for (int64_t t0 = 0; t0 < rows; t0 += LANES) {
      const int count = static_cast<int>(std::min<int64_t>(rows - t0, LANES));
      part.to_step(u + t0 * dim, count);
      load(g.data(), grad + t0 * dim, dim, dim, count);
      for (int h = 0; h < heads; ++h) {
        const int at = h * part.step;
        slope[h] += part.translation.back(part.out.data() + at, part.u.data() + at, g.data() + at, k[h]);
      }
      second.back(by_hidden.data(), sums.of(me, DOWN_WEIGHT), sums.of(me, DOWN_BIAS), part.out.data(), inner.of(part.hidden.data()));
      for (size_t i = 0; i < by_hidden.size(); ++i) by_hidden[i] = part.hidden[i] <= 0.f ? 0.f : by_hidden[i];
      first.back(g.data(), sums.of(me, UP_WEIGHT), sums.of(me, UP_BIAS), by_hidden.data(), normal.of(part.normal.data()));
      part.norm.back(part.u.data(), sums.of(me, NORM_WEIGHT), sums.of(me, NORM_BIAS), g.data());
      store(grad_u + t0 * dim, part.u.data(), dim, dim, count);
    }
  }
  sums.write({grad_norm_weight, grad_norm_bias, grad_up, grad_up_bias, grad_down, grad_down_bias});
  for (int h = 0; h < heads; ++h) grad_k[h] = slopes.total(h);
}

}  // extern "C"
