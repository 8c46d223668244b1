// Linear attention of LANES tokens in one head's space, with its derivative: keys and values that enter the sums over
// all tokens, and queries that are answered by them. The mathematics is that of gyroformer/ops/lifted.py and
// gyroformer/ops/attention.py.
#pragma once

#include <cmath>

#include "products.hpp"
#include "scalar.hpp"

namespace {

constexpr int FIRST = 1, SECOND = 2;  // the passes over tokens, with sums over all tokens between; both are FIRST | SECOND

// set by the build from gyroformer.ops.attention: feature_floor
constexpr float FLOOR = SET_FLOOR, LOWEST = SET_LOWEST;

[[gnu::always_inline]] inline float feature(float x) {
  const float fall = exponential(x < 0.f ? (x > FLOOR ? x : FLOOR) : 0.f);
  return x > 0.f ? x + 1.f : fall;
}

// the slope of the feature map, from its value: 1 above, the value itself below, 0 at the floor
[[gnu::always_inline]] inline float feature_slope(float value) { return value > 1.f ? 1.f : (value > LOWEST ? value : 0.f); }

struct Value {  // what follows from the values of LANES tokens
  float z[LANES], sine[LANES], cosine[LANES], dsine[LANES], dcosine[LANES];
  void from(const float *v, float k, int d) {
    dot(z, v, v, d);
    k <= 0.f ? turned<BALL>(k) : turned<SPHERE>(k);
  }
  template <Space SPACE>
  void turned(float k) {
    FOR_LANES {
      const Turn t = turn<SPACE>(k * z[l]);
      sine[l] = t.sine; cosine[l] = t.cosine; dsine[l] = t.dsine; dcosine[l] = t.dcosine;
    }
  }
};

void feature_block(float *out, const float *x, const float *cosine, int d) {
  for (int j = 0; j < d; ++j)
    FOR_LANES out[j * LANES + l] = feature(cosine[l] * cosine[l] * x[j * LANES + l]);
}

void lift_block(float *out, const float *v, const Value &t, int d) {
  for (int j = 0; j < d; ++j) FOR_LANES out[j * LANES + l] = 2.f * t.cosine[l] * t.sine[l] * v[j * LANES + l];
  FOR_LANES out[d * LANES + l] = 2.f * t.cosine[l] * t.cosine[l] - 1.f;
}

// masked tokens and lanes beyond the end must not enter a sum
void mute(float *keys, const uint8_t *mask, int d, int count) {
  if (!mask && count == LANES) return;
  for (int l = 0; l < LANES; ++l)
    if (l >= count || (mask && !mask[l]))
      for (int j = 0; j < d; ++j) keys[j * LANES + l] = 0.f;
}

// The tangent vector under ambient vectors, and what its derivative needs.
struct Unlift {
  float scale[LANES], square[LANES], ratio[LANES], by_a[LANES], by_b[LANES];
  void from(float *ambient, float k, int d) {  // normalises `ambient` in place
    FOR_LANES scale[l] = 0.f;
    for (int j = 0; j <= d; ++j) FOR_LANES {
      const float size = std::fabs(ambient[j * LANES + l]);
      scale[l] = scale[l] > size ? scale[l] : size;
    }
    FOR_LANES scale[l] = scale[l] > 0.f ? 1.f / scale[l] : 1.f;
    for (int j = 0; j <= d; ++j) FOR_LANES ambient[j * LANES + l] *= scale[l];
    dot(square, ambient, ambient, d);
    k <= 0.f ? angles<BALL>(ambient + d * LANES, k) : angles<SPHERE>(ambient + d * LANES, k);
  }
  template <Space SPACE>
  void angles(const float *last, float k) {
    FOR_LANES {
      const Angle a = angle_over_sine<SPACE>(k * square[l], last[l]);
      ratio[l] = a.ratio; by_a[l] = a.by_a; by_b[l] = a.by_b;
    }
  }
};

struct Keys {
  const int d;
  Block features, lifted, by_features, by_lifted;
  Value t;
  float weight[LANES], by_k[LANES];

  explicit Keys(int width)
      : d(width), features(d * LANES), lifted((d + 1) * LANES), by_features(features), by_lifted(lifted) {}

  void from(const float *x, const float *v, float k, const uint8_t *mask, int count) {
    t.from(v, k, d);
    feature_block(features.data(), x, t.cosine, d);
    mute(features.data(), mask, d, count);
    lift_block(lifted.data(), v, t, d);
  }

  // adds to the sums over tokens, [d][d + 1][VECTOR]
  void add(float *sums) const { outer(sums, features.data(), lifted.data(), d, d + 1); }

  // After from(): replaces the keys x and the values v by their gradients and returns that of k, for the gradient m of
  // the sums. `transported` has what each token's queries gave to the factor of transport.
  double back(float *x, float *v, const float *m, float *transported, float k) {
    float *g = by_features.data();
    times_transposed(g, m, lifted.data(), d, d + 1);
    times(by_lifted.data(), features.data(), m, d, d + 1);
    for (int j = 0; j < d; ++j) FOR_LANES {
      const float slope = g[j * LANES + l] * feature_slope(features[j * LANES + l]);  // 0 where muted
      transported[l] += x[j * LANES + l] * slope;
      x[j * LANES + l] = t.cosine[l] * t.cosine[l] * slope;
    }
    dot(weight, by_lifted.data(), v, d);
    FOR_LANES {
      const float c = t.cosine[l];
      const float by_c = 2.f * t.sine[l] * weight[l] + 4.f * c * by_lifted[d * LANES + l] + 2.f * c * transported[l];
      const float by_s = 2.f * c * weight[l];
      const float by_z = by_s * t.dsine[l] + by_c * t.dcosine[l];
      by_k[l] = by_z * t.z[l];
      weight[l] = 2.f * k * by_z;
    }
    for (int j = 0; j < d; ++j)
      FOR_LANES v[j * LANES + l] = 2.f * t.cosine[l] * t.sine[l] * by_lifted[j * LANES + l] + weight[l] * v[j * LANES + l];
    return total(by_k);
  }
};

struct Queries {
  const int d;
  Block features, mean, by_mean;
  Value t;
  Unlift u;
  float weight[LANES], by_k[LANES];

  explicit Queries(int width) : d(width), features(d * LANES), mean((d + 1) * LANES), by_mean((d + 1) * LANES) {}

  // writes the tangent vectors of the means to out, which may be x; m are the sums over tokens
  void answer(float *out, const float *x, const float *v, const float *m, float k) {
    t.from(v, k, d);
    feature_block(features.data(), x, t.cosine, d);
    times(mean.data(), features.data(), m, d, d + 1);
    u.from(mean.data(), k, d);
    for (int j = 0; j < d; ++j) FOR_LANES out[j * LANES + l] = .5f * u.ratio[l] * mean[j * LANES + l];
  }

  // After answer(): replaces the gradient g of the answers by that of the queries x, adds to that of the sums, writes
  // to `transported`, and returns the gradient of k.
  double back(float *g, const float *x, const float *m, float *by_sums, float *transported, float k) {
    dot(weight, g, mean.data(), d);
    FOR_LANES weight[l] *= .5f;
    for (int j = 0; j < d; ++j)
      FOR_LANES by_mean[j * LANES + l] =
          u.scale[l] * (.5f * u.ratio[l] * g[j * LANES + l] + 2.f * k * weight[l] * u.by_a[l] * mean[j * LANES + l]);
    FOR_LANES by_mean[d * LANES + l] = u.scale[l] * weight[l] * u.by_b[l];
    FOR_LANES by_k[l] = weight[l] * u.by_a[l] * u.square[l];
    outer(by_sums, features.data(), by_mean.data(), d, d + 1);
    times_transposed(g, m, by_mean.data(), d, d + 1);
    FOR_LANES transported[l] = 0.f;
    for (int j = 0; j < d; ++j) FOR_LANES {
      const float slope = g[j * LANES + l] * feature_slope(features[j * LANES + l]);
      transported[l] += x[j * LANES + l] * slope;
      g[j * LANES + l] = t.cosine[l] * t.cosine[l] * slope;
    }
    return total(by_k);
  }
};

}  // namespace
