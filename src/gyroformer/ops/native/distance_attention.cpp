// Attention by distance, float32, forward and backward; the mathematics is that of gyroformer/ops/distance_attention.py.
//
// One head after the other: its keys and values are laid out coordinate by coordinate in tiles of LANES, and every query
// meets them tile by tile, for its scores first and then, without the largest of them, for its weights. The backward
// pass forms the weights again from the logarithms of their sums; each thread adds to keys and values in a buffer of its
// own, and the buffers are joined in the threads' order. So the same number of threads gives the same bits.

#include <algorithm>
#include <vector>
#include <omp.h>

#include "lanes.hpp"
#include "pair_terms.hpp"

namespace {

constexpr float LOWEST = -3e38f;

struct Attention {
  const float *query_sine, *query_cosine, *key_sine, *key_cosine, *values;  // (N, H, d), (N, H), (N, H, D)
  const float *k, *sharpness, *threshold;                                   // (H); the last may be null
  const int64_t *segment;                                                   // (N): who may attend to whom
  int64_t nodes;
  int heads, width, depth;
  bool one_graph = std::all_of(segment, segment + nodes, [this](int64_t other) { return other == segment[0]; });

  int64_t tiles() const { return (nodes + LANES - 1) / LANES; }
  int size() const { return width + 1 + depth; }  // numbers of a column: sines, cosine, value
};

// the largest |x| of a head's rows of `width` numbers
float longest(const float *x, const Attention &a, int h, int width) {
  float most = 0.f;
  for (int64_t u = 0; u < a.nodes; ++u)
    for (int j = 0; j < width; ++j) most = std::max(most, std::fabs(x[(u * a.heads + h) * width + j]));
  return most;
}

// A head's numbers, and its keys and values, [tile][coordinate][LANES]; what is beyond the last is 0.
struct Head {
  int h;
  float k, sharpness, threshold;
  Negative space;  // what plain_distances needs, if
  bool plain;      // every pair is within what it can do
  Block tiles;

  Head(const Attention &a, int h)
      : h(h), k(a.k[h]), sharpness(a.sharpness[h]), threshold(a.threshold ? a.threshold[h] : 0.f), space{k},
        plain(-k >= CURVED && -k * bound(a) < FAR), tiles(a.tiles() * a.size() * LANES, 0.f) {
    for (int64_t v = 0; v < a.nodes; ++v) {
      float *to = tiles.data() + v / LANES * a.size() * LANES + v % LANES;
      const int64_t at = v * a.heads + h;
      for (int j = 0; j < a.width; ++j) to[j * LANES] = a.key_sine[at * a.width + j];
      to[a.width * LANES] = a.key_cosine[at];
      for (int j = 0; j < a.depth; ++j) to[(a.width + 1 + j) * LANES] = a.values[at * a.depth + j];
    }
  }

  // no q = |C_v P_u - C_u P_v|² is larger
  float bound(const Attention &a) const {
    const float most = longest(a.query_sine, a, h, a.width) * longest(a.key_cosine, a, h, 1) +
                       longest(a.key_sine, a, h, a.width) * longest(a.query_cosine, a, h, 1);
    return a.width * most * most;
  }
};

// One query and a tile of keys: distances with their derivatives, scores (LOWEST for keys of other graphs), and the
// scores' slopes over -sharpness.
struct Meeting {
  alignas(64) float q[LANES], square[LANES], by_q[LANES], by_k[LANES], far[LANES], score[LANES], slope[LANES];

  template <bool BACK>
  void meet(const Attention &a, const Head &head, int64_t u, int64_t t, const float *tile) {
    const int64_t at = u * a.heads + head.h;
    quotients(q, a.query_sine + at * a.width, a.query_cosine[at], tile, tile + a.width * LANES, a.width);
    head.plain ? plain_distances<BACK>(q, head.space, far, by_q, by_k) : roots_of_squares<BACK>(head.k);
    FOR_LANES {
      score[l] = -head.sharpness * far[l];
      slope[l] = 1.f;
    }
    if (a.threshold) past_threshold(head.threshold);
    const int64_t first = t * LANES, lanes = std::min<int64_t>(LANES, a.nodes - first);
    if (!a.one_graph)
      for (int l = 0; l < lanes; ++l) score[l] = a.segment[first + l] == a.segment[u] ? score[l] : LOWEST;
    for (int l = static_cast<int>(lanes); l < LANES; ++l) score[l] = LOWEST;
  }

  template <bool BACK>
  void roots_of_squares(float k) {
    FOR_LANES square[l] = 0.f;
    distances<BACK>(q, k, square, by_q, by_k);
    FOR_LANES {
      far[l] = std::sqrt(square[l]);
      if (BACK) {
        const float half = far[l] > 0.f ? .5f / far[l] : 0.f;
        by_q[l] *= half;
        by_k[l] *= half;
      }
    }
  }

  // log sigmoid(score - c) and the sigmoid that is its slope
  void past_threshold(float c) {
    FOR_LANES {
      const float y = c - score[l], size = y > 0.f ? y : -y, fall = exponential(size > MOST ? -MOST : -size);
      score[l] = -((y > 0.f ? y : 0.f) + logarithm(1.f + fall));
      slope[l] = (y > 0.f ? 1.f : fall) / (1.f + fall);
    }
  }
};

// exp(score - level), 0 beyond the reach of float32
void weigh(float *weight, const float *score, float level) {
  FOR_LANES {
    const float x = score[l] - level, bounded = x < -MOST ? -MOST : (x > 0.f ? 0.f : x);
    weight[l] = x < -MOST ? 0.f : exponential(bounded);
  }
}

float added(const float *x) {
  float sum = 0.f;
  for (int v = 0; v < VECTOR; ++v) sum += x[v];
  return sum;
}

// adds LANES products, or numbers, to VECTOR sums
[[gnu::always_inline]] inline void add(float *sums, const float *x, const float *y) {
  for (int g = 0; g < LANES; g += VECTOR) FOR_VECTOR sums[v] += x[g + v] * y[g + v];
}
[[gnu::always_inline]] inline void add(float *sums, const float *x) {
  for (int g = 0; g < LANES; g += VECTOR) FOR_VECTOR sums[v] += x[g + v];
}

// The mean of the values for query u, and the logarithm of the sum of its weights. `scores` has room for all keys': the
// largest must be known before the first weight, and `sums` for [depth][VECTOR].
float attend(const Attention &a, const Head &head, int64_t u, Meeting &m, float *scores, float *sums, float *out) {
  alignas(64) float weight[LANES], total[VECTOR] = {}, most[LANES];
  const int64_t step = a.size() * LANES;
  FOR_LANES most[l] = LOWEST;
  for (int64_t t = 0; t < a.tiles(); ++t) {
    m.meet<false>(a, head, u, t, head.tiles.data() + t * step);
    FOR_LANES {
      scores[t * LANES + l] = m.score[l];
      most[l] = most[l] > m.score[l] ? most[l] : m.score[l];
    }
  }
  const float level = largest(most);
  std::fill(sums, sums + a.depth * VECTOR, 0.f);
  for (int64_t t = 0; t < a.tiles(); ++t) {
    const float *value = head.tiles.data() + t * step + (a.width + 1) * LANES;
    weigh(weight, scores + t * LANES, level);
    add(total, weight);
    for (int j = 0; j < a.depth; ++j) add(sums + j * VECTOR, weight, value + j * LANES);
  }
  const float sum = added(total);
  for (int j = 0; j < a.depth; ++j) out[j] = added(sums + j * VECTOR) / sum;
  return level + std::log(sum);
}

struct HeadSlopes {  // of a head's curvature, sharpness and threshold
  double k = 0, sharpness = 0, threshold = 0;
};

// What query u gives back: to itself `row` [width + 1][WIDE], to keys and values `columns`, to the head's numbers
void give_back(const Attention &a, const Head &head, int64_t u, const float *out, const float *grad, float level,
               Meeting &m, float *row, float *columns, HeadSlopes &slopes) {
  alignas(64) float weight[LANES], along[LANES], by_score[LANES], by_far[LANES], twice[LANES];
  alignas(64) float by_k[VECTOR] = {}, by_sharpness[VECTOR] = {}, by_threshold[VECTOR] = {};
  const int64_t at = u * a.heads + head.h, step = a.size() * LANES;
  float whole = 0.f;
  for (int j = 0; j < a.depth; ++j) whole += grad[j] * out[j];
  for (int64_t t = 0; t < a.tiles(); ++t) {
    const float *tile = head.tiles.data() + t * step, *value = tile + (a.width + 1) * LANES;
    float *column = columns + t * step, *to_value = column + (a.width + 1) * LANES;
    m.meet<true>(a, head, u, t, tile);
    weigh(weight, m.score, level);
    FOR_LANES along[l] = -whole;
    for (int j = 0; j < a.depth; ++j)
      FOR_LANES {
        along[l] += grad[j] * value[j * LANES + l];
        to_value[j * LANES + l] += weight[l] * grad[j];
      }
    FOR_LANES {
      by_score[l] = weight[l] * along[l] * m.slope[l];
      by_far[l] = -head.sharpness * by_score[l];
      twice[l] = 2.f * by_far[l] * m.by_q[l];
    }
    add(by_k, by_far, m.by_k);
    add(by_sharpness, by_score, m.far);
    add(by_threshold, by_score);
    spread(twice, a.query_sine + at * a.width, a.query_cosine[at], tile, tile + a.width * LANES, a.width, row,
           row + a.width * WIDE, column, column + a.width * LANES);
  }
  slopes.k += added(by_k), slopes.sharpness -= added(by_sharpness), slopes.threshold -= added(by_threshold);
}

float added_register(const float *x) {
  float sum = 0.f;
  for (int i = 0; i < WIDE; ++i) sum += x[i];
  return sum;
}

}  // namespace

extern "C" {

// out (N, H, D), logs (N, H)
void gyroformer_distance_attention(const float *query_sine, const float *query_cosine, const float *key_sine,
                                   const float *key_cosine, const float *values, const float *k, const float *sharpness,
                                   const float *threshold, const int64_t *segment, float *out, float *logs, int64_t nodes,
                                   int heads, int width, int depth, int threads) {
  const Attention a{query_sine, query_cosine, key_sine, key_cosine, values, k, sharpness, threshold,
                    segment,    nodes,        heads,    width,      depth};
  const int64_t points = nodes * heads;
  const float poison = nothing(query_sine, points * width) + nothing(query_cosine, points) +
                       nothing(key_sine, points * width) + nothing(key_cosine, points) +
                       nothing(values, points * depth) + nothing(k, heads) + nothing(sharpness, heads);
  for (int h = 0; h < heads; ++h) {
    const Head head(a, h);
#pragma omp parallel num_threads(threads)
    {
      const FlushToZero flush;
      Meeting m;
      Block scores(a.tiles() * LANES), sums(depth * VECTOR);
#pragma omp for schedule(static)
      for (int64_t u = 0; u < nodes; ++u) {
        float *mean = out + (u * heads + h) * depth;
        logs[u * heads + h] = attend(a, head, u, m, scores.data(), sums.data(), mean);
        for (int j = 0; j < depth; ++j) mean[j] += poison;
      }
    }
  }
}

void gyroformer_distance_attention_backward(const float *query_sine, const float *query_cosine, const float *key_sine,
                                            const float *key_cosine, const float *values, const float *k,
                                            const float *sharpness, const float *threshold, const int64_t *segment,
                                            const float *out, const float *logs, const float *grad, float *by_query_sine,
                                            float *by_query_cosine, float *by_key_sine, float *by_key_cosine,
                                            float *by_values, float *by_k, float *by_sharpness, float *by_threshold,
                                            int64_t nodes, int heads, int width, int depth, int threads) {
  const Attention a{query_sine, query_cosine, key_sine, key_cosine, values, k, sharpness, threshold,
                    segment,    nodes,        heads,    width,      depth};
  for (int h = 0; h < heads; ++h) {
    const Head head(a, h);
    std::vector<Block> parts(threads, Block(head.tiles.size(), 0.f));
    std::vector<HeadSlopes> slopes(threads);
#pragma omp parallel num_threads(threads)
    {
      const FlushToZero flush;
      Meeting m;
      Block row((width + 1) * WIDE);
      const int me = omp_get_thread_num();
#pragma omp for schedule(static)
      for (int64_t u = 0; u < nodes; ++u) {
        const int64_t at = u * heads + h;
        std::fill(row.begin(), row.end(), 0.f);
        give_back(a, head, u, out + at * depth, grad + at * depth, logs[at], m, row.data(), parts[me].data(), slopes[me]);
        for (int j = 0; j < width; ++j) by_query_sine[at * width + j] = added_register(row.data() + j * WIDE);
        by_query_cosine[at] = added_register(row.data() + width * WIDE);
      }
    }
    for (int64_t v = 0; v < nodes; ++v) {
      const int64_t at = v * heads + h, place = v / LANES * a.size() * LANES + v % LANES;
      const auto joined = [&](int j) {
        float sum = 0.f;
        for (const auto &part : parts) sum += part[place + j * LANES];
        return sum;
      };
      for (int j = 0; j < width; ++j) by_key_sine[at * width + j] = joined(j);
      by_key_cosine[at] = joined(width);
      for (int j = 0; j < depth; ++j) by_values[at * depth + j] = joined(width + 1 + j);
    }
    HeadSlopes sum;
    for (const HeadSlopes &one : slopes)
      sum.k += one.k, sum.sharpness += one.sharpness, sum.threshold += one.threshold;
    by_k[h] = static_cast<float>(sum.k);
    by_sharpness[h] = static_cast<float>(sum.sharpness);
    if (by_threshold) by_threshold[h] = static_cast<float>(sum.threshold);
  }
}

}  // extern "C"
