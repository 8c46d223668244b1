// The attention part of a block at small widths, float32, forward and backward: u ↦ (W₂ attention(W₁ LN(u) + b₁) + b₂) ⊕ u
// with linear attention. Queries, keys and values are computed where they are needed and never written: each pass reads
// a token, and the backward pass computes everything again.
//
// As in attention.cpp, a caller who has only some of the tokens asks for one pass at a time and adds up the sums between.

#include <algorithm>
#include <cstring>
#include <vector>
#include <omp.h>

#include "block_parts.hpp"
#include "heads.hpp"
#include "translation.hpp"

namespace {

struct Shape {
  int64_t batch, tokens, read;
  int heads, dim, width, columns;
  int64_t entries;  // of the sums over keys
  Shape(int64_t batch, int64_t tokens, int64_t read, int heads, int dim)
      : batch(batch), tokens(tokens), read(read), heads(heads), dim(dim), width(dim / heads), columns(width + 1),
        entries(1LL * dim * columns) {}
};

// What the passes share, for LANES tokens.
struct Tile {
  const Shape &shape;
  const float *k;
  Norm norm;
  Linear to_query, to_key, to_value, to_both, to_step;  // both: keys and values
  Block u, normal, query, both, mean, step;
  float *const key, *const value;  // the halves of `both`
  Rows rows;
  Keys keys;
  std::vector<Queries> queries;  // a head each: the backward pass needs all of them
  Translation translation;

  Tile(const Shape &shape, const float *k, Norm norm, Linear qkv, Linear out)
      : shape(shape), k(k), norm(std::move(norm)), to_query(qkv.rows(0, shape.dim)), to_key(qkv.rows(shape.dim, shape.dim)),
        to_value(qkv.rows(2 * shape.dim, shape.dim)), to_both(qkv.rows(shape.dim, 2 * shape.dim)), to_step(out),
        u(shape.dim * LANES), normal(u), query(u), both(2 * shape.dim * LANES), mean(u), step(u), key(both.data()),
        value(key + shape.dim * LANES), rows(shape.dim), keys(shape.width), translation(shape.width) {
    queries.reserve(shape.heads);
    for (int h = 0; h < shape.heads; ++h) queries.emplace_back(shape.width);
  }

  int at(int head) const { return head * shape.width * LANES; }

  void read(const float *from, int count) {
    load(u.data(), from, shape.dim, shape.dim, count);
    norm.apply(normal.data(), u.data());
    to_value.apply(value, normal.data());
  }

  void find_keys(int head, const uint8_t *mask, int count) {
    keys.from(key + at(head), value + at(head), k[head], mask, count);
  }

  // up to the step that is added to u; `sums` are those over keys
  void find_step(const float *sums) {
    to_query.apply(query.data(), normal.data());
    for (int h = 0; h < shape.heads; ++h) {
      const float *m = sums + h * shape.width * shape.columns;
      queries[h].answer(mean.data() + at(h), query.data() + at(h), value + at(h), m, k[h]);
    }
    to_step.apply(step.data(), mean.data());
  }

  void add() {
    for (int h = 0; h < shape.heads; ++h) translation.apply(step.data() + at(h), u.data() + at(h), k[h]);
  }
};

enum { NORM_WEIGHT, NORM_BIAS, QUERY_WEIGHT, BOTH_WEIGHT, QUERY_BIAS, BOTH_BIAS, OUT_WEIGHT, OUT_BIAS };

// The gradients of queries: through the sum, the output map and the means to the sums over keys. Writes all of grad_u
// but what comes through keys and values, and what each query gives to its value's factor of transport.
void query_gradients(Tile &tile, Gradients &sums, int me, double *slope, const float *m, float *by_m, const float *grad,
                     float *grad_u, float *transport, int count) {
  const Shape &shape = tile.shape;
  float *g = tile.key;  // not in use here
  tile.find_step(m);
  load(g, grad, shape.dim, shape.dim, count);
  for (int h = 0; h < shape.heads; ++h)
    slope[h] += tile.translation.back(tile.step.data() + tile.at(h), tile.u.data() + tile.at(h), g + tile.at(h), tile.k[h]);
  tile.to_step.back(g, sums.of(me, OUT_WEIGHT), sums.of(me, OUT_BIAS), tile.step.data(), tile.rows.of(tile.mean.data()));
  for (int h = 0; h < shape.heads; ++h) {
    const int64_t of_head = 1LL * h * shape.width * shape.columns;
    float part[LANES];
    slope[h] += tile.queries[h].back(g + tile.at(h), tile.query.data() + tile.at(h), m + of_head,
                                     by_m + of_head * VECTOR, part, tile.k[h]);
    for (int l = 0; l < count; ++l) transport[l * shape.heads + h] = part[l];
  }
  tile.to_query.back(tile.mean.data(), sums.of(me, QUERY_WEIGHT), sums.of(me, QUERY_BIAS), g, tile.rows.of(tile.normal.data()));
  tile.norm.back(tile.u.data(), sums.of(me, NORM_WEIGHT), sums.of(me, NORM_BIAS), tile.mean.data());
  store(grad_u, tile.u.data(), shape.dim, shape.dim, count);
}

// The gradients of keys and values, through the sums; adds to grad_u, of which the first `asked` rows are written.
void key_gradients(Tile &tile, Gradients &sums, int me, double *slope, const float *by_sums, const uint8_t *mask,
                   float *grad_u, const float *transport, int count, int asked) {
  const Shape &shape = tile.shape;
  Block &total = tile.u;  // not in use here
  tile.to_key.apply(tile.key, tile.normal.data());
  for (int h = 0; h < shape.heads; ++h) {
    float part[LANES] = {};
    for (int l = 0; l < asked; ++l) part[l] = transport[l * shape.heads + h];
    tile.find_keys(h, mask, count);
    slope[h] += tile.keys.back(tile.key + tile.at(h), tile.value + tile.at(h),
                               by_sums + 1LL * h * shape.width * shape.columns, part, tile.k[h]);
  }
  tile.to_both.back(tile.mean.data(), sums.of(me, BOTH_WEIGHT), sums.of(me, BOTH_BIAS), tile.both.data(),
                    tile.rows.of(tile.normal.data()));
  load(total.data(), grad_u, shape.dim, shape.dim, asked);
  tile.norm.back(total.data(), sums.of(me, NORM_WEIGHT), sums.of(me, NORM_BIAS), tile.mean.data());
  store(grad_u, total.data(), shape.dim, shape.dim, count);
}

int lanes_from(int64_t first, int64_t end) { return static_cast<int>(std::clamp<int64_t>(end - first, 0, LANES)); }

}  // namespace

extern "C" {

// out (B, R, dim) of the first R tokens; sums (B, H, d, d + 1); u (B, T, dim); norm_weight, norm_bias (dim); qkv (3 dim, dim)
// and out_weight (dim, dim) with their biases; k (H); mask (B, T) or null; pass: FIRST writes the sums only, SECOND takes
// them and writes `out`
void gyroformer_attention_step(const float *u, const float *norm_weight, const float *norm_bias, const float *qkv,
                               const float *qkv_bias, const float *out_weight, const float *out_bias, const float *k,
                               const uint8_t *mask, float *out, float *sums, int64_t batch, int64_t tokens,
                               int64_t read, int pass, int heads, int dim, float eps, int threads) {
  const Shape shape(batch, tokens, read, heads, dim);
  std::vector<Block> parts(threads, Block(shape.entries * VECTOR, 0.f));
#pragma omp parallel num_threads(threads)
  {
    Block &acc = parts[omp_get_thread_num()];
    Tile tile(shape, k, {norm_weight, norm_bias, dim, eps}, {qkv, qkv_bias, dim, 3 * dim}, {out_weight, out_bias, dim, dim});
    for (int64_t b = 0; b < batch; ++b) {
      if (pass & FIRST) {
        std::fill(acc.begin(), acc.end(), 0.f);
#pragma omp for schedule(static)
        for (int64_t t0 = 0; t0 < tokens; t0 += LANES) {
          const int count = lanes_from(t0, tokens);
          tile.read(u + (b * tokens + t0) * dim, count);
          tile.to_key.apply(tile.key, tile.normal.data());
          for (int h = 0; h < heads; ++h) {
            tile.find_keys(h, mask ? mask + b * tokens + t0 : nullptr, count);
            tile.keys.add(acc.data() + 1LL * h * shape.width * shape.columns * VECTOR);
          }
        }
        gather(sums + b * shape.entries, parts, shape.entries);
      }
      if (!(pass & SECOND)) continue;
#pragma omp for schedule(static)
      for (int64_t t0 = 0; t0 < read; t0 += LANES) {
        const int count = lanes_from(t0, read);
        tile.read(u + (b * tokens + t0) * dim, count);
        tile.find_step(sums + b * shape.entries);
        tile.add();
        store(out + (b * read + t0) * dim, tile.step.data(), dim, dim, count);
      }
    }
  }
}

// by_sums (H, d, d + 1) and transport (R, H) lie between the two passes over a sequence. FIRST writes them and what queries
// give to the gradients; SECOND takes them and adds what keys and values give. Both are for one sequence if not together.
void gyroformer_attention_step_backward(const float *u, const float *norm_weight, const float *norm_bias,
                                        const float *qkv, const float *qkv_bias, const float *out_weight,
                                        const float *out_bias, const float *k, const uint8_t *mask, const float *sums,
                                        const float *grad, float *grad_u, float *grad_norm_weight,
                                        float *grad_norm_bias, float *grad_qkv, float *grad_qkv_bias, float *grad_out,
                                        float *grad_out_bias, float *grad_k, float *by_sums, float *transport,
                                        int64_t batch, int64_t tokens, int64_t read, int pass, int heads, int dim,
                                        float eps, int threads) {
  const Shape shape(batch, tokens, read, heads, dim);
  const int64_t square = 1LL * dim * dim;
  std::vector<Block> parts(threads, Block(shape.entries * VECTOR, 0.f));
  Gradients weights(threads, {dim, dim, square, 2 * square, dim, 2 * dim, square, dim});
  Slopes slopes(threads, heads);
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    Block &acc = parts[me];
    Tile tile(shape, k, {norm_weight, norm_bias, dim, eps}, {qkv, qkv_bias, dim, 3 * dim}, {out_weight, out_bias, dim, dim});
    for (int64_t b = 0; b < batch; ++b) {
      if (pass & FIRST) {
        std::fill(acc.begin(), acc.end(), 0.f);
#pragma omp for schedule(static)
        for (int64_t t0 = 0; t0 < read; t0 += LANES) {
          const int count = lanes_from(t0, read);
          const int64_t from = b * tokens + t0;
          tile.read(u + from * dim, count);
          query_gradients(tile, weights, me, slopes.of(me), sums + b * shape.entries, acc.data(),
                          grad + (b * read + t0) * dim, grad_u + from * dim, transport + t0 * heads, count);
        }
        gather(by_sums, parts, shape.entries);
      }
      if (!(pass & SECOND)) continue;
#pragma omp for schedule(static)
      for (int64_t t0 = 0; t0 < tokens; t0 += LANES) {
        const int count = lanes_from(t0, tokens);
        const int64_t from = b * tokens + t0;
        tile.read(u + from * dim, count);
        key_gradients(tile, weights, me, slopes.of(me), by_sums, mask ? mask + from : nullptr, grad_u + from * dim,
                      transport + t0 * heads, count, lanes_from(t0, read));
      }
    }
  }
  const bool add = !(pass & FIRST);
  weights.write({grad_norm_weight, grad_norm_bias, grad_qkv, grad_qkv + square, grad_qkv_bias, grad_qkv_bias + dim,
                 grad_out, grad_out_bias}, add);
  for (int h = 0; h < heads; ++h) grad_k[h] = (add ? grad_k[h] : 0.f) + slopes.total(h);
}

}  // extern "C"
