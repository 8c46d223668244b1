// Softmax attention over lifted values, float32, forward and backward; the mathematics is that of
// gyroformer/ops/softmax.py.
//
// No matrix of all pairs is kept. Forward, LANES queries meet the keys block by block; the largest score so far is taken
// out of the exponents as the blocks come, and the logarithm of each query's sum of weights is kept. The backward pass
// forms the weights again from it: LANES keys meet the queries block by block, so that the gradients of keys and values,
// whose columns fill no register, are sums along lanes that stay in place. Exponents are those of 2: the factor is in the
// queries, the same in both passes, so that both form the same scores bit by bit.
//
// Work is cut into items that write to places of their own, so the same number of threads gives the same bits.

#include <algorithm>
#include <cmath>
#include <vector>

#include "lanes.hpp"
#include "tiles.hpp"

namespace {

constexpr int KEYS = 48;                             // keys of a block of the forward pass
constexpr int QUERIES = 24;                          // queries of a block of the backward pass; both fill tiles
constexpr float FLOOR = -1e30f, FORBIDDEN = -1e38f;  // below all scores; the score of pairs that do not attend
constexpr float LEAST_POWER = -126.f;                // 2^x counts as 0 below: the end of float32's normal numbers
constexpr float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

// 2^x for x < 128, 0 below LEAST_POWER; the sum with a large number leaves the nearest integer in its last bits
[[gnu::always_inline]] inline float power_of_two(float x) {
  constexpr float LARGE = 12582912.f;
  const float shifted = x + LARGE, r = x - (shifted - LARGE);
  // the polynomial of degree 5 that comes nearest on [-1/2, 1/2], 1 at 0; its relative error is below 1e-7
  const float p =
      1.f + r * (0.693147004f + r * (0.240222424f + r * (0.0555073395f + r * (0.00967151392f + r * 0.00132647203f))));
  const int32_t bits = __builtin_bit_cast(int32_t, p) + (__builtin_bit_cast(int32_t, shifted) << 23);
  return x < LEAST_POWER ? 0.f : __builtin_bit_cast(float, bits);
}

struct Shape {
  int64_t queries, keys;
  int width, columns;  // of queries and keys, of values
  bool causal;
  float scale;

  int lanes() const { return (width + WIDE - 1) / WIDE * WIDE; }  // of a gradient of a query
};

struct Head {
  const float *query, *key, *value;  // (R, d), (N, d), (N, v)
  const uint8_t *keep;               // (N): which keys are attended to; null for all
};

// A block of LANES queries that has met some of the keys
class Answers {
  const Shape &s;
  Block queries, scores, sums;
  alignas(64) float most[LANES], total[LANES], shrink[LANES];

 public:
  explicit Answers(const Shape &shape)
      : s(shape), queries(shape.width * LANES), scores(KEYS * LANES), sums(shape.columns * LANES) {}

  void begin(const Head &head, int64_t first, int count) {
    load(queries.data(), head.query + first * s.width, s.width, s.width, count);
    for (float &x : queries) x *= s.scale * LOG2_E;
    std::fill(sums.begin(), sums.end(), 0.f);
    FOR_LANES most[l] = FLOOR, total[l] = 0.f;
  }

  void meet(const Head &head, int64_t first_query, int64_t first_key, int count) {
    multiply<false>({scores.data(), LANES}, {head.key + first_key * s.width, s.width, 1}, {queries.data(), LANES}, count,
                    s.width, LANES);
    forbid(head, first_query, first_key, count);
    weigh(count);
    for (int j = 0; j < s.columns; ++j) FOR_LANES sums[j * LANES + l] *= shrink[l];
    multiply<true>({sums.data(), LANES}, {head.value + first_key * s.columns, 1, s.columns}, {scores.data(), LANES},
                   s.columns, count, LANES);
  }

  // the means (count, v) and the logarithms of the sums, to base 2; a query without any key gets zeros
  void end(float *out, float *logs, int count) {
    FOR_LANES shrink[l] = total[l] == 0.f ? 0.f : 1.f / total[l];
    for (int j = 0; j < s.columns; ++j) FOR_LANES sums[j * LANES + l] *= shrink[l];
    store(out, sums.data(), s.columns, s.columns, count);
    for (int l = 0; l < count; ++l) logs[l] = total[l] == 0.f ? -FLOOR : most[l] + std::log2(total[l]);
  }

 private:
  void forbid(const Head &head, int64_t first_query, int64_t first_key, int count) {
    for (int j = 0; j < count; ++j) {
      float *score = scores.data() + j * LANES;
      if (head.keep && !head.keep[first_key + j]) FOR_LANES score[l] = FORBIDDEN;
      if (!s.causal || first_key + j <= first_query) continue;
      const int late = static_cast<int>(std::min<int64_t>(first_key + j - first_query, LANES));
      for (int l = 0; l < late; ++l) score[l] = FORBIDDEN;
    }
  }

  // from scores to weights, measured by the largest score that each query has met
  void weigh(int count) {
    FOR_LANES shrink[l] = most[l];
    for (int j = 0; j < count; ++j) FOR_LANES {
        const float x = scores[j * LANES + l];
        most[l] = x > most[l] ? x : most[l];
      }
    FOR_LANES {
      shrink[l] = power_of_two(shrink[l] - most[l]);
      total[l] *= shrink[l];
    }
    for (int j = 0; j < count; ++j) FOR_LANES {
        const float weight = power_of_two(scores[j * LANES + l] - most[l]);
        scores[j * LANES + l] = weight;
        total[l] += weight;
      }
  }
};

// What is the same for all keys of a head: queries with the factor of their exponents, and <gradient, mean>
struct Asked {
  std::vector<float> queries, along;

  Asked(const Shape &s, const Head &head, const float *out, const float *grad) : queries(s.queries * s.width), along(s.queries) {
    for (int64_t i = 0; i < s.queries * s.width; ++i) queries[i] = head.query[i] * (s.scale * LOG2_E);
    for (int64_t u = 0; u < s.queries; ++u)
      for (int j = 0; j < s.columns; ++j) along[u] += grad[u * s.columns + j] * out[u * s.columns + j];
  }
};

// A block of LANES keys and values, and the gradients that queries give them
class Attended {
  const Shape &s;
  Block keys, values, rows, by_key, by_value, weights, slopes;
  alignas(64) float barred[LANES];
  int64_t first = 0;
  int count = 0;

 public:
  explicit Attended(const Shape &shape)
      : s(shape), keys(shape.width * LANES), values(shape.columns * LANES), rows(shape.lanes() * LANES, 0.f),
        by_key(keys.size()), by_value(values.size()), weights(QUERIES * LANES), slopes(QUERIES * LANES) {}

  void begin(const Head &head, int64_t start) {
    first = start;
    count = static_cast<int>(std::min<int64_t>(LANES, s.keys - start));
    load(keys.data(), head.key + start * s.width, s.width, s.width, count);
    load(values.data(), head.value + start * s.columns, s.columns, s.columns, count);
    for (int l = 0; l < count; ++l)
      std::copy_n(head.key + (start + l) * s.width, s.width, rows.data() + l * s.lanes());
    for (int l = 0; l < LANES; ++l)
      barred[l] = l < count && (!head.keep || head.keep[start + l]) ? 0.f : FORBIDDEN;
    std::fill(by_key.begin(), by_key.end(), 0.f);
    std::fill(by_value.begin(), by_value.end(), 0.f);
  }

  bool any() const {
    return std::any_of(barred, barred + count, [](float x) { return x == 0.f; });
  }

  // queries from u to u + number, their gradients `grad` and logarithms; adds to `by_query` [R][lanes()]
  void meet(const Asked &asked, const float *grad, const float *logs, float *by_query, int64_t u, int number) {
    const Numbers query{asked.queries.data() + u * s.width, s.width, 1}, slope{grad + u * s.columns, s.columns, 1};
    multiply<false>({weights.data(), LANES}, query, {keys.data(), LANES}, number, s.width, LANES);
    multiply<false>({slopes.data(), LANES}, slope, {values.data(), LANES}, number, s.columns, LANES);
    if (s.causal) bar_later_keys(u, number);
    for (int i = 0; i < number; ++i) {
      const float log = logs[u + i], along = asked.along[u + i];
      float *weight = weights.data() + i * LANES, *by = slopes.data() + i * LANES;
      FOR_LANES {
        weight[l] = power_of_two(weight[l] - log + barred[l]);
        by[l] = weight[l] * (by[l] - along);
      }
    }
    multiply<true>({by_value.data(), LANES}, {slope.at, 1, s.columns}, {weights.data(), LANES}, s.columns, number, LANES);
    multiply<true>({by_key.data(), LANES}, {query.at, 1, s.width}, {slopes.data(), LANES}, s.width, number, LANES);
    multiply<true>({by_query + u * s.lanes(), s.lanes()}, {slopes.data(), LANES, 1}, {rows.data(), s.lanes()}, number,
                   count, s.lanes());
  }

  void end(float *grad_key, float *grad_value) {
    for (float &x : by_key) x *= LN_2;  // the queries that it is made of have the factor of powers of 2
    store(grad_key + first * s.width, by_key.data(), s.width, s.width, count);
    store(grad_value + first * s.columns, by_value.data(), s.columns, s.columns, count);
  }

 private:
  void bar_later_keys(int64_t u, int number) {
    for (int i = 0; i < number; ++i)
      for (int64_t l = std::max<int64_t>(0, u + i + 1 - first); l < LANES; ++l) weights[i * LANES + l] = FORBIDDEN;
  }
};

}  // namespace

extern "C" {

// out (B H, R, v), logs (B H, R); query (B H, R, d), key (B H, N, d), value (B H, N, v), keep (B, N) or null
void gyroformer_softmax_attention(const float *query, const float *key, const float *value, const uint8_t *keep,
                                  float *out, float *logs, int64_t batch, int64_t queries, int64_t keys, int heads,
                                  int width, int columns, int causal, float scale, int threads) {
  const Shape s{queries, keys, width, columns, causal != 0, scale};
  const int64_t blocks = (queries + LANES - 1) / LANES;
#pragma omp parallel num_threads(threads)
  {
    const FlushToZero flush;
    Answers answers(s);
#pragma omp for schedule(dynamic)
    for (int64_t item = 0; item < batch * heads * blocks; ++item) {
      const int64_t h = item / blocks, u = item % blocks * LANES;
      const int count = static_cast<int>(std::min<int64_t>(LANES, queries - u));
      const Head head{query + h * queries * width, key + h * keys * width, value + h * keys * columns,
                      keep ? keep + h / heads * keys : nullptr};
      answers.begin(head, u, count);
      const int64_t end = s.causal ? std::min(keys, u + count) : keys;
      for (int64_t v = 0; v < end; v += KEYS)
        answers.meet(head, u, v, static_cast<int>(std::min<int64_t>(KEYS, end - v)));
      answers.end(out + (h * queries + u) * columns, logs + h * queries + u, count);
    }
  }
}

// `parts` (B H, P, R, lanes): the gradients of the queries from each of P shares of the keys, without `scale`
void gyroformer_softmax_attention_backward(const float *query, const float *key, const float *value,
                                           const uint8_t *keep, const float *out, const float *logs, const float *grad,
                                           float *grad_query, float *grad_key, float *grad_value, int64_t batch,
                                           int64_t queries, int64_t keys, int heads, int width, int columns, int causal,
                                           float scale, int threads) {
  const Shape s{queries, keys, width, columns, causal != 0, scale};
  const int64_t blocks = (keys + LANES - 1) / LANES, all = batch * heads, lanes = s.lanes();
  // where heads are few their keys are shared among threads, each with a gradient of the queries of its own
  const int64_t shares = all >= 4 * threads || threads == 1 ? 1 : threads;
  Block parts(all * shares * queries * lanes, 0.f);
#pragma omp parallel num_threads(threads)
  {
    const FlushToZero flush;
    Attended attended(s);
#pragma omp for schedule(dynamic)
    for (int64_t item = 0; item < all * shares; ++item) {
      const int64_t h = item / shares, share = item % shares;
      const Head head{query + h * queries * width, key + h * keys * width, value + h * keys * columns,
                      keep ? keep + h / heads * keys : nullptr};
      const float *slope = grad + h * queries * columns;
      const Asked asked(s, head, out + h * queries * columns, slope);
      for (int64_t block = share; block < blocks; block += shares) {
        attended.begin(head, block * LANES);
        const int64_t from = s.causal ? block * LANES / QUERIES * QUERIES : 0;
        for (int64_t u = attended.any() ? from : queries; u < queries; u += QUERIES)
          attended.meet(asked, slope, logs + h * queries, parts.data() + item * queries * lanes, u,
                        static_cast<int>(std::min<int64_t>(QUERIES, queries - u)));
        attended.end(grad_key + h * keys * width, grad_value + h * keys * columns);
      }
    }
#pragma omp for schedule(static)
    for (int64_t row = 0; row < all * queries; ++row) {
      const float *part = parts.data() + (row / queries * shares * queries + row % queries) * lanes;
      for (int j = 0; j < width; ++j) {
        float sum = 0.f;
        for (int64_t share = 0; share < shares; ++share) sum += part[share * queries * lanes + j];
        grad_query[row * width + j] = sum * scale;
      }
    }
  }
}

}  // extern "C"
