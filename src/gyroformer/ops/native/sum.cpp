// The Möbius sum of tangent vectors, float32, forward and backward.

#include <vector>
#include <omp.h>

#include "translation.hpp"

extern "C" {

// out, p, x: (rows, H, d) tangent vectors; k (H)
void gyroformer_sum(const float *p, const float *x, const float *k, float *out, int64_t rows, int heads, int width,
                    int threads) {
  const int row = heads * width, step = width * LANES;
#pragma omp parallel num_threads(threads)
  {
    Block as(row * LANES), bs(row * LANES);
    Translation translation(width);
#pragma omp for schedule(static)
    for (int64_t t0 = 0; t0 < rows; t0 += LANES) {
      const int count = static_cast<int>(rows - t0 < LANES ? rows - t0 : LANES);
      load(as.data(), p + t0 * row, row, row, count);
      load(bs.data(), x + t0 * row, row, row, count);
      for (int h = 0; h < heads; ++h) translation.apply(as.data() + h * step, bs.data() + h * step, k[h]);
      store(out + t0 * row, as.data(), row, row, count);
    }
  }
}

void gyroformer_sum_backward(const float *p, const float *x, const float *k, const float *grad, float *grad_p,
                             float *grad_x, float *grad_k, int64_t rows, int heads, int width, int threads) {
  const int row = heads * width, step = width * LANES;
  Slopes slopes(threads, heads);
#pragma omp parallel num_threads(threads)
  {
    Block as(row * LANES), bs(row * LANES), gs(row * LANES);
    Translation translation(width);
    double *slope = slopes.of(omp_get_thread_num());
#pragma omp for schedule(static)
    for (int64_t t0 = 0; t0 < rows; t0 += LANES) {
      const int count = static_cast<int>(rows - t0 < LANES ? rows - t0 : LANES);
      load(as.data(), p + t0 * row, row, row, count);
      load(bs.data(), x + t0 * row, row, row, count);
      load(gs.data(), grad + t0 * row, row, row, count);
      for (int h = 0; h < heads; ++h)
        slope[h] += translation.back(as.data() + h * step, bs.data() + h * step, gs.data() + h * step, k[h]);
      store(grad_p + t0 * row, as.data(), row, row, count);
      store(grad_x + t0 * row, bs.data(), row, row, count);
    }
  }
  for (int h = 0; h < heads; ++h) grad_k[h] = slopes.total(h);
}

}  // extern "C"
