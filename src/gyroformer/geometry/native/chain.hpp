// One operation after another on the same rows, in double between them: the first takes x, y and a number, the second
// x and what the first gives.
#pragma once

#include "rows_backward.hpp"

namespace {

template <class Op>
struct Chain {
  using First = typename Op::First;
  using Second = typename Op::Second;
  enum { X, Y, MIDDLE, RESULT, BY_X, BY_MIDDLE, AGAIN_X, BY_Y, ROOMS };  // LANES rows each

  const int width;
  Layout own;  // of LANES rows, each with its own number and curvature
  std::vector<double> memory;
  double k[LANES], number[LANES];

  explicit Chain(const Layout &layout)
      : width(static_cast<int>(layout.width)), own{LANES, 1, layout.width, 1, {}, {}, {}}, memory(ROOMS * LANES * layout.width) {
    for (int64_t &rows : own.rows) rows = LANES;
  }

  double *room(int which) { return memory.data() + which * LANES * width; }
  Call<double> first() { return {own, 0, k, number, {room(X), room(Y), nullptr}}; }
  Call<double> second() { return {own, 0, k, nullptr, {room(X), room(MIDDLE), nullptr}}; }

  // rows that begin at pointers, in double
  template <class T>
  void copy(int which, const T *const *from) {
    for (int l = 0; l < LANES; ++l)
      each_piece(width, [&](Piece piece) { write(room(which) + l * width, piece, read(from[l], piece)); });
  }

  template <class T>
  Mask begin(const Call<T> &call, int64_t row, int count) {
    for (int v = 0; v < 2; ++v) {
      const Places places(call.layout, v, row, count);
      const T *rows[LANES];
      for (int l = 0; l < LANES; ++l) rows[l] = call.in[v] + places.at[l] * width;
      copy(v, rows);
    }
    const Lanes curvature = load(call.layout, CURVATURE, call.k, row, count);
    const Lanes given = load(call.layout, NUMBER, call.number, row, count);
    for (int l = 0; l < LANES; ++l) k[l] = curvature[l], number[l] = given[l];
    return forward_rows<First, double>(first(), 0, LANES, room(MIDDLE));
  }

  template <class T>
  Mask forward(const Call<T> &call, int64_t row, int count, T *out) {
    const Mask bad = begin(call, row, count) | forward_rows<Second, double>(second(), 0, LANES, room(RESULT));
    for (int l = 0; l < count; ++l)
      each_piece(width, [&](Piece piece) { write(out + (row + l) * width, piece, read(room(RESULT) + l * width, piece)); });
    return bad;
  }

  // adjoints of curvature and number; the gradients of x and y are left in AGAIN_X and BY_Y
  template <class T>
  Mask backward(const Call<T> &call, const T *grad, int64_t row, int count, Lanes &by_k, Lanes &by_number) {
    Mask bad = begin(call, row, count);
    const T *rows[LANES];
    for (int l = 0; l < LANES; ++l) rows[l] = grad + (row + (l < count ? l : 0)) * width;
    copy(RESULT, rows);
    const auto back = [&](auto &slopes, int by_first, int by_second) {
      bad |= slopes.differentiate();
      slopes.write({{room(by_first), room(by_second), nullptr}, nullptr, nullptr}, nullptr, 0);
    };
    const Call<double> before = first(), after = second();
    Slopes<Second, double> last(after, room(RESULT), 0, LANES);
    back(last, BY_X, BY_MIDDLE);
    Slopes<First, double> start(before, room(BY_MIDDLE), 0, LANES);
    back(start, AGAIN_X, BY_Y);
    for (int i = 0; i < LANES * width; ++i) room(AGAIN_X)[i] += room(BY_X)[i];
    by_k = last.adjoints.adjoint[Shape<Second>::K] + start.adjoints.adjoint[Shape<First>::K];
    by_number = start.adjoints.adjoint[First::GRAMS];
    return bad;
  }
};

template <class Op, class T>
bool forward_chain(const Call<T> &call, T *out) {
  return each_block(call.layout, [&](int) {
    return [&, chain = Chain<Op>(call.layout)](int64_t row, int count) mutable { return chain.forward(call, row, count, out); };
  });
}

template <class Op, class T>
bool backward_chain(const Call<T> &call, const T *grad, const Wanted<T> &wanted) {
  using Links = Chain<Op>;
  Collected<typename Op::First> collected;
  collected.open(call.layout, wanted);
  const bool found = each_block(call.layout, [&](int thread) {
    return [&, thread, chain = Links(call.layout)](int64_t row, int count) mutable {
      Lanes by_k, by_number;
      const Mask bad = chain.backward(call, grad, row, count, by_k, by_number);
      if (wanted.k) collected.k.add(call.layout, CURVATURE, thread, row, count, by_k);
      if (wanted.number) collected.number.add(call.layout, NUMBER, thread, row, count, by_number);
      for (int v = 0; v < 2; ++v) {
        if (!wanted.vectors[v]) continue;
        const double *from = chain.room(v == 0 ? Links::AGAIN_X : Links::BY_Y);
        const Places places(call.layout, v, row, count);
        for (int l = 0; l < count; ++l)
          each_piece(chain.width, [&](Piece piece) {
            const Lanes numbers = read(from + l * chain.width, piece);
            if (call.layout.shared(v)) add(collected.vectors[v].parts[thread].data() + places.at[l] * chain.width, piece, numbers);
            else write(wanted.vectors[v] + (row + l) * chain.width, piece, numbers);
          });
      }
      return bad;
    };
  });
  collected.close(call.layout, wanted);
  return found;
}

}  // namespace
