// Squared distances of listed pairs of nodes, float32, forward and backward; the mathematics is that of
// gyroformer/ops/pairs.py.
//
// LANES pairs at a time: their differences are formed pair by pair, since the coordinates of a node lie side by side, and
// all that follows from them lane by lane. A thread takes one run of pairs and adds gradients to nodes in a buffer of its
// own; the buffers are joined in the threads' order. So the same number of threads gives the same bits.

#include <algorithm>
#include <vector>
#include <omp.h>

#include "pair_distance.hpp"
#include "scalar.hpp"

namespace {

constexpr int CACHE_LINE = 16;  // floats
constexpr int AHEAD = 12;  // pairs whose nodes are on their way from memory: the targets lie anywhere

struct Pairs {
  const float *sine, *cosine, *k;
  const int64_t *source, *target;
  int64_t count;
  int heads, d;

  // asks for the target of a pair that comes soon
  void expect(int64_t pair) const {
    if (pair >= count) return;
    const int64_t v = target[pair];
    for (int j = 0; j < heads * d; j += CACHE_LINE) __builtin_prefetch(sine + v * heads * d + j);
    __builtin_prefetch(cosine + v * heads);
  }

  // C_v P_u of all heads, rounded: were a product joined with the difference that follows, a node would be at some
  // distance from itself
  void products(float *out, int64_t u, int64_t v) const {
    for (int h = 0; h < heads; ++h)
      for (int j = 0; j < d; ++j) out[h * d + j] = cosine[v * heads + h] * sine[(u * heads + h) * d + j];
    asm volatile("" : : "r"(out) : "memory");
  }

  // delta[l][h][j] = C_v P_u - C_u P_v and q[h][l] = |delta|² of LANES pairs from `first` on, 0 beyond the last;
  // `others` has room for a node's sines
  int differences(int64_t first, float *delta, float *others, float *q) const {
    const int lanes = static_cast<int>(std::min<int64_t>(LANES, count - first));
    if (lanes < LANES) std::fill(q, q + heads * LANES, 0.f);
    for (int l = 0; l < lanes; ++l) {
      const int64_t u = source[first + l], v = target[first + l];
      float *mine = delta + l * heads * d;
      expect(first + l + AHEAD);
      products(mine, u, v);
      products(others, v, u);
      for (int h = 0; h < heads; ++h) {
        float sum = 0.f;
        for (int j = h * d; j < (h + 1) * d; ++j) {
          mine[j] -= others[j];
          sum += mine[j] * mine[j];
        }
        q[h * LANES + l] = sum;
      }
    }
    return lanes;
  }
};

// the run of pairs that thread `me` of `team` takes, whole blocks of LANES
struct Run {
  int64_t first, last;
  Run(int64_t count, int me, int team) {
    const int64_t blocks = (count + LANES - 1) / LANES;
    first = blocks * me / team * LANES;
    last = std::min(count, blocks * (me + 1) / team * LANES);
  }
};

}  // namespace

extern "C" {

// out (M) = d² of the pairs source (M), target (M); sine (N, H, d); cosine (N, H); k (H)
void gyroformer_pair_distances(const float *sine, const float *cosine, const float *k, const int64_t *source,
                               const int64_t *target, float *out, int64_t nodes, int64_t count, int heads, int width,
                               int threads) {
  const Pairs pairs{sine, cosine, k, source, target, count, heads, width};
#pragma omp parallel num_threads(threads)
  {
    const Run run(count, omp_get_thread_num(), omp_get_num_threads());
    std::vector<float> delta(LANES * heads * width), others(heads * width), q(heads * LANES);
    float square[LANES];
    for (int64_t first = run.first; first < run.last; first += LANES) {
      const int lanes = pairs.differences(first, delta.data(), others.data(), q.data());
      FOR_LANES square[l] = 0.f;
      for (int h = 0; h < heads; ++h) distances<false>(q.data() + h * LANES, k[h], square, nullptr, nullptr);
      std::copy(square, square + lanes, out + first);
    }
  }
}

// grad (M): the gradient in the distances
void gyroformer_pair_distances_backward(const float *sine, const float *cosine, const float *k, const int64_t *source,
                                        const int64_t *target, const float *grad, float *grad_sine, float *grad_cosine,
                                        float *grad_k, int64_t nodes, int64_t count, int heads, int width,
                                        int threads) {
  const Pairs pairs{sine, cosine, k, source, target, count, heads, width};
  const int all = heads * width, size = all + heads;  // of a node: the sines' gradients, then the cosines'
  std::vector<std::vector<float>> parts(threads);
  std::vector<double> slopes(static_cast<size_t>(threads) * heads, 0.0);
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    const Run run(count, me, omp_get_num_threads());
    std::vector<float> delta(LANES * all), others(all), q(heads * LANES), by_q(heads * LANES), by_k(heads * LANES);
    std::vector<float> &part = parts[me];
    part.assign(nodes * size, 0.f);
    double *slope = slopes.data() + static_cast<size_t>(me) * heads;
    float square[LANES];
    for (int64_t first = run.first; first < run.last; first += LANES) {
      const int lanes = pairs.differences(first, delta.data(), others.data(), q.data());
      for (int h = 0; h < heads; ++h)
        distances<true>(q.data() + h * LANES, k[h], square, by_q.data() + h * LANES, by_k.data() + h * LANES);
      for (int l = 0; l < lanes; ++l) {
        const int64_t u = source[first + l], v = target[first + l];
        if (l + AHEAD < lanes)
          for (int i = 0; i < size; i += CACHE_LINE)
            __builtin_prefetch(part.data() + target[first + l + AHEAD] * size + i, 1);
        for (int h = 0; h < heads; ++h) {
          const float twice = 2.f * grad[first + l] * by_q[h * LANES + l];
          const float *p = sine + u * all + h * width, *other = sine + v * all + h * width;
          const float *apart = delta.data() + l * all + h * width;
          float *to_u = part.data() + u * size + h * width, *to_v = part.data() + v * size + h * width;
          const float by_u = twice * cosine[v * heads + h], by_v = twice * cosine[u * heads + h];
          float along = 0.f, other_along = 0.f;
          for (int j = 0; j < width; ++j) {
            to_u[j] += by_u * apart[j];
            to_v[j] -= by_v * apart[j];
            along += apart[j] * p[j];
            other_along += apart[j] * other[j];
          }
          part[u * size + all + h] -= twice * other_along;
          part[v * size + all + h] += twice * along;
          slope[h] += grad[first + l] * by_k[h * LANES + l];
        }
      }
    }
#pragma omp barrier
#pragma omp for schedule(static)
    for (int64_t u = 0; u < nodes; ++u)
      for (int i = 0; i < size; ++i) {
        double sum = 0;
        for (const auto &one : parts)
          if (!one.empty()) sum += one[u * size + i];
        (i < all ? grad_sine[u * all + i] : grad_cosine[u * heads + i - all]) = static_cast<float>(sum);
      }
  }
  for (int h = 0; h < heads; ++h) {
    double sum = 0;
    for (int thread = 0; thread < threads; ++thread) sum += slopes[static_cast<size_t>(thread) * heads + h];
    grad_k[h] = static_cast<float>(sum);
  }
}

}  // extern "C"
