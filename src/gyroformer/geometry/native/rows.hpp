// One pass over rows of points for any operation that is, row by row, a combination of its vectors with coefficients
// that depend on inner products and the curvature.
//
// An operation `Op` declares
//   IN      vectors that it takes; BASIS of them and their sums and differences, each row of `basis` the signs
//   GRAMS   inner products of the basis, as pairs in `grams`
//   PROBES  further vectors whose coefficients depend on the inner products: `probe` gives them in the basis, `probed`
//           which lanes need them. Their squared lengths are then computed from their coordinates, which keeps the
//           digits that an expansion would cancel
//   SCALAR  whether the result is a number a row (`finish` writes it to out[0]) or a vector (`finish` writes the
//           coefficients of the basis and the probes)
// in terms of a type S, Lanes or Dual: the gradient of the coefficients is that of the same text on Dual, and the
// gradients of the vectors follow from it here.
#pragma once

#include <cstring>
#include <vector>
#include <omp.h>

#include "arrays.hpp"
#include "dual.hpp"

namespace {

// rows = outer × inner; operand i of row (a, b) begins at a * outer_stride[i] + b * inner_stride[i] rows of its own
constexpr int MOST_IN = 3;
struct Layout {
  int64_t outer, inner, width, threads;
  int64_t outer_stride[MOST_IN + 1], inner_stride[MOST_IN + 1], rows[MOST_IN + 1];  // the last is the curvature's
  bool shared(int operand) const { return rows[operand] != outer * inner; }
};

// Which row of each of IN vectors, and of the curvature where there are several, belongs to each of `count` rows from
// `first` on.
template <int IN>
struct Places {
  int64_t at[MOST_IN + 1][LANES];
  [[gnu::always_inline]] Places(const Layout &layout, int64_t first, int count) {
    int64_t a = layout.inner == 1 ? first : first / layout.inner, b = first - a * layout.inner;
    for (int l = 0; l < count; ++l) {
      for (int v = 0; v < IN; ++v) at[v][l] = a * layout.outer_stride[v] + b * layout.inner_stride[v];
      at[MOST_IN][l] = a * layout.outer_stride[MOST_IN] + b * layout.inner_stride[MOST_IN];
      if (++b == layout.inner) b = 0, ++a;
    }
  }
};

using Doubles = std::vector<double>;

struct Scratch {  // [coordinate][LANES], aligned
  Doubles memory;
  Lanes *begin;
  explicit Scratch(int64_t width) : memory((width + 1) * LANES) {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    begin = reinterpret_cast<Lanes *>((address + 63) / 64 * 64);
  }
};

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Mask{__VA_ARGS__})
#endif

// Eight vectors of eight become their transpose.
[[gnu::always_inline]] inline void transpose(Lanes *m) {
  Lanes t[LANES];
  for (int i = 0; i < LANES; i += 2) {
    t[i] = SHUFFLE(m[i], m[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    t[i + 1] = SHUFFLE(m[i], m[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  Lanes u[LANES];
  for (int i = 0; i < LANES; i += 4)
    for (int j = 0; j < 2; ++j) {
      u[i + j] = SHUFFLE(t[i + j], t[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      u[i + j + 2] = SHUFFLE(t[i + j], t[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    m[i] = SHUFFLE(u[i], u[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    m[i + 4] = SHUFFLE(u[i], u[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// The sums of eight vectors, one a lane.
[[gnu::always_inline]] inline Lanes joined(const Lanes *m) {
  Lanes t[LANES / 2], u[2];
  for (int i = 0; i < LANES / 2; ++i)
    t[i] = SHUFFLE(m[2 * i], m[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14) + SHUFFLE(m[2 * i], m[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  for (int i = 0; i < 2; ++i)
    u[i] = SHUFFLE(t[2 * i], t[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(t[2 * i], t[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
  return SHUFFLE(u[0], u[1], 0, 1, 2, 3, 8, 9, 10, 11) + SHUFFLE(u[0], u[1], 4, 5, 6, 7, 12, 13, 14, 15);
}

// rows `at` of `from` into columns; missing rows are zero
template <class T>
void load_as(Lanes *to, const T *from, const int64_t *at, int width, int count) {
  double *out = reinterpret_cast<double *>(to);
  int j = 0;
  if (count < LANES) std::memset(out, 0, sizeof(double) * width * LANES);
  else
    for (; j + LANES <= width; j += LANES) {
      for (int l = 0; l < LANES; ++l) to[j + l] = read(from + at[l] * width + j);
      transpose(to + j);
    }
  for (int l = 0; l < count; ++l)
    for (int i = j; i < width; ++i) out[i * LANES + l] = static_cast<double>(from[at[l] * width + i]);
}

template <class T>
void store_as(T *to, const Lanes *from, int width, int count) {
  const double *in = reinterpret_cast<const double *>(from);
  int j = 0;
  if (count == LANES)
    for (; j + LANES <= width; j += LANES) {
      Lanes block[LANES];
      for (int l = 0; l < LANES; ++l) block[l] = from[j + l];
      transpose(block);
      for (int l = 0; l < LANES; ++l) write(to + l * width + j, block[l]);
    }
  for (int l = 0; l < count; ++l)
    for (int i = j; i < width; ++i) to[l * width + i] = static_cast<T>(in[i * LANES + l]);
}

inline void load(Lanes *to, Input from, const int64_t *at, int width, int count) {
  if (from.wide) load_as(to, static_cast<const double *>(from.data), at, width, count);
  else load_as(to, static_cast<const float *>(from.data), at, width, count);
}

inline void store(Output to, int64_t row, const Lanes *from, int width, int count) {
  if (to.wide) store_as(static_cast<double *>(to.data) + row * width, from, width, count);
  else store_as(static_cast<float *>(to.data) + row * width, from, width, count);
}

[[gnu::always_inline]] inline Lanes load_curvature(const Layout &layout, const double *k, const int64_t *at, int count) {
  if (layout.rows[MOST_IN] == 1) return lanes(k[0]);
  Lanes loaded{};
  for (int l = 0; l < count; ++l) loaded[l] = k[at[l]];
  return loaded;
}

[[gnu::always_inline]] inline Lanes signed_sum(Lanes sum, int sign, Lanes term) {
  return sign == 0 ? sum : sign > 0 ? sum + term : sum - term;
}

template <class Op>
struct Block {
  static constexpr int IN = Op::IN, BASIS = Op::BASIS, GRAMS = Op::GRAMS, PROBES = Op::PROBES;
  static constexpr int VARIABLES = GRAMS + PROBES + 1;
  static constexpr int COEFFICIENTS = Op::SCALAR ? 1 : BASIS + PROBES;
  const int width;
  Lanes *vectors[IN];
  Lanes grams[GRAMS + 1], squares[PROBES + 1], k;
  Lanes coefficients[PROBES + 1][BASIS];  // of the probes
  bool probed = false;

  explicit Block(int width) : width(width) {}

  [[gnu::always_inline]] inline void basis(Lanes *b, int j) const {
    for (int i = 0; i < BASIS; ++i) {
      b[i] = Lanes{};
      for (int v = 0; v < IN; ++v) b[i] = signed_sum(b[i], Op::basis[i][v], vectors[v][j]);
    }
  }

  [[gnu::always_inline]] inline Lanes probe(const Lanes *b, int p) const {
    Lanes sum = coefficients[p][0] * b[0];
    for (int i = 1; i < BASIS; ++i) sum += coefficients[p][i] * b[i];
    return sum;
  }

  // inner products of the basis, and those of a gradient with it where `along` is given
  void measure(const Lanes *grad, Lanes *along) {
    Lanes sums[GRAMS + 1] = {}, with[BASIS] = {}, b[BASIS];
    for (int j = 0; j < width; ++j) {
      basis(b, j);
      for (int g = 0; g < GRAMS; ++g) sums[g] += b[Op::grams[g][0]] * b[Op::grams[g][1]];
      if (along)
        for (int i = 0; i < BASIS; ++i) with[i] += grad[j] * b[i];
    }
    for (int g = 0; g < GRAMS; ++g) grams[g] = sums[g];
    if (along)
      for (int i = 0; i < BASIS; ++i) along[i] = with[i];
  }

  // squared lengths of the probes; for the gradient also their inner products with the basis and with it
  void probes(const Lanes *grad, Lanes (*with)[BASIS], Lanes *along) {
    for (int p = 0; p < PROBES; ++p) squares[p] = Lanes{};
    if constexpr (PROBES > 0) {
      probed = any(Op::probed(grams, k));
      if (!probed) return;
      Op::template probe<Lanes>(grams, k, coefficients);
      Lanes b[BASIS];
      if (with)
        for (int p = 0; p < PROBES; ++p) {
          along[p] = Lanes{};
          for (int i = 0; i < BASIS; ++i) with[p][i] = Lanes{};
        }
      for (int j = 0; j < width; ++j) {
        basis(b, j);
        for (int p = 0; p < PROBES; ++p) {
          const Lanes t = probe(b, p);
          squares[p] += t * t;
          if (!with) continue;
          if (grad) along[p] += grad[j] * t;
          for (int i = 0; i < BASIS; ++i) with[p][i] += t * b[i];
        }
      }
    }
  }
};

// Calls body(first row, rows) for blocks of LANES rows, on as many threads as pay.
template <class Body>
void each_block(const Layout &layout, const Body &body) {
  const int64_t rows = layout.outer * layout.inner;
  const int threads = rows * layout.width < 32768 ? 1 : static_cast<int>(layout.threads);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    auto work = body(omp_get_thread_num());
#pragma omp for schedule(static)
    for (int64_t r = 0; r < rows; r += LANES)
      work(r, static_cast<int>(rows - r < LANES ? rows - r : LANES));
  }
}

// The inner products of LANES rows with others, from eight sums a row that are joined at the end.
template <class T>
[[gnu::always_inline]] inline Lanes products(const T *const *rows, const T *const *others, int width) {
  Lanes sums[LANES] = {}, total{};
  int j = 0;
  for (; j + LANES <= width; j += LANES)
    for (int l = 0; l < LANES; ++l) {
      const Lanes x = read(rows[l] + j), y = read(others[l] + j);
      sums[l] += x * y;
    }
  if (j > 0) total = joined(sums);
  for (; j < width; ++j) {
    Lanes x, y;
    for (int l = 0; l < LANES; ++l) x[l] = static_cast<double>(rows[l][j]), y[l] = static_cast<double>(others[l][j]);
    total += x * y;
  }
  return total;
}

// LANES rows, at the first row where there are fewer
template <class T>
struct Rows {
  const T *at[LANES];
  [[gnu::always_inline]] Rows(const T *from, const int64_t *places, int width, int count) {
    for (int l = 0; l < LANES; ++l) at[l] = from + places[l < count ? l : 0] * width;
  }
  [[gnu::always_inline]] Rows(const T *from, int64_t first, int width, int count) {
    for (int l = 0; l < LANES; ++l) at[l] = from + (first + (l < count ? l : 0)) * width;
  }
};

// to = a x, or a x + b y
template <class T>
[[gnu::always_inline]] inline void combine(T *to, double a, const T *x, int width) {
  int j = 0;
  for (; j + LANES <= width; j += LANES) write(to + j, a * read(x + j));
  for (; j < width; ++j) to[j] = static_cast<T>(a * x[j]);
}

template <class T>
[[gnu::always_inline]] inline void combine(T *to, double a, const T *x, double b, const T *y, int width) {
  int j = 0;
  for (; j + LANES <= width; j += LANES) write(to + j, a * read(x + j) + b * read(y + j));
  for (; j < width; ++j) to[j] = static_cast<T>(a * x[j] + b * y[j]);
}

// Functions of the first vector's length, or the last vector (which may be the first) times such a function
template <class Op>
constexpr bool of_length = Op::GRAMS == 1 && (Op::IN == 1 || (Op::IN == 2 && !Op::SCALAR));

// Their forward pass: the coordinates stay in their rows.
template <class Op, class T>
void forward_by_length(const Layout &layout, double option, const double *k, const Input *in, T *out) {
  constexpr int LAST = Op::IN - 1;
  const int width = static_cast<int>(layout.width);
  each_block(layout, [&](int) {
    return [&](int64_t row, int count) {
      const Places<Op::IN> places(layout, row, count);
      const Rows<T> rows(static_cast<const T *>(in[0].data), places.at[0], width, count);
      const Lanes square = products(rows.at, rows.at, width), unused{};
      Lanes c[Op::IN];
      Op::template finish<Lanes>(&square, &unused, load_curvature(layout, k, places.at[MOST_IN], count), option, c);
      if constexpr (Op::SCALAR) {
        put({out, sizeof(T) == sizeof(double)}, row, c[0], count);
      } else {
        const Rows<T> scaled(static_cast<const T *>(in[LAST].data), places.at[LAST], width, count);
        for (int l = 0; l < count; ++l) combine(out + (row + l) * width, c[LAST][l], scaled.at[l], width);
      }
    };
  });
}

template <class Op>
void forward(const Layout &layout, double option, const double *k, const Input *in, Output out) {
  if constexpr (of_length<Op>) {
    if (out.wide) forward_by_length<Op>(layout, option, k, in, static_cast<double *>(out.data));
    else forward_by_length<Op>(layout, option, k, in, static_cast<float *>(out.data));
    return;
  }
  const int width = static_cast<int>(layout.width);
  each_block(layout, [&](int) {
    return [&, memory = Scratch((Op::IN + 1) * layout.width), block = Block<Op>(width)](int64_t row, int count) mutable {
      const Places<Op::IN> places(layout, row, count);
      for (int v = 0; v < Op::IN; ++v) {
        block.vectors[v] = memory.begin + v * width;
        load(block.vectors[v], in[v], places.at[v], width, count);
      }
      block.k = load_curvature(layout, k, places.at[MOST_IN], count);
      block.measure(nullptr, nullptr);
      block.probes(nullptr, nullptr, nullptr);
      Lanes c[Block<Op>::COEFFICIENTS];
      Op::template finish<Lanes>(block.grams, block.squares, block.k, option, c);
      if constexpr (Op::SCALAR) {
        put(out, row, c[0], count);
      } else {
        Lanes *result = memory.begin + Op::IN * width, b[Op::BASIS];
        for (int j = 0; j < width; ++j) {
          block.basis(b, j);
          Lanes sum = c[0] * b[0];
          for (int i = 1; i < Op::BASIS; ++i) sum += c[i] * b[i];
          if (Op::PROBES > 0 && block.probed)
            for (int p = 0; p < Op::PROBES; ++p) sum += c[Op::BASIS + p] * block.probe(b, p);
          result[j] = sum;
        }
        store(out, row, result, width, count);
      }
    };
  });
}

// The gradient of one operand: written where every row has its own, else summed in double, thread by thread.
struct Sums {
  std::vector<Doubles> parts;
  void open(int64_t threads, int64_t entries) { parts.assign(threads, Doubles(entries, 0.0)); }
  void close(Output out) const {
    for (size_t e = 0; e < parts[0].size(); ++e) {
      double sum = 0;
      for (const Doubles &part : parts) sum += part[e];
      put(out, static_cast<int64_t>(e), sum);
    }
  }
};

// The gradient of a function of one vector that every row has of its own.
template <class Op, class T>
void backward_of_one(const Layout &layout, double option, const double *k, const T *in, const T *grad, T *by_in,
                     double *grad_k) {
  using S = Dual<2>;
  const int width = static_cast<int>(layout.width);
  Sums slopes;
  if (grad_k) slopes.open(layout.threads, layout.rows[MOST_IN]);
  each_block(layout, [&](int thread) {
    return [&, thread](int64_t row, int count) {
      const Places<Op::IN> places(layout, row, count);
      const Rows<T> rows(in, places.at[0], width, count), others(grad, row, Op::SCALAR ? 1 : width, count);
      const S square = S::variable(products(rows.at, rows.at, width), 0), unused(0.0);
      const S curvature = S::variable(load_curvature(layout, k, places.at[MOST_IN], count), 1);
      S c;
      Op::template finish<S>(&square, &unused, curvature, option, &c);
      Lanes along;
      if constexpr (Op::SCALAR)
        for (int l = 0; l < LANES; ++l) along[l] = static_cast<double>(*others.at[l]);
      else
        along = products(rows.at, others.at, width);
      const Lanes twice = 2 * along * c.by[0], slope = along * c.by[1];
      if (by_in)
        for (int l = 0; l < count; ++l) {
          T *to = by_in + (row + l) * width;
          if constexpr (Op::SCALAR) combine(to, twice[l], rows.at[l], width);
          else combine(to, twice[l], rows.at[l], c.value[l], others.at[l], width);
        }
      if (grad_k)
        for (int l = 0; l < count; ++l) slopes.parts[thread][places.at[MOST_IN][l]] += slope[l];
    };
  });
  if (grad_k) slopes.close({grad_k, true});
}

template <class Op>
void backward(const Layout &layout, double option, const double *k, const Input *in, Input grad, const Output *grads,
              double *grad_k) {
  if constexpr (Op::IN == 1) {
    if (!layout.shared(0)) {
      const auto of_one = [&](auto number) {
        using T = decltype(number);
        backward_of_one<Op>(layout, option, k, static_cast<const T *>(in[0].data), static_cast<const T *>(grad.data),
                            static_cast<T *>(grads[0].data), grad_k);
      };
      return grad.wide ? of_one(0.0) : of_one(0.f);
    }
  }
  using Whole = Block<Op>;
  using S = Dual<Whole::VARIABLES>;
  constexpr int IN = Op::IN, BASIS = Op::BASIS, GRAMS = Op::GRAMS, PROBES = Op::PROBES;
  const int width = static_cast<int>(layout.width);
  Sums shared[IN], slopes;
  for (int v = 0; v < IN; ++v)
    if (grads[v] && layout.shared(v)) shared[v].open(layout.threads, layout.rows[v] * width);
  if (grad_k) slopes.open(layout.threads, layout.rows[MOST_IN]);
  each_block(layout, [&](int thread) {
    return [&, thread, memory = Scratch((2 * IN + 1) * layout.width), block = Whole(width)](int64_t row, int count) mutable {
      const Places<Op::IN> places(layout, row, count);
      for (int v = 0; v < IN; ++v) {
        block.vectors[v] = memory.begin + v * width;
        load(block.vectors[v], in[v], places.at[v], width, count);
      }
      block.k = load_curvature(layout, k, places.at[MOST_IN], count);
      Lanes *g = memory.begin + IN * width, along[BASIS] = {}, probe_along[PROBES + 1] = {}, with[PROBES + 1][BASIS] = {};
      Lanes number{};
      if constexpr (Op::SCALAR) {
        for (int l = 0; l < count; ++l) number[l] = get(grad, row + l);
        block.measure(nullptr, nullptr);
        block.probes(nullptr, with, probe_along);
      } else {
        int64_t own[LANES];
        for (int l = 0; l < LANES; ++l) own[l] = row + l;
        load(g, grad, own, width, count);
        block.measure(g, along);
        block.probes(g, with, probe_along);
      }

      // adjoints of the inner products, the probes' squares and the curvature
      S grams[GRAMS + 1], squares[PROBES + 1], c[Whole::COEFFICIENTS];
      for (int n = 0; n < GRAMS; ++n) grams[n] = S::variable(block.grams[n], n);
      for (int p = 0; p < PROBES; ++p) squares[p] = S::variable(block.squares[p], GRAMS + p);
      const S curvature = S::variable(block.k, GRAMS + PROBES);
      Op::template finish<S>(grams, squares, curvature, option, c);
      Lanes adjoint[Whole::VARIABLES];
      for (int n = 0; n < Whole::VARIABLES; ++n) {
        if constexpr (Op::SCALAR) {
          adjoint[n] = number * c[0].by[n];
        } else {
          adjoint[n] = Lanes{};
          for (int i = 0; i < BASIS; ++i) adjoint[n] += along[i] * c[i].by[n];
          for (int p = 0; p < PROBES; ++p) adjoint[n] += probe_along[p] * c[BASIS + p].by[n];
        }
      }
      if constexpr (PROBES > 0) {
        if (block.probed) {
          S coefficients[PROBES][BASIS];
          Op::template probe<S>(grams, curvature, coefficients);
          for (int p = 0; p < PROBES; ++p)
            for (int i = 0; i < BASIS; ++i) {
              const Lanes slope = 2 * adjoint[GRAMS + p];
              Lanes by = select(slope == 0, Lanes{}, slope * with[p][i]);
              if constexpr (!Op::SCALAR) by += c[BASIS + p].value * along[i];
              for (int n = 0; n < Whole::VARIABLES; ++n)
                if (n < GRAMS || n == GRAMS + PROBES) adjoint[n] += by * coefficients[p][i].by[n];
            }
        }
      }
      if (grad_k)
        for (int l = 0; l < count; ++l)
          slopes.parts[thread][places.at[MOST_IN][l]] += adjoint[GRAMS + PROBES][l];

      // gradients of the basis, then of the vectors that it is made of
      Lanes *results = memory.begin + (IN + 1) * width, b[BASIS], by[BASIS];
      for (int j = 0; j < width; ++j) {
        block.basis(b, j);
        for (int i = 0; i < BASIS; ++i) {
          if constexpr (Op::SCALAR) by[i] = Lanes{};
          else by[i] = c[i].value * g[j];
        }
        for (int n = 0; n < GRAMS; ++n) {
          const int first = Op::grams[n][0], second = Op::grams[n][1];
          by[first] += adjoint[n] * b[second];
          by[second] += adjoint[n] * b[first];
        }
        if (PROBES > 0 && block.probed)
          for (int p = 0; p < PROBES; ++p) {
            Lanes through = 2 * adjoint[GRAMS + p] * block.probe(b, p);
            if constexpr (!Op::SCALAR) through += c[BASIS + p].value * g[j];
            for (int i = 0; i < BASIS; ++i) by[i] += block.coefficients[p][i] * through;
          }
        for (int v = 0; v < IN; ++v) {
          Lanes sum{};
          for (int i = 0; i < BASIS; ++i) sum = signed_sum(sum, Op::basis[i][v], by[i]);
          results[v * width + j] = sum;
        }
      }
      for (int v = 0; v < IN; ++v) {
        if (!grads[v]) continue;
        const double *result = reinterpret_cast<const double *>(results + v * width);
        if (layout.shared(v)) {
          for (int l = 0; l < count; ++l) {
            double *sum = shared[v].parts[thread].data() + places.at[v][l] * width;
            for (int j = 0; j < width; ++j) sum[j] += result[j * LANES + l];
          }
        } else {
          store(grads[v], row, results + v * width, width, count);
        }
      }
    };
  });
  for (int v = 0; v < IN; ++v)
    if (grads[v] && layout.shared(v)) shared[v].close(grads[v]);
  if (grad_k) slopes.close({grad_k, true});
}

}  // namespace
