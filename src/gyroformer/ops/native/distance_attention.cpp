// Attention by distance, float32, forward and backward; the mathematics is that of gyroformer/ops/distance_attention.py.
//
// One head after the other: its keys and values are laid out coordinate by coordinate in tiles of LANES, and every query
// meets them tile by tile. The largest score so far is taken out of the exponents as the tiles come. The backward pass
// forms the weights again from the logarithms of their sums; each thread adds to keys and values in a buffer of its own,
// and the buffers are joined in the threads' order. So the same number of threads gives the same bits.

#include <algorithm>
#include <vector>
#include <omp.h>

#include "pair_terms.hpp"

namespace {

constexpr float LOWEST = -3e38f;

struct Attention {
  const float *query_sine, *query_cosine, *key_sine, *key_cosine, *values;  // (N, H, d), (N, H), (N, H, D)
  const float *k, *sharpness, *threshold;                                   // (H); the last may be null
  const int64_t *segment;                                                   // (N): who may attend to whom
  int64_t nodes;
  int heads, width, depth;

  int64_t tiles() const { return (nodes + LANES - 1) / LANES; }
  int size() const { return width + 1 + depth; }  // numbers of a column: sines, cosine, value
};

// a head's keys and values, [tile][coordinate][LANES]; what is beyond the last is 0
std::vector<float> laid_out(const Attention &a, int h) {
  std::vector<float> out(a.tiles() * a.size() * LANES, 0.f);
  for (int64_t v = 0; v < a.nodes; ++v) {
    float *to = out.data() + v / LANES * a.size() * LANES + v % LANES;
    const int64_t at = v * a.heads + h;
    for (int j = 0; j < a.width; ++j) to[j * LANES] = a.key_sine[at * a.width + j];
    to[a.width * LANES] = a.key_cosine[at];
    for (int j = 0; j < a.depth; ++j) to[(a.width + 1 + j) * LANES] = a.values[at * a.depth + j];
  }
  return out;
}

// One query and a tile of keys: distances, scores (LOWEST for keys of other graphs), the scores' slopes over -sharpness
struct Meeting {
  alignas(64) float q[LANES], square[LANES], by_q[LANES], by_k[LANES], far[LANES], score[LANES], slope[LANES];

  template <bool BACK>
  void meet(const Attention &a, int h, int64_t u, int64_t t, const float *tile) {
    const int64_t at = u * a.heads + h;
    quotients(q, a.query_sine + at * a.width, a.query_cosine[at], tile, tile + a.width * LANES, a.width);
    FOR_LANES square[l] = 0.f;
    distances<BACK>(q, a.k[h], square, by_q, by_k);
    const float sharp = a.sharpness[h];
    FOR_LANES {
      far[l] = std::sqrt(square[l]);
      score[l] = -sharp * far[l];
      slope[l] = 1.f;
    }
    if (a.threshold) past_threshold(a.threshold[h]);
    const int64_t first = t * LANES, lanes = std::min<int64_t>(LANES, a.nodes - first);
    for (int l = 0; l < lanes; ++l) score[l] = a.segment[first + l] == a.segment[u] ? score[l] : LOWEST;
    for (int l = static_cast<int>(lanes); l < LANES; ++l) score[l] = LOWEST;
  }

  // log sigmoid(score - c) and the sigmoid that is its slope
  void past_threshold(float c) {
    FOR_LANES {
      const float y = c - score[l], size = y > 0.f ? y : -y, fall = exponential(size > MOST ? -MOST : -size);
      score[l] = -((y > 0.f ? y : 0.f) + logarithm(1.f + fall));
      slope[l] = (y > 0.f ? 1.f : fall) / (1.f + fall);
    }
  }

  // exp(score - level), 0 beyond the reach of float32
  void weights(float *out, float level) const {
    FOR_LANES {
      const float x = score[l] - level, bounded = x < -MOST ? -MOST : (x > 0.f ? 0.f : x);
      out[l] = x < -MOST ? 0.f : exponential(bounded);
    }
  }
};

float added(const float *x) {
  float sum = 0.f;
#pragma omp simd reduction(+ : sum)
  for (int l = 0; l < LANES; ++l) sum += x[l];
  return sum;
}

// the mean of the values for query u, and the logarithm of the sum of its weights
float attend(const Attention &a, int h, int64_t u, const float *tiles, Meeting &m, float *sums, float *out) {
  alignas(64) float weight[LANES], total[LANES] = {};
  std::fill(sums, sums + a.depth * LANES, 0.f);
  float level = LOWEST;
  for (int64_t t = 0; t < a.tiles(); ++t) {
    const float *tile = tiles + t * a.size() * LANES, *value = tile + (a.width + 1) * LANES;
    m.meet<false>(a, h, u, t, tile);
    const float most = largest(m.score);
    if (most <= LOWEST) continue;
    if (most > level) {
      const float shrink = level - most < -MOST ? 0.f : exponential(level - most);
      FOR_LANES total[l] *= shrink;
      for (int i = 0; i < a.depth * LANES; ++i) sums[i] *= shrink;
      level = most;
    }
    m.weights(weight, level);
    FOR_LANES total[l] += weight[l];
    for (int j = 0; j < a.depth; ++j) FOR_LANES sums[j * LANES + l] += weight[l] * value[j * LANES + l];
  }
  const float sum = added(total);
  for (int j = 0; j < a.depth; ++j) out[j] = added(sums + j * LANES) / sum;
  return level + std::log(sum);
}

struct Slopes {  // of a head's curvature, sharpness and threshold
  double k = 0, sharpness = 0, threshold = 0;
};

// What query u gives back: to itself `row` [width + 1][WIDE], to keys and values `columns`, to the head's numbers
void give_back(const Attention &a, int h, int64_t u, const float *tiles, const float *out, const float *grad, float level,
               Meeting &m, float *row, float *columns, Slopes &slopes) {
  alignas(64) float weight[LANES], along[LANES], twice[LANES];
  const int64_t at = u * a.heads + h;
  float whole = 0.f;
  for (int j = 0; j < a.depth; ++j) whole += grad[j] * out[j];
  for (int64_t t = 0; t < a.tiles(); ++t) {
    const float *tile = tiles + t * a.size() * LANES, *value = tile + (a.width + 1) * LANES;
    float *column = columns + t * a.size() * LANES, *to_value = column + (a.width + 1) * LANES;
    m.meet<true>(a, h, u, t, tile);
    m.weights(weight, level);
    FOR_LANES along[l] = -whole;
    for (int j = 0; j < a.depth; ++j)
      FOR_LANES {
        along[l] += grad[j] * value[j * LANES + l];
        to_value[j * LANES + l] += weight[l] * grad[j];
      }
    float by_k = 0.f, by_sharpness = 0.f, by_threshold = 0.f;
#pragma omp simd reduction(+ : by_k, by_sharpness, by_threshold)
    for (int l = 0; l < LANES; ++l) {
      const float by_score = weight[l] * along[l] * m.slope[l];
      const float by_far = -a.sharpness[h] * by_score, half = m.far[l] > 0.f ? .5f / m.far[l] : 0.f;
      twice[l] = 2.f * by_far * half * m.by_q[l];
      by_k += by_far * half * m.by_k[l];
      by_sharpness -= by_score * m.far[l];
      by_threshold -= by_score;
    }
    slopes.k += by_k, slopes.sharpness += by_sharpness, slopes.threshold += by_threshold;
    spread(twice, a.query_sine + at * a.width, a.query_cosine[at], tile, tile + a.width * LANES, a.width, row,
           row + a.width * WIDE, column, column + a.width * LANES);
  }
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
    const std::vector<float> tiles = laid_out(a, h);
#pragma omp parallel num_threads(threads)
    {
      const FlushToZero flush;
      Meeting m;
      std::vector<float> sums(depth * LANES);
#pragma omp for schedule(static)
      for (int64_t u = 0; u < nodes; ++u) {
        float *mean = out + (u * heads + h) * depth;
        logs[u * heads + h] = attend(a, h, u, tiles.data(), m, sums.data(), mean);
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
    const std::vector<float> tiles = laid_out(a, h);
    std::vector<std::vector<float>> parts(threads, std::vector<float>(tiles.size(), 0.f));
    std::vector<Slopes> slopes(threads);
#pragma omp parallel num_threads(threads)
    {
      const FlushToZero flush;
      Meeting m;
      std::vector<float> row((width + 1) * WIDE);
      const int me = omp_get_thread_num();
#pragma omp for schedule(static)
      for (int64_t u = 0; u < nodes; ++u) {
        const int64_t at = u * heads + h;
        std::fill(row.begin(), row.end(), 0.f);
        give_back(a, h, u, tiles.data(), out + at * depth, grad + at * depth, logs[at], m, row.data(), parts[me].data(),
                  slopes[me]);
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
    Slopes sum;
    for (const Slopes &one : slopes)
      sum.k += one.k, sum.sharpness += one.sharpness, sum.threshold += one.threshold;
    by_k[h] = static_cast<float>(sum.k);
    by_sharpness[h] = static_cast<float>(sum.sharpness);
    if (by_threshold) by_threshold[h] = static_cast<float>(sum.threshold);
  }
}

}  // extern "C"
