// How the rows of several operands belong together, and the loop over them.
#pragma once

#include <vector>
#include <omp.h>

#include "arrays.hpp"

namespace {

// Operands: up to MOST_IN vectors, a number for each row, the curvature. rows = outer × inner; operand i of row (a, b)
// is its row a * outer_stride[i] + b * inner_stride[i].
constexpr int MOST_IN = 3, NUMBER = MOST_IN, CURVATURE = MOST_IN + 1, OPERANDS = MOST_IN + 2;
struct Layout {
  int64_t outer, inner, width, threads;
  int64_t outer_stride[OPERANDS], inner_stride[OPERANDS], rows[OPERANDS];
  bool shared(int operand) const { return rows[operand] != outer * inner; }
};

// Which row of an operand belongs to each of LANES rows from `first` on; where there are fewer, the first stands in.
struct Places {
  int64_t at[LANES];
  [[gnu::always_inline]] Places(const Layout &layout, int operand, int64_t first, int count) {
    if (!layout.shared(operand)) {
      for (int l = 0; l < LANES; ++l) at[l] = first + (l < count ? l : 0);
      return;
    }
    int64_t a = layout.inner == 1 ? first : first / layout.inner, b = first - a * layout.inner;
    const int64_t outer = layout.outer_stride[operand], inner = layout.inner_stride[operand];
    for (int l = 0; l < LANES; ++l) {
      at[l] = l < count ? a * outer + b * inner : at[0];
      if (++b == layout.inner) b = 0, ++a;
    }
  }
};

// The numbers or curvatures of LANES rows.
[[gnu::always_inline]] inline Lanes load(const Layout &layout, int operand, const double *from, int64_t first, int count) {
  if (layout.rows[operand] == 1) return lanes(from[0]);
  Lanes loaded;
  const Places places(layout, operand, first, count);
  for (int l = 0; l < LANES; ++l) loaded[l] = from[places.at[l]];
  return loaded;
}

// Calls work(first row, rows) of body(thread) for blocks of LANES rows, on as many threads as pay; whether any of the
// masks that it returns is set.
template <class Body>
bool each_block(const Layout &layout, const Body &body) {
  const int64_t rows = layout.outer * layout.inner;
  const int threads = rows * layout.width < 32768 ? 1 : static_cast<int>(layout.threads);
  bool found = false;
#pragma omp parallel num_threads(threads) if (threads > 1) reduction(|| : found)
  {
    auto work = body(omp_get_thread_num());
    Mask seen{};
#pragma omp for schedule(static)
    for (int64_t r = 0; r < rows; r += LANES) seen |= work(r, static_cast<int>(rows - r < LANES ? rows - r : LANES));
    found = any(seen);
  }
  return found;
}

// The gradient of an operand that rows share: summed in double, thread by thread.
struct Sums {
  std::vector<std::vector<double>> parts;
  std::vector<Lanes> totals;  // where all rows share one number
  void open(int64_t threads, int64_t entries) {
    if (entries == 1) totals.assign(threads, Lanes{});
    parts.assign(threads, std::vector<double>(entries, 0.0));
  }
  template <class T>
  void close(T *out) const {
    for (size_t e = 0; e < parts[0].size(); ++e) {
      double sum = 0;
      for (const auto &part : parts) sum += part[e];
      for (const Lanes &total : totals)
        for (int l = 0; l < LANES; ++l) sum += total[l];
      out[e] = static_cast<T>(sum);
    }
  }
  // a number of each row
  [[gnu::always_inline]] void add(const Layout &layout, int operand, int thread, int64_t first, int count, Lanes numbers) {
    if (totals.empty()) {
      const Places places(layout, operand, first, count);
      for (int l = 0; l < count; ++l) parts[thread][places.at[l]] += numbers[l];
    } else {
      for (int l = count; l < LANES; ++l) numbers[l] = 0;
      totals[thread] += numbers;
    }
  }
};

}  // namespace
