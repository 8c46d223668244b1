// One pass over rows of points for any operation that is, row by row, a combination of its vectors with coefficients
// that depend on inner products and the curvature. Rows stay where they are: eight of them are read coordinates first,
// their eight sums become the lanes of one number, and what follows from it is a number for each row again.
//
// An operation `Op`, derived from Operation, declares
//   IN      vectors that it takes; BASIS of them and their sums and differences, each row of `basis` the signs; with
//           PRODUCT the last of the basis is the product, coordinate by coordinate, of the first two vectors
//   GRAMS   inner products of the basis, as pairs in `grams`
//   PROBES  further vectors whose coefficients depend on the inner products: `probe` gives them in the basis, `probed`
//           which lanes need them. Their squared lengths are then computed from their coordinates, which keeps the
//           digits that an expansion would cancel
//   TAKES   whether there is a number for each row beside the vectors; it follows the inner products
//   GIVES   a number for each row (`finish` writes it to out[0]) or a vector (`finish` writes the coefficients of the
//           basis, of which those before FIRST are 0, and the probes, then the last coordinate that GIVES adds)
// in terms of a type S, Lanes or Dual: the gradient of the coefficients is that of the same text on Dual, and the
// gradients of the vectors follow from it here. All report whether a result may be NaN.
#pragma once

#include "dual.hpp"
#include "layout.hpp"

namespace {

enum class Takes {
  Vectors,
  Number,  // that broadcasts as the curvature does
  Last,    // the last coordinate of the only vector, which is then no part of it
};
enum class Gives {
  Vector,
  Number,
  Last,   // a vector, and a number that follows it as its last coordinate
};

struct Operation {
  static constexpr int PROBES = 0, FIRST = 0;
  static constexpr bool PRODUCT = false;
  static constexpr Takes TAKES = Takes::Vectors;
  static constexpr Gives GIVES = Gives::Vector;
};

// Where the numbers of a call are, null where there are none.
template <class T>
struct Call {
  const Layout &layout;
  double option;
  const double *k, *number;
  const T *in[MOST_IN];
};

// Sums of eight rows, a vector each, that become lanes.
template <int N>
struct Joined {
  Lanes sums[N + 1][LANES];
  [[gnu::always_inline]] void set(int l, const Lanes *row) {
    for (int n = 0; n < N; ++n) sums[n][l] = row[n];
  }
  [[gnu::always_inline]] Lanes get(int n) const { return joined(sums[n]); }
};

// What the declarations of an operation come to.
template <class Op>
struct Shape {
  static constexpr int IN = Op::IN, BASIS = Op::BASIS, GRAMS = Op::GRAMS, PROBES = Op::PROBES;
  static constexpr bool NUMBERED = Op::TAKES != Takes::Vectors, SCALAR = Op::GIVES == Gives::Number;
  static constexpr bool MORE = Op::GIVES == Gives::Last;
  static constexpr int VARIABLES = GRAMS + NUMBERED + PROBES + 1, SQUARES = GRAMS + NUMBERED, K = VARIABLES - 1;
  static constexpr bool LIGHT = PROBES == 0 && IN < 3;  // little is computed for each coordinate
  static constexpr int VECTORS = BASIS + PROBES, COEFFICIENTS = SCALAR ? 1 : VECTORS + MORE;
};

// The variables of LANES rows: inner products and the number, squares of probes, the curvature; then the coefficients of
// the probes, which some lane reads where `probed`.
template <class Op>
struct Variables : Shape<Op> {
  Lanes grams[Op::GRAMS + 1], squares[Op::PROBES + 1], k;
  Lanes coefficients[Op::PROBES + 1][Op::BASIS];
  bool probed = false;

  // the coefficients of the result, and whether all is small enough; not inlined, as it is the same for float and double
  [[gnu::noinline]] Mask finish(double option, Lanes *c) const {
    Op::template finish<Lanes>(grams, squares, k, option, c);
    Mask bad{};
    for (int n = 0; n < Op::GRAMS; ++n) bad |= too_large(grams[n]);
    for (int n = 0; n < Shape<Op>::COEFFICIENTS; ++n) bad |= too_large(c[n]);
    return bad;
  }
};

// LANES rows of the vectors, what is measured of them, and what follows.
template <class Op, class T>
struct Block : Variables<Op> {
  using Size = Shape<Op>;
  using Size::BASIS, Size::GRAMS, Size::IN, Size::MORE, Size::PROBES, Size::VECTORS;
  using Variables<Op>::grams, Variables<Op>::squares, Variables<Op>::k, Variables<Op>::coefficients;
  using Variables<Op>::probed;

  const Call<T> &call;
  const int64_t row;
  const int count, width;
  const T *rows[IN][LANES];

  static int width_of(const Layout &layout) { return static_cast<int>(layout.width) - (Op::TAKES == Takes::Last); }
  static int64_t pitch_of(const Layout &layout) { return width_of(layout) + (Op::GIVES == Gives::Last); }

  [[gnu::always_inline]] Block(const Call<T> &call, int64_t row, int count)
      : call(call), row(row), count(count), width(width_of(call.layout)) {
    for (int v = 0; v < IN; ++v) place(v);
    k = load(call.layout, CURVATURE, call.k, row, count);
    if constexpr (Op::TAKES == Takes::Number) grams[GRAMS] = load(call.layout, NUMBER, call.number, row, count);
    if constexpr (Op::TAKES == Takes::Last)
      for (int l = 0; l < LANES; ++l) grams[GRAMS][l] = static_cast<double>(rows[0][l][width]);
  }

  [[gnu::always_inline]] void place(int v) {
    const int64_t pitch = call.layout.width;
    if (count == LANES && !call.layout.shared(v)) {
      const T *next = call.in[v] + row * pitch;
      for (int l = 0; l < LANES; ++l, next += pitch) rows[v][l] = next;
    } else {
      const Places places(call.layout, v, row, count);
      for (int l = 0; l < LANES; ++l) rows[v][l] = call.in[v] + places.at[l] * pitch;
    }
  }

  [[gnu::always_inline]] void basis(Lanes *b, int l, Piece piece) const {
    Lanes x[IN];
    for (int v = 0; v < IN; ++v) x[v] = read(rows[v][l], piece);
    if constexpr (Op::PRODUCT) b[BASIS - 1] = x[0] * x[1];
    for (int i = 0; i < BASIS - Op::PRODUCT; ++i) {
      bool begun = false;
      for (int v = 0; v < IN; ++v) {
        const int sign = Op::basis[i][v];
        if (sign == 0) continue;
        b[i] = begun ? (sign > 0 ? b[i] + x[v] : b[i] - x[v]) : (sign > 0 ? x[v] : -x[v]);
        begun = true;
      }
    }
  }

  [[gnu::always_inline]] Lanes probe(const Lanes *b, int p, int l) const {
    Lanes sum = coefficients[p][0][l] * b[0];
    for (int i = 1; i < BASIS; ++i) sum += coefficients[p][i][l] * b[i];
    return sum;
  }

  // the basis, and the probes after it
  template <bool PROBED>
  [[gnu::always_inline]] void vectors(Lanes *b, int l, Piece piece) const {
    basis(b, l, piece);
    for (int p = 0; p < PROBES; ++p) b[BASIS + p] = PROBED ? probe(b, p, l) : Lanes{};
  }

  // inner products of the basis, and those with the gradient's rows where there are any
  template <bool GRADIENT>
  [[gnu::always_inline]] void measure(const T *const *grad, Lanes *along) {
    constexpr int N = GRAMS + (GRADIENT ? BASIS : 0);
    if constexpr (N == 0) return;
    Joined<N> all;
    const auto add = [&](int l, Piece piece, Lanes *sums) __attribute__((always_inline)) {
      Lanes b[BASIS];
      basis(b, l, piece);
      for (int g = 0; g < GRAMS; ++g) sums[g] += b[Op::grams[g][0]] * b[Op::grams[g][1]];
      if constexpr (GRADIENT) {
        const Lanes by = read(grad[l], piece);
        for (int i = 0; i < BASIS; ++i) sums[GRAMS + i] += by * b[i];
      }
    };
    if constexpr (N <= 2) {  // the sums of all rows fit the registers, and none waits for its predecessor
      Lanes sums[LANES][N] = {};
      each_piece<Size::LIGHT>(width, [&](Piece piece) __attribute__((always_inline)) {
#pragma GCC unroll 8
        for (int l = 0; l < LANES; ++l) add(l, piece, sums[l]);
      });
      for (int l = 0; l < LANES; ++l) all.set(l, sums[l]);
    } else {
      for (int l = 0; l < LANES; ++l) {
        Lanes sums[N] = {};
        each_piece<Size::LIGHT>(width, [&](Piece piece) __attribute__((always_inline)) { add(l, piece, sums); });
        all.set(l, sums);
      }
    }
    for (int g = 0; g < GRAMS; ++g) grams[g] = all.get(g);
    if constexpr (GRADIENT)
      for (int i = 0; i < BASIS; ++i) along[i] = all.get(GRAMS + i);
  }

  // squared lengths of the probes, with SLOPES their inner products with the basis too, and those with the gradient's
  // rows where there are any
  template <bool SLOPES, bool GRADIENT>
  [[gnu::always_inline]] void measure_probes(const T *const *grad, Lanes (*with)[BASIS], Lanes *along) {
    for (int p = 0; p < PROBES; ++p) squares[p] = Lanes{};
    if constexpr (PROBES > 0) {
      probed = any(Op::probed(grams, k));
      if (!probed) return;
      Op::template probe<Lanes>(grams, k, coefficients);
      constexpr int EACH = 1 + (SLOPES ? BASIS : 0) + GRADIENT;
      Joined<PROBES * EACH> all;
      for (int l = 0; l < LANES; ++l) {
        Lanes sums[PROBES * EACH] = {};
        each_piece<Size::LIGHT>(width, [&](Piece piece) __attribute__((always_inline)) {
          Lanes b[VECTORS];
          vectors<true>(b, l, piece);
          for (int p = 0; p < PROBES; ++p) {
            const Lanes t = b[BASIS + p];
            sums[p * EACH] += t * t;
            if constexpr (SLOPES)
              for (int i = 0; i < BASIS; ++i) sums[p * EACH + 1 + i] += t * b[i];
            if constexpr (GRADIENT) sums[p * EACH + EACH - 1] += read(grad[l], piece) * t;
          }
        });
        all.set(l, sums);
      }
      for (int p = 0; p < PROBES; ++p) {
        squares[p] = all.get(p * EACH);
        if constexpr (SLOPES)
          for (int i = 0; i < BASIS; ++i) with[p][i] = all.get(p * EACH + 1 + i);
        if constexpr (GRADIENT) along[p] = all.get(p * EACH + EACH - 1);
      }
    }
  }

  // the vectors with coefficients c, written
  template <bool PROBED>
  [[gnu::always_inline]] void combine(const Lanes *c, T *out) const {
    const int64_t pitch = pitch_of(call.layout);
    T *to = out + row * pitch;
    for (int l = 0; l < count; ++l, to += pitch) {
      double weights[VECTORS];
      for (int i = Op::FIRST; i < VECTORS; ++i) weights[i] = c[i][l];
      each_piece<Size::LIGHT>(width, [&](Piece piece) __attribute__((always_inline)) {
        Lanes b[VECTORS];
        vectors<PROBED>(b, l, piece);
        Lanes sum = weights[Op::FIRST] * b[Op::FIRST];
        for (int i = Op::FIRST + 1; i < (PROBED ? VECTORS : BASIS); ++i) sum += weights[i] * b[i];
        write(to, piece, sum);
      });
      if constexpr (MORE) to[width] = static_cast<T>(c[VECTORS][l]);
    }
  }
};

template <class Op, class T>
[[gnu::always_inline]] inline Mask forward_rows(const Call<T> &call, int64_t row, int count, T *out) {
  Block<Op, T> block(call, row, count);
  block.template measure<false>(nullptr, nullptr);
  block.template measure_probes<false, false>(nullptr, nullptr, nullptr);
  Lanes c[Shape<Op>::COEFFICIENTS];
  const Mask bad = block.finish(call.option, c);
  if constexpr (Shape<Op>::SCALAR) put(out + row, c[0], count);
  else if (Op::PROBES > 0 && block.probed) block.template combine<(Op::PROBES > 0)>(c, out);
  else block.template combine<false>(c, out);
  return bad;
}

template <class Op, class T>
bool forward(const Call<T> &call, T *out) {
  return each_block(call.layout, [&](int) {
    return [&](int64_t row, int count) { return forward_rows<Op, T>(call, row, count, out); };
  });
}

}  // namespace
