// Sums of exp(-d²) over lists of near nodes and over random ones that stand for all others, float32, forward and
// backward; and the choice of the nearest among candidates, which makes such lists.
//
// The mathematics is that of gyroformer/ops/near_field.py. Points come as rows of H d sines and H cosines.
//
// Near: a row meets its list, whose points are gathered into tiles of LANES columns. Far: the nodes stand in a random
// ring, and each meets the `reach` nodes behind it: in a layout by coordinates these are neighbours in memory, and a
// tile is read where it lies. Each far pair counts for both of its ends. Pairs that are near or adjacent are left out of
// the far sums; they are few, and taken out of a tile one by one.
//
// The work is cut into as many parts as there are threads; each part adds to columns in a buffer of its own, and the
// buffers are joined in the order of the parts. So the same number of threads gives the same bits.
//
// A caller may ask for its share only, a run of the nodes and of the places in the ring: sums and gradients of all
// shares add up to those of all.

#include <algorithm>
#include <vector>
#include <omp.h>

#include "pair_terms.hpp"

namespace {

struct Points {  // rows of `size` floats: sines of all heads, then cosines
  const float *rows, *k, *rise, *pull;  // the last two are biases of nodes as rows and as columns, or null
  int64_t nodes;
  int heads, width, size;

  const float *at(int64_t node) const { return rows + node * size; }
};

struct Event {  // a term that does not count: of the node at `row` (side 0), or of the one `offset` behind it (side 1)
  int64_t row;
  int offset, side;
};

struct Share {  // one of `count` equal runs of the nodes, by number and by place in the ring
  int index, count;

  // part i of n takes the nodes from bound(i) to bound(i + 1)
  int64_t bound(int64_t nodes, int part, int parts) const {
    return nodes * (int64_t{index} * parts + part) / (int64_t{count} * parts);
  }
};

struct Field {
  Points points;
  const int32_t *near;   // [nodes][listed], -1 for no node
  const int64_t *order;  // the ring
  int listed, reach, tiles;
  int64_t stride;                                // of a coordinate in the ring's layout
  std::vector<float> ring, ring_rise, ring_pull;  // [size][stride], the beginning once more behind the end
  std::vector<int64_t> starts;                    // where a row's events begin
  std::vector<Event> events;
  float poison;  // 0, or NaN if any input is not finite: series of bits would hide it
  Share share{0, 1};

  bool biased() const { return points.rise; }
};

void find_events(Field &f, Lists left, int threads) {
  const int64_t n = f.points.nodes;
  std::vector<int32_t> place(n);
  for (int64_t p = 0; p < n; ++p) place[f.order[p]] = static_cast<int32_t>(p);
  std::vector<std::vector<Event>> found(threads);
  const Share all{0, 1};  // whatever the share: a node's events may be at the places of others
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int part = 0; part < threads; ++part)
    for (int64_t u = all.bound(n, part, threads); u < all.bound(n, part + 1, threads); ++u) {
      const auto leave = [&](int64_t v) {
        int64_t ahead = place[v] - place[u];
        if (ahead < 0) ahead += n;
        if (ahead <= f.reach) found[part].push_back({place[u], static_cast<int>(ahead), 0});
        else if (n - ahead <= f.reach) found[part].push_back({place[v], static_cast<int>(n - ahead), 1});
      };
      for (int64_t i = left.indptr[u]; i < left.indptr[u + 1]; ++i) leave(left.indices[i]);
      for (int i = 0; i < f.listed; ++i)
        if (f.near[u * f.listed + i] >= 0) leave(f.near[u * f.listed + i]);
    }
  f.starts.assign(n + 1, 0);
  for (const auto &part : found)
    for (const Event &event : part) ++f.starts[event.row + 1];
  for (int64_t p = 0; p < n; ++p) f.starts[p + 1] += f.starts[p];
  f.events.resize(f.starts[n]);
  std::vector<int64_t> next(f.starts.begin(), f.starts.end() - 1);
  for (const auto &part : found)
    for (const Event &event : part) f.events[next[event.row]++] = event;
}

Field prepare(const Points &points, Lists left, const int32_t *near, const int64_t *order, int listed, int reach,
              int threads) {
  Field f{points, near, order, listed, reach, (reach + LANES - 1) / LANES, 0, {}, {}, {}, {}, {}, 0.f};
  const int64_t n = points.nodes;
  const int size = points.size;
  f.poison = nothing(points.rows, n * size) + nothing(points.k, points.heads);
  if (points.rise) f.poison += nothing(points.rise, n) + nothing(points.pull, n);
  if (!reach) return f;
  const int64_t length = n + f.tiles * LANES;
  // an odd number of cache lines: coordinates of one node are not in the same place of the cache
  f.stride = ((length + 15) / 16 | 1) * 16;
  f.ring.assign(static_cast<size_t>(f.stride) * size, 0.f);
  if (f.biased()) f.ring_rise.assign(f.stride, 0.f), f.ring_pull.assign(f.stride, 0.f);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t p = 0; p < length; ++p) {
    const int64_t v = order[p % n];
    for (int j = 0; j < size; ++j) f.ring[j * f.stride + p] = points.at(v)[j];
    if (f.biased()) f.ring_rise[p] = points.rise[v], f.ring_pull[p] = points.pull[v];
  }
  find_events(f, left, threads);
  return f;
}

// What a row and LANES columns need
struct Lane {
  std::vector<float> by_q, by_k;  // [heads][LANES]: derivatives of d² in each head's q and k
  alignas(64) float q[LANES], square[LANES], x[LANES], e[LANES], back[LANES], mask[LANES], mine[LANES], twice[LANES];

  explicit Lane(int heads) : by_q(heads * LANES), by_k(heads * LANES) {}

  // d² or d of the row p and a tile, into x
  template <bool PLAIN, bool BACK>
  void measure(const Points &points, const float *p, const float *tile, int64_t stride) {
    const int d = points.width, all = points.heads * d;
    FOR_LANES square[l] = 0.f;
    for (int h = 0; h < points.heads; ++h) {
      quotients(q, p + h * d, p[all + h], tile + h * d * stride, tile + (all + h) * stride, d, stride);
      distances<BACK>(q, points.k[h], square, by_q.data() + h * LANES, by_k.data() + h * LANES);
    }
    FOR_LANES x[l] = PLAIN ? std::sqrt(square[l]) : square[l];
  }

  // exp(a + b - x) of the lanes that the mask keeps; `own` is the row's bias, `others` the columns', null for none
  void fall(float *to, float own, const float *others) {
    if (!others) {
      fall_off<false, false>(to, x, mask, nullptr);
      return;
    }
    FOR_LANES mine[l] = own;
    tilted(to, x, mask, mine, others);
  }

  // turns the worth of each term, in `e`, to the derivative in d²; false if there is nothing
  template <bool PLAIN>
  bool derive() {
    int any = 0;
#pragma omp simd reduction(| : any)
    for (int l = 0; l < LANES; ++l) {
      e[l] *= PLAIN ? (x[l] > 0.f ? -.5f / (x[l] > 0.f ? x[l] : 1.f) : 0.f) : -1.f;
      any |= e[l] != 0.f;
    }
    return any;
  }

  // adds the gradients of all heads: to `row` [size][WIDE], `column` [size][column_stride] and `slope` [heads]
  void spread_all(const Points &points, const float *p, const float *tile, int64_t stride, float *row, float *column,
                  int64_t column_stride, double *slope) {
    const int d = points.width, all = points.heads * d;
    for (int h = 0; h < points.heads; ++h) {
      const float *to_q = by_q.data() + h * LANES, *to_k = by_k.data() + h * LANES;
      float sum = 0.f;
#pragma omp simd reduction(+ : sum)
      for (int l = 0; l < LANES; ++l) {
        twice[l] = 2.f * e[l] * to_q[l];
        sum += e[l] * to_k[l];
      }
      slope[h] += sum;
      spread(twice, p + h * d, p[all + h], tile + h * d * stride, tile + (all + h) * stride, d, row + h * d * WIDE,
             row + (all + h) * WIDE, column + h * d * column_stride, column + (all + h) * column_stride, stride,
             column_stride);
    }
  }
};

float total(const float *x) {
  float sum = 0.f;
#pragma omp simd reduction(+ : sum)
  for (int l = 0; l < LANES; ++l) sum += x[l];
  return sum;
}

// LANES entries of a list of nodes, from place `first` on, as a tile; `who` are its nodes, the mask says which there are
struct Gathered {
  std::vector<float> tile, pull;  // [size][LANES], [LANES]
  int32_t who[LANES];
  int count;

  explicit Gathered(int size) : tile(size * LANES, 0.f), pull(LANES, 0.f) {}

  void load(const Points &points, const int32_t *list, int length, int first, float *mask) {
    count = std::min(LANES, length - first);
    FOR_LANES mask[l] = 0.f;
    for (int l = 0; l < count; ++l) {
      const int32_t v = who[l] = list[first + l];
      if (v < 0) continue;
      mask[l] = 1.f;
      const float *from = points.at(v);
      for (int j = 0; j < points.size; ++j) tile[j * LANES + l] = from[j];
      if (points.pull) pull[l] = points.pull[v];
    }
  }
  const float *bias(const Points &points) const { return points.pull ? pull.data() : nullptr; }
};

void fetch(const Points &points, const int32_t *list, int length) {
  for (int i = 0; i < length; ++i)
    if (list[i] >= 0)
      for (int j = 0; j < points.size; j += 16) __builtin_prefetch(points.at(list[i]) + j);
}

template <bool PLAIN>
void near_sums(const Field &f, int64_t first, int64_t last, double *sums) {
  const Points &points = f.points;
  Lane lane(points.heads);
  Gathered listed(points.size);
  for (int64_t u = first; u < last; ++u) {
    const int32_t *list = f.near + u * f.listed;
    if (u + 1 < last) fetch(points, list + f.listed, f.listed);
    for (int at = 0; at < f.listed; at += LANES) {
      listed.load(points, list, f.listed, at, lane.mask);
      lane.measure<PLAIN, false>(points, points.at(u), listed.tile.data(), LANES);
      lane.fall(lane.e, f.biased() ? points.rise[u] : 0.f, listed.bias(points));
      sums[u] += total(lane.e);
    }
  }
}

// The terms of the row at place p and the tile t behind it: `e` of the row, `back` of the columns
void far_terms(const Field &f, Lane &lane, int64_t p, int t) {
  const int first = 1 + t * LANES;  // the offset of lane 0
  FOR_LANES lane.mask[l] = first + l <= f.reach ? 1.f : 0.f;
  if (f.biased()) {
    lane.fall(lane.e, f.ring_rise[p], f.ring_pull.data() + p + first);
    lane.fall(lane.back, f.ring_pull[p], f.ring_rise.data() + p + first);
  } else {
    lane.fall(lane.e, 0.f, nullptr);
    FOR_LANES lane.back[l] = lane.e[l];
  }
  for (int64_t i = f.starts[p]; i < f.starts[p + 1]; ++i) {
    const Event &event = f.events[i];
    if (event.offset >= first && event.offset < first + LANES)
      (event.side ? lane.back : lane.e)[event.offset - first] = 0.f;
  }
}

template <bool PLAIN>
void far_sums(const Field &f, int64_t first, int64_t last, double *rows, std::vector<double> &columns) {
  Lane lane(f.points.heads);
  columns.assign(last - first + f.tiles * LANES, 0.0);
  for (int64_t p = first; p < last; ++p)
    for (int t = 0; t < f.tiles; ++t) {
      const int64_t at = p + 1 + t * LANES;
      lane.measure<PLAIN, false>(f.points, f.points.at(f.order[p]), f.ring.data() + at, f.stride);
      far_terms(f, lane, p, t);
      rows[f.order[p]] += total(lane.e);
      double *to = columns.data() + at - first;
      for (int l = 0; l < LANES; ++l) to[l] += lane.back[l];
    }
}

template <bool PLAIN>
void forward(const Field &f, float scale, float *out, int threads) {
  const int64_t n = f.points.nodes;
  std::vector<double> near(n, 0.0), far(f.reach ? n : 0, 0.0);
  std::vector<std::vector<double>> columns(threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int part = 0; part < threads; ++part) {
    const FlushToZero flush;
    const int64_t first = f.share.bound(n, part, threads), last = f.share.bound(n, part + 1, threads);
    near_sums<PLAIN>(f, first, last, near.data());
    if (f.reach) far_sums<PLAIN>(f, first, last, far.data(), columns[part]);
  }
  for (int part = 0; part < threads && f.reach; ++part)
    for (size_t i = 0; i < columns[part].size(); ++i)
      far[f.order[(f.share.bound(n, part, threads) + i) % n]] += columns[part][i];
  for (int64_t u = 0; u < n; ++u) {
    const double sum = near[u] + (f.reach ? scale * far[u] : 0.0);
    // a part of a sum has no logarithm that would be of use
    out[u] = static_cast<float>(f.share.count == 1 ? std::log1p(sum) : sum) + f.poison;
  }
}

struct Gradients {  // of one part of the work
  std::vector<float> points;       // [nodes][size]
  std::vector<double> rise, pull;  // [nodes], empty without biases
  std::vector<double> k;           // [heads]

  Gradients(const Points &of)
      : points(of.nodes * of.size, 0.f), rise(of.rise ? of.nodes : 0, 0.0), pull(rise), k(of.heads, 0.0) {}

  // adds the sums over lanes of a row's gradient [size][WIDE]
  void add_row(int64_t u, const std::vector<float> &row, int size) {
    for (int i = 0; i < size; ++i) {
      float sum = 0.f;
#pragma omp simd reduction(+ : sum)
      for (int w = 0; w < WIDE; ++w) sum += row[i * WIDE + w];
      points[u * size + i] += sum;
    }
  }
};

template <bool PLAIN>
void near_gradients(const Field &f, const float *worth, int64_t first, int64_t last, Gradients &to) {
  const Points &points = f.points;
  const int size = points.size;
  Lane lane(points.heads);
  Gathered listed(size);
  std::vector<float> row(size * WIDE), column(size * LANES);
  for (int64_t u = first; u < last; ++u) {
    const int32_t *list = f.near + u * f.listed;
    if (u + 1 < last) fetch(points, list + f.listed, f.listed);
    std::fill(row.begin(), row.end(), 0.f);
    for (int at = 0; at < f.listed; at += LANES) {
      listed.load(points, list, f.listed, at, lane.mask);
      lane.measure<PLAIN, true>(points, points.at(u), listed.tile.data(), LANES);
      lane.fall(lane.e, f.biased() ? points.rise[u] : 0.f, listed.bias(points));
      FOR_LANES lane.e[l] *= worth[u];
      if (f.biased()) {
        to.rise[u] += total(lane.e);
        for (int l = 0; l < listed.count; ++l)
          if (listed.who[l] >= 0) to.pull[listed.who[l]] += lane.e[l];
      }
      if (!lane.derive<PLAIN>()) continue;
      std::fill(column.begin(), column.end(), 0.f);
      lane.spread_all(points, points.at(u), listed.tile.data(), LANES, row.data(), column.data(), LANES, to.k.data());
      for (int l = 0; l < listed.count; ++l) {
        if (lane.e[l] == 0.f) continue;
        float *back = to.points.data() + static_cast<int64_t>(listed.who[l]) * size;
        for (int j = 0; j < size; ++j) back[j] += column[j * LANES + l];
      }
    }
    to.add_row(u, row, size);
  }
}

struct RingGradients {  // of the columns behind a part of the ring
  int64_t stride;
  std::vector<float> points;  // [size][stride]
  std::vector<double> rise, pull;
};

template <bool PLAIN>
void far_gradients(const Field &f, const float *worth, const float *ring_worth, int64_t first, int64_t last,
                   Gradients &to, RingGradients &ring) {
  const Points &points = f.points;
  const int size = points.size;
  Lane lane(points.heads);
  std::vector<float> row(size * WIDE);
  ring.stride = ((last - first + f.tiles * LANES + 15) / 16 | 1) * 16;
  ring.points.assign(size * ring.stride, 0.f);
  ring.rise.assign(f.biased() ? ring.stride : 0, 0.0), ring.pull = ring.rise;
  for (int64_t p = first; p < last; ++p) {
    const int64_t u = f.order[p];
    std::fill(row.begin(), row.end(), 0.f);
    for (int t = 0; t < f.tiles; ++t) {
      const int64_t at = p + 1 + t * LANES, place = at - first;
      const float *tile = f.ring.data() + at, *others = ring_worth + at;
      lane.measure<PLAIN, true>(points, points.at(u), tile, f.stride);
      far_terms(f, lane, p, t);
      FOR_LANES lane.e[l] *= worth[u], lane.back[l] *= others[l];
      if (f.biased()) {
        to.rise[u] += total(lane.e), to.pull[u] += total(lane.back);
        for (int l = 0; l < LANES; ++l) ring.pull[place + l] += lane.e[l], ring.rise[place + l] += lane.back[l];
      }
      FOR_LANES lane.e[l] += lane.back[l];
      if (!lane.derive<PLAIN>()) continue;
      lane.spread_all(points, points.at(u), tile, f.stride, row.data(), ring.points.data() + place, ring.stride,
                      to.k.data());
    }
    to.add_row(u, row, size);
  }
}

void join(const Field &f, const RingGradients &ring, int64_t first, Gradients &to) {
  const int64_t n = f.points.nodes, length = static_cast<int64_t>(ring.stride);
  const int size = f.points.size;
  for (int64_t i = 0; i < length && first + i < n + f.tiles * LANES; ++i) {
    const int64_t v = f.order[(first + i) % n];
    for (int j = 0; j < size; ++j) to.points[v * size + j] += ring.points[j * ring.stride + i];
    if (f.biased()) to.rise[v] += ring.rise[i], to.pull[v] += ring.pull[i];
  }
}

template <bool PLAIN>
void backward(const Field &f, float scale, const float *logs, const float *grad, float *grad_points, float *grad_k,
              float *grad_rise, float *grad_pull, int threads) {
  const Points &points = f.points;
  const int64_t n = points.nodes;
  // what a near term is worth to its row, and a far one to either of its ends
  std::vector<float> worth(n), far(f.reach ? n : 0), ring(f.reach ? f.stride : 0, 0.f);
  for (int64_t u = 0; u < n; ++u) worth[u] = grad[u] * std::exp(-static_cast<double>(logs[u])) + f.poison;
  for (size_t u = 0; u < far.size(); ++u) far[u] = scale * worth[u];
  for (int64_t p = 0; f.reach && p < n + f.tiles * LANES; ++p) ring[p] = far[f.order[p % n]];
  std::vector<Gradients> parts(threads, Gradients(points));
  std::vector<RingGradients> rings(threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int part = 0; part < threads; ++part) {
    const FlushToZero flush;
    const int64_t first = f.share.bound(n, part, threads), last = f.share.bound(n, part + 1, threads);
    near_gradients<PLAIN>(f, worth.data(), first, last, parts[part]);
    if (f.reach) far_gradients<PLAIN>(f, far.data(), ring.data(), first, last, parts[part], rings[part]);
  }
  for (int part = 0; part < threads && f.reach; ++part) join(f, rings[part], f.share.bound(n, part, threads), parts[0]);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < n * points.size; ++i) {
    double sum = 0;
    for (const Gradients &part : parts) sum += part.points[i];
    grad_points[i] = static_cast<float>(sum);
  }
  for (int h = 0; h < points.heads; ++h) {
    double sum = 0;
    for (const Gradients &part : parts) sum += part.k[h];
    grad_k[h] = static_cast<float>(sum);
  }
  for (int64_t u = 0; f.biased() && u < n; ++u) {
    double rise = 0, pull = 0;
    for (const Gradients &part : parts) rise += part.rise[u], pull += part.pull[u];
    grad_rise[u] = static_cast<float>(rise), grad_pull[u] = static_cast<float>(pull);
  }
}

// Random numbers that depend on a seed, a row, and how many were drawn for it
struct Random {
  uint64_t state;

  Random(uint64_t seed, uint64_t row) : state(seed + row * 0x9e3779b97f4a7c15u) { next(); }

  uint64_t next() {  // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  int64_t below(int64_t count) { return static_cast<int64_t>((next() >> 32) * static_cast<uint64_t>(count) >> 32); }
};

struct Renewal {  // lists as they were, and how many candidates of which kind are drawn
  Points points;
  Lists left, back;  // what a node leaves out, and who leaves it out; the same if the graph is undirected
  const int32_t *lists;
  int listed, listed_by, near_of_near, near_of_neighbours, two_steps, neighbours_of_near, any;
  uint64_t seed;
  std::vector<int32_t> by;  // [nodes][listed_by]: nodes that list a node, -1 for none

  // a node of u's list; u itself if there is none
  int64_t near(int64_t u, Random &random) const {
    const int32_t v = listed ? lists[u * listed + random.below(listed)] : -1;
    return v < 0 ? u : v;
  }
  // where a neighbour of u stands, along an edge or against it; null if there is none
  const int64_t *neighbour(int64_t u, Random &random) const {
    const int64_t ahead = left.indptr[u + 1] - left.indptr[u];
    const int64_t behind = back.indices == left.indices ? 0 : back.indptr[u + 1] - back.indptr[u];
    if (!(ahead + behind)) return nullptr;
    const int64_t place = random.below(ahead + behind);
    return place < ahead ? left.indices + left.indptr[u] + place : back.indices + back.indptr[u] + place - ahead;
  }

  void turn() {
    by.assign(points.nodes * listed_by, -1);
    for (int64_t u = 0; listed_by && u < points.nodes; ++u) {
      Random random(seed ^ 0x5851f42d4c957f2du, u);
      for (int i = 0; i < listed; ++i) {
        const int32_t v = lists[u * listed + i];
        if (v >= 0) by[static_cast<int64_t>(v) * listed_by + random.below(listed_by)] = static_cast<int32_t>(u);
      }
    }
  }
};

// The candidates of a row, each once, and the `listed` nearest of them, counting their biases
struct Choice {
  const Renewal &of;
  std::vector<int32_t> seen;  // the last row that looked at a node
  std::vector<int32_t> open;
  std::vector<int64_t> hops, drawn;
  std::vector<const int64_t *> spots;
  std::vector<std::pair<float, int32_t>> found;
  Lane lane;
  Gathered gathered;

  explicit Choice(const Renewal &renewal)
      : of(renewal), seen(of.points.nodes, -1), lane(of.points.heads), gathered(of.points.size) {}

  void add(int64_t v, int64_t u) {
    if (v < 0 || seen[v] == u) return;
    seen[v] = static_cast<int32_t>(u);
    open.push_back(static_cast<int32_t>(v));
    for (int j = 0; j < of.points.size; j += 16) __builtin_prefetch(of.points.at(v) + j);
  }

  void start(int64_t u) {
    open.clear();
    seen[u] = static_cast<int32_t>(u);
    for (int64_t i = of.left.indptr[u]; i < of.left.indptr[u + 1]; ++i)
      seen[of.left.indices[i]] = static_cast<int32_t>(u);
  }

  // In stages, each of which asks for the memory that the next one reads: the waits overlap
  void draw(int64_t u) {
    start(u);
    for (int i = 0; i < of.listed; ++i) add(of.lists[u * of.listed + i], u);
    for (int i = 0; i < of.listed_by; ++i) add(of.by[u * of.listed_by + i], u);
    Random random(of.seed, u);
    const auto neighbour = [&] {
      const int64_t *found = of.neighbour(u, random);
      return found ? *found : u;
    };
    hops.clear(), drawn.clear(), spots.clear();
    for (int i = 0; i < of.near_of_near; ++i) hops.push_back(of.near(u, random));
    for (int i = 0; i < of.near_of_neighbours; ++i) hops.push_back(neighbour());
    for (int64_t &hop : hops) {
      hop = hop * of.listed + random.below(of.listed);
      __builtin_prefetch(of.lists + hop);
    }
    const size_t to_lists = hops.size();
    for (int i = 0; i < of.two_steps; ++i) hops.push_back(neighbour());
    for (int i = 0; i < of.neighbours_of_near; ++i) hops.push_back(of.near(u, random));
    for (size_t i = to_lists; i < hops.size(); ++i)
      __builtin_prefetch(of.left.indptr + hops[i]), __builtin_prefetch(of.back.indptr + hops[i]);
    for (size_t i = to_lists; i < hops.size(); ++i)
      if (const int64_t *spot = of.neighbour(hops[i], random)) __builtin_prefetch(spot), spots.push_back(spot);
    for (size_t i = 0; i < to_lists; ++i) drawn.push_back(of.lists[hops[i]]);
    for (const int64_t *spot : spots) drawn.push_back(*spot);
    for (int i = 0; i < of.any; ++i) drawn.push_back(random.below(of.points.nodes));
    for (int64_t v : drawn) __builtin_prefetch(seen.data() + (v < 0 ? 0 : v));
    for (int64_t v : drawn) add(v, u);
  }

  void everyone(int64_t u) {
    start(u);
    for (int64_t v = 0; v < of.points.nodes; ++v) add(v, u);
  }

  void choose(int64_t u, int32_t *best) {
    const Points &points = of.points;
    const int length = static_cast<int>(open.size()), kept = std::min(length, of.listed);
    found.clear();
    for (int at = 0; at < length; at += LANES) {
      gathered.load(points, open.data(), length, at, lane.mask);
      lane.measure<false, false>(points, points.at(u), gathered.tile.data(), LANES);
      for (int l = 0; l < gathered.count; ++l)
        found.emplace_back(lane.x[l] - (points.pull ? gathered.pull[l] : 0.f), gathered.who[l]);
    }
    std::nth_element(found.begin(), found.begin() + kept, found.end());
    for (int i = 0; i < kept; ++i) best[i] = found[i].second;
    std::sort(best, best + kept);
    std::fill(best + kept, best + of.listed, -1);
  }
};

}  // namespace

extern "C" {

// out (N) = log(1 + Σ_near exp(rise_u + pull_v - d²) + scale Σ_far exp(...)): near (N, listed) are nodes, -1 for none;
// far are those at most `reach` places before or behind u in `order`, a permutation, that are neither near nor in u's
// list of indptr (N + 1) and indices; points (N, H (d + 1)): sines, then cosines; k (H); rise and pull (N), or null for
// none; plain: d instead of d². Of several shares, the sums without the 1 and the logarithm
void gyroformer_near_partition(const float *points, const float *k, const float *rise, const float *pull,
                               const int64_t *indptr, const int64_t *indices, const int32_t *near, const int64_t *order,
                               float *out, int64_t nodes, int listed, int reach, int heads, int width, int plain,
                               int share, int shares, float scale, int threads) {
  Field f = prepare({points, k, rise, pull, nodes, heads, width, heads * (width + 1)}, {indptr, indices}, near,
                          order, listed, reach, threads);
  f.share = {share, shares};
  (plain ? forward<true> : forward<false>)(f, scale, out, threads);
}

// logs and grad (N): the result above and the gradient in it; grad_rise and grad_pull are null with the biases
void gyroformer_near_partition_backward(const float *points, const float *k, const float *rise, const float *pull,
                                        const int64_t *indptr, const int64_t *indices, const int32_t *near,
                                        const int64_t *order, const float *logs, const float *grad, float *grad_points,
                                        float *grad_k, float *grad_rise, float *grad_pull, int64_t nodes, int listed,
                                        int reach, int heads, int width, int plain, int share, int shares, float scale,
                                        int threads) {
  Field f = prepare({points, k, rise, pull, nodes, heads, width, heads * (width + 1)}, {indptr, indices}, near,
                          order, listed, reach, threads);
  f.share = {share, shares};
  (plain ? backward<true> : backward<false>)(f, scale, logs, grad, grad_points, grad_k, grad_rise, grad_pull, threads);
}

// out (N, listed) = of nodes drawn by a seed from lists (N, listed), -1 for none, and from the graph, those v with the
// least d² - pull_v; neither a node itself nor one of its list of indptr and indices; ascending, -1 where there are too
// few; back_indptr and back_indices: the nodes that list a node. The numbers from listed_by on say how many candidates
// of each kind are drawn. With `exact` every node is one. Of several shares, the rows of one are written.
void gyroformer_renewed_lists(const float *points, const float *k, const float *pull, const int64_t *indptr,
                              const int64_t *indices, const int64_t *back_indptr, const int64_t *back_indices,
                              const int32_t *lists, int32_t *out, int64_t nodes, int64_t seed, int listed, int heads,
                              int width, int exact, int listed_by, int near_of_near, int near_of_neighbours,
                              int two_steps, int neighbours_of_near, int any, int share, int shares, int threads) {
  if (!listed) return;
  Renewal renewal{{points, k, nullptr, pull, nodes, heads, width, heads * (width + 1)}, {indptr, indices},
                  {back_indptr, back_indices}, lists, listed, listed_by, near_of_near, near_of_neighbours, two_steps,
                  neighbours_of_near, any, static_cast<uint64_t>(seed), {}};
  if (!exact) renewal.turn();
  const Share mine{share, shares};
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int part = 0; part < threads; ++part) {
    Choice choice(renewal);
    for (int64_t u = mine.bound(nodes, part, threads); u < mine.bound(nodes, part + 1, threads); ++u) {
      if (exact) choice.everyone(u);
      else choice.draw(u);
      choice.choose(u, out + u * listed);
    }
  }
}

}  // extern "C"
