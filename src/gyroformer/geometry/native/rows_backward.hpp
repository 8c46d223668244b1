// The gradients of an operation on rows (rows.hpp).
#pragma once

#include "rows.hpp"

namespace {

// Where the gradients go, null where not wanted.
template <class T>
struct Wanted {
  T *vectors[MOST_IN];
  double *k, *number;
};

// Sums for the operands whose rows several results share.
template <class Op>
struct Collected {
  Sums vectors[Op::IN], number, k;

  template <class T>
  void open(const Layout &layout, const Wanted<T> &wanted) {
    for (int v = 0; v < Op::IN; ++v)
      if (wanted.vectors[v] && layout.shared(v)) vectors[v].open(layout.threads, layout.rows[v] * layout.width);
    if (wanted.number) number.open(layout.threads, layout.rows[NUMBER]);
    if (wanted.k) k.open(layout.threads, layout.rows[CURVATURE]);
  }
  template <class T>
  void close(const Layout &layout, const Wanted<T> &wanted) const {
    for (int v = 0; v < Op::IN; ++v)
      if (wanted.vectors[v] && layout.shared(v)) vectors[v].close(wanted.vectors[v]);
    if (wanted.number) number.close(wanted.number);
    if (wanted.k) k.close(wanted.k);
  }
};

// From the variables of LANES rows to what their gradients are made of; the same for float and double.
template <class Op>
struct Adjoints : Shape<Op> {
  using Size = Shape<Op>;
  using Size::BASIS, Size::COEFFICIENTS, Size::GRAMS, Size::IN, Size::K, Size::PROBES, Size::SCALAR, Size::SQUARES;
  using Size::VARIABLES, Size::VECTORS;
  using S = Dual<VARIABLES>;
  static constexpr int TERMS = VECTORS + 1;  // of a vector's gradient: basis, probes, the result's gradient

  Lanes along[COEFFICIENTS + VECTORS] = {};  // inner products of the result's gradient with what the coefficients scale
  Lanes with[PROBES + 1][BASIS] = {};        // and of the probes with the basis
  Lanes adjoint[VARIABLES];
  Lanes terms[IN + 1][TERMS];  // the last is the product's

  [[gnu::noinline]] Mask solve(const Variables<Op> &at, double option) {
    S grams[GRAMS + 1], squares[PROBES + 1], c[COEFFICIENTS];
    for (int n = 0; n < SQUARES; ++n) grams[n] = S::variable(at.grams[n], n);
    for (int p = 0; p < PROBES; ++p) squares[p] = S::variable(at.squares[p], SQUARES + p);
    const S k = S::variable(at.k, K);
    Op::template finish<S>(grams, squares, k, option, c);
    for (int n = 0; n < VARIABLES; ++n) {
      adjoint[n] = Lanes{};
      for (int i = SCALAR ? 0 : Op::FIRST; i < COEFFICIENTS; ++i) adjoint[n] += along[i] * c[i].by[n];
    }
    Lanes by[BASIS][TERMS] = {};
    if constexpr (!SCALAR)
      for (int i = Op::FIRST; i < BASIS; ++i) by[i][VECTORS] = c[i].value;
    if constexpr (PROBES > 0)
      if (at.probed) {
        S coefficients[PROBES][BASIS];
        Op::template probe<S>(grams, k, coefficients);
        for (int p = 0; p < PROBES; ++p)
          through_probe(p, SCALAR ? Lanes{} : c[SCALAR ? 0 : BASIS + p].value, coefficients[p], by);
      }
    return collect(by);
  }

  // What goes through a probe: `weight` is its coefficient in the result
  [[gnu::always_inline]] void through_probe(int p, Lanes weight, const S *coefficients, Lanes (*by)[TERMS]) {
    const Lanes slope = 2 * adjoint[SQUARES + p];
    for (int i = 0; i < BASIS; ++i) {
      Lanes through = select(slope == 0, Lanes{}, slope * with[p][i]);
      if constexpr (!SCALAR) through += weight * along[i];
      for (int n = 0; n < VARIABLES; ++n)
        if (n < SQUARES || n == K) adjoint[n] += through * coefficients[i].by[n];
      by[i][BASIS + p] = slope * coefficients[i].value;
      if constexpr (!SCALAR) by[i][VECTORS] += weight * coefficients[i].value;
    }
  }

  // From the gradients of the basis, in terms, to those of the vectors that it is made of; which lanes are too large
  [[gnu::always_inline]] Mask collect(Lanes (*by)[TERMS]) {
    for (int n = 0; n < GRAMS; ++n) {
      by[Op::grams[n][0]][Op::grams[n][1]] += adjoint[n];
      by[Op::grams[n][1]][Op::grams[n][0]] += adjoint[n];
    }
    Mask bad{};
    for (const Lanes &one : adjoint) bad |= too_large(one);
    for (int v = 0; v < IN + Op::PRODUCT; ++v)
      for (int t = 0; t < TERMS; ++t) {
        terms[v][t] = Lanes{};
        for (int i = 0; i < BASIS; ++i) {
          const int sign = sign_of(i, v);
          if (sign) terms[v][t] += sign * by[i][t];
        }
        bad |= too_large(terms[v][t]);
      }
    return bad;
  }

  // of vector v in the basis; IN stands for the product
  static constexpr int sign_of(int i, int v) { return v < IN ? Op::basis[i][v] : i == BASIS - 1; }

  // whether the gradient of vector v has a term at all
  static constexpr bool has(int v, int term) {
    for (int i = 0; i < BASIS; ++i) {
      if (!sign_of(i, v)) continue;
      if (term == VECTORS ? !SCALAR && (PROBES > 0 || i >= Op::FIRST) : term >= BASIS) return true;
      for (int n = 0; n < GRAMS; ++n)
        if ((Op::grams[n][0] == i && Op::grams[n][1] == term) || (Op::grams[n][1] == i && Op::grams[n][0] == term))
          return true;
    }
    return false;
  }

  // the gradient of vector V of row l from the terms b
  template <int V, bool PROBED>
  [[gnu::always_inline]] Lanes weighed(const Lanes *b, int l) const {
    Lanes sum{};
    bool begun = false;
    for (int t = 0; t < TERMS; ++t) {
      if (!has(V, t) || (!PROBED && t >= BASIS && t < VECTORS)) continue;
      sum = begun ? sum + terms[V][t][l] * b[t] : terms[V][t][l] * b[t];
      begun = true;
    }
    return sum;
  }
};

template <class Op, class T>
struct Slopes : Block<Op, T> {
  using Base = Block<Op, T>;
  using Base::BASIS, Base::GRAMS, Base::IN, Base::MORE, Base::SCALAR, Base::VECTORS;
  static constexpr int TERMS = Adjoints<Op>::TERMS;

  const T *grad[LANES];
  Adjoints<Op> adjoints;

  [[gnu::always_inline]] Slopes(const Call<T> &call, const T *from, int64_t row, int count) : Base(call, row, count) {
    const int64_t pitch = SCALAR ? 1 : this->pitch_of(call.layout);
    for (int l = 0; l < LANES; ++l) grad[l] = from + (row + (l < count ? l : 0)) * pitch;
  }

  [[gnu::always_inline]] Mask differentiate() {
    Lanes *along = adjoints.along;
    this->template measure<!SCALAR>(grad, along);
    this->template measure_probes<true, !SCALAR>(grad, adjoints.with, along + BASIS);
    if constexpr (SCALAR || MORE)
      for (int l = 0; l < LANES; ++l)
        along[SCALAR ? 0 : VECTORS][l] = static_cast<double>(grad[l][SCALAR ? 0 : this->width]);
    return adjoints.solve(*this, this->call.option);
  }

  // the gradient of vector V, written or added
  template <int V, bool PROBED>
  [[gnu::always_inline]] void combine(T *out, std::vector<double> *sums) const {
    const int64_t pitch = this->call.layout.width;
    for (int l = 0; l < this->count; ++l) {
      T *to = out + (this->row + l) * pitch;
      double *sum = sums ? sums->data() + (this->rows[V][l] - this->call.in[V]) : nullptr;
      each_piece<Shape<Op>::LIGHT>(this->width, [&](Piece piece) __attribute__((always_inline)) {
        Lanes b[TERMS];
        this->template vectors<PROBED>(b, l, piece);
        if constexpr (!SCALAR) b[VECTORS] = read(grad[l], piece);
        Lanes found = adjoints.template weighed<V, PROBED>(b, l);
        if constexpr (Op::PRODUCT)
          found += adjoints.template weighed<IN, PROBED>(b, l) * read(this->rows[V == 0 ? 1 : 0][l], piece);
        if (sum) add(sum, piece, found);
        else ::write(to, piece, found);
      });
      if constexpr (Op::TAKES == Takes::Last) {
        if (sum) sum[this->width] += adjoints.adjoint[GRAMS][l];
        else to[this->width] = static_cast<T>(adjoints.adjoint[GRAMS][l]);
      }
    }
  }

  // the gradients of vector V and those after it
  template <int V, bool PROBED>
  [[gnu::always_inline]] void write_from(const Wanted<T> &wanted, Collected<Op> *collected, int thread) const {
    if constexpr (V < IN) {
      std::vector<double> *sums = this->call.layout.shared(V) ? &collected->vectors[V].parts[thread] : nullptr;
      if (wanted.vectors[V]) combine<V, PROBED>(wanted.vectors[V], sums);
      write_from<V + 1, PROBED>(wanted, collected, thread);
    }
  }

  [[gnu::always_inline]] void write(const Wanted<T> &wanted, Collected<Op> *collected, int thread) const {
    if (Op::PROBES > 0 && this->probed) write_from<0, (Op::PROBES > 0)>(wanted, collected, thread);
    else write_from<0, false>(wanted, collected, thread);
  }
};

template <class Op, class T>
bool backward(const Call<T> &call, const T *grad, const Wanted<T> &wanted) {
  using Rows = Slopes<Op, T>;
  Collected<Op> collected;
  collected.open(call.layout, wanted);
  const bool found = each_block(call.layout, [&](int thread) {
    return [&, thread](int64_t row, int count) {
      Rows block(call, grad, row, count);
      const Mask bad = block.differentiate();
      const Lanes *adjoint = block.adjoints.adjoint;
      if (wanted.k) collected.k.add(call.layout, CURVATURE, thread, row, count, adjoint[Rows::K]);
      if constexpr (Op::TAKES == Takes::Number)
        if (wanted.number) collected.number.add(call.layout, NUMBER, thread, row, count, adjoint[Op::GRAMS]);
      block.write(wanted, &collected, thread);
      return bad;
    };
  });
  collected.close(call.layout, wanted);
  return found;
}

}  // namespace
