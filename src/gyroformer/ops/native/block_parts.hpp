// The flat parts of a Transformer block for LANES tokens: layer norm and linear maps, with their derivatives. Gradients
// of weights are sums over tokens, in double.
#pragma once

#include <cmath>

#include "products.hpp"

namespace {

// A row for each token, as outer() takes them.
struct Rows {
  const int width, stride;
  Block numbers;
  explicit Rows(int width) : width(width), stride(padded(width)), numbers(stride * LANES, 0.f) {}
  const float *of(const float *x) {
    store(numbers.data(), x, stride, width, LANES);
    return numbers.data();
  }
};

struct Linear {  // weight (out, in), bias (out)
  const float *weight, *bias;
  int in, out;

  Linear rows(int first, int count) const {
    return {weight + 1LL * first * in, bias + first, in, count};
  }
  int64_t entries() const { return 1LL * out * in; }

  void apply(float *y, const float *x) const {
    times_transposed(y, weight, x, out, in);
    for (int i = 0; i < out; ++i) FOR_LANES y[i * LANES + l] += bias[i];
  }

  // writes the gradient of x, whose rows are given, and adds to those of weight and bias
  void back(float *by_x, double *by_weight, double *by_bias, const float *g, const float *rows) const {
    outer(by_weight, g, rows, out, in);
    for (int i = 0; i < out; ++i) by_bias[i] += quick_total(g + i * LANES);
    times(by_x, g, weight, out, in);
  }
};

struct Norm {  // layer norm over all coordinates of a token
  const float *weight, *bias;
  int width;
  float eps;
  Block normal;
  float inverse[LANES];

  Norm(const float *weight, const float *bias, int width, float eps)
      : weight(weight), bias(bias), width(width), eps(eps), normal(width * LANES) {}

  void apply(float *y, const float *x) {
    for (int g = 0; g < LANES; g += VECTOR) {  // few enough for the sums to stay in registers
      float mean[VECTOR] = {}, square[VECTOR] = {};
      for (int j = 0; j < width; ++j) FOR_VECTOR mean[v] += x[j * LANES + g + v];
      FOR_VECTOR mean[v] /= width;
      for (int j = 0; j < width; ++j) FOR_VECTOR {
        const float from_mean = x[j * LANES + g + v] - mean[v];
        square[v] += from_mean * from_mean;
      }
      FOR_VECTOR square[v] = 1.f / std::sqrt(square[v] / width + eps);
      for (int j = 0; j < width; ++j) FOR_VECTOR {
        const float n = (x[j * LANES + g + v] - mean[v]) * square[v];
        normal[j * LANES + g + v] = n;
        y[j * LANES + g + v] = n * weight[j] + bias[j];
      }
      FOR_VECTOR inverse[g + v] = square[v];
    }
  }

  // After apply(): adds to the gradients of x, weight and bias, for the gradient `by` of y.
  void back(float *by_x, double *by_weight, double *by_bias, const float *by) const {
    float mean[LANES] = {}, along[LANES] = {}, share[LANES];
    for (int j = 0; j < width; ++j) {
      FOR_LANES share[l] = by[j * LANES + l] * normal[j * LANES + l];
      by_weight[j] += quick_total(share);
      by_bias[j] += quick_total(by + j * LANES);
      FOR_LANES mean[l] += by[j * LANES + l] * weight[j];
      FOR_LANES along[l] += share[l] * weight[j];
    }
    FOR_LANES mean[l] /= width;
    FOR_LANES along[l] /= width;
    for (int j = 0; j < width; ++j) FOR_LANES {
      const int at = j * LANES + l;
      by_x[at] += inverse[l] * (by[at] * weight[j] - mean[l] - normal[at] * along[l]);
    }
  }
};

// The gradients of several weights, one array a thread, tensor after tensor.
struct Gradients {
  using Sums = std::vector<double>;
  std::vector<Sums> parts;
  std::vector<int64_t> first;  // where each tensor begins
  Gradients(int threads, const std::vector<int64_t> &sizes) : first{0} {
    for (int64_t size : sizes) first.push_back(first.back() + size);
    // whole from the start: the system may grant fewer threads than asked for
    parts.assign(threads, Sums(first.back(), 0.0));
  }
  double *of(int thread, int tensor) { return parts[thread].data() + first[tensor]; }
  void write(std::initializer_list<float *> tensors, bool add = false) const {
    int n = 0;
    for (float *tensor : tensors) {
      for (int64_t e = first[n]; e < first[n + 1]; ++e) {
        double sum = add ? tensor[e - first[n]] : 0;
        for (const Sums &part : parts) sum += part[e];
        tensor[e - first[n]] = static_cast<float>(sum);
      }
      ++n;
    }
  }
};

}  // namespace
