// The Möbius sum of the tangent vectors of LANES tokens in one head's space, with its derivative; see translate in
// gyroformer/ops/lifted.py.
#pragma once

#include "lanes.hpp"
#include "scalar.hpp"

namespace {

// 1 - z below which gyro() takes it from the sum of two squares: above, the subtraction keeps all but four bits
constexpr float CUT = .0625f;

// out = |p|²|x|² - ⟨p,x⟩², from what of p is orthogonal to x: of parallel vectors the products would leave rounding.
// `ab` is ⟨p,x⟩, `bb` is |x|².
void wedge(float *out, const float *p, const float *x, const float *ab, const float *bb, int width) {
  FOR_LANES out[l] = 0.f;
  float share[LANES];
  FOR_LANES share[l] = ab[l] / (bb[l] > TINY ? bb[l] : 1.f);
  for (int j = 0; j < width; ++j) FOR_LANES {
    const float across = p[j * LANES + l] - share[l] * x[j * LANES + l];
    out[l] += across * across;
  }
  FOR_LANES out[l] *= bb[l];
}

// On a sphere, k > 0: p ⊕ x = c1 p + c2 x in tangent coordinates: c1 and c2 follow from a = |p|², b = ⟨p,x⟩, c = |x|² and k; w = ac - b²
// is given by wedge(). With BACK also the adjoints of a, b, c and k for those of c1 and c2, e1 and e2. (Plain scalars:
// a loop over an object with members is not vectorised.)
//
// At the cut locus of the origin 1 - z is 0, and what a subtraction leaves there is rounding: the derivatives
// go with its square root and worse. The equal sum of squares, (pc xc - km)² + k²|P_p ∧ P_x|², has its own digits.
template <bool BACK>
[[gnu::always_inline]] inline void gyro(float a, float b, float c, float w, float k, float e1, float e2, float &c1,
                                        float &c2, float &ga, float &gb, float &gc, float &gk) {
  const Turn p = turn<SPHERE>(k * a), x = turn<SPHERE>(k * c);
  const float ps = p.sine, pc = p.cosine, xs = x.sine, xc = x.cosine;
  const float pp = a * ps * ps, xx = c * xs * xs, m = b * ps * xs;
  const float s = positive(xc * xc * pp + 2.f * xc * pc * m + pc * pc * xx), z = k * s;
  const float alpha = pc * (1.f - 2.f * k * xx) - 2.f * k * xc * m;
  const float straight = pc * xc - k * m, across = k * ps * xs;
  const float squares = straight * straight + across * across * w;
  const float left = 1.f - z < CUT ? squares : 1.f - z;
  const bool cut = left < EPS;
  const float inverse = 1.f / std::sqrt(cut ? EPS : left);
  float ratio, slope;
  asin_ratio<SPHERE>(z, left, ratio, slope);
  const float g = ratio * inverse;
  c1 = alpha * g * ps;
  c2 = xc * g * xs;
  if (!BACK) return;
  const float dg = slope * inverse + (cut ? 0.f : .5f * ratio * inverse * inverse * inverse);
  const float g_alpha = e1 * g * ps;
  const float g_z = (e1 * alpha * ps + e2 * xc * xs) * dg;
  const float g_s = g_z * k;
  const float g_m = -2.f * k * xc * g_alpha + 2.f * xc * pc * g_s;
  const float g_pp = g_s * xc * xc;
  const float g_xx = g_s * pc * pc - 2.f * k * pc * g_alpha;
  const float g_pc = g_alpha * (1.f - 2.f * k * xx) + 2.f * g_s * (xc * m + pc * xx);
  const float g_xc = e2 * g * xs - 2.f * k * m * g_alpha + 2.f * g_s * (xc * pp + pc * m);
  const float g_ps = e1 * alpha * g + 2.f * a * ps * g_pp + b * xs * g_m;
  const float g_xs = e2 * xc * g + 2.f * c * xs * g_xx + b * ps * g_m;
  const float g_zp = g_ps * p.dsine + g_pc * p.dcosine;
  const float g_zx = g_xs * x.dsine + g_xc * x.dcosine;
  ga = ps * ps * g_pp + k * g_zp;
  gb = ps * xs * g_m;
  gc = xs * xs * g_xx + k * g_zx;
  gk = g_z * s - 2.f * g_alpha * (pc * xx + xc * m) + a * g_zp + c * g_zx;
}

// The same in the ball, k <= 0, where nothing may cancel but σ = C_x P_p + C_p P_x: far points that nearly oppose keep
// their digits. With C_p² + k|P_p|² = 1 the sum is A σ + B p; see translate_hyperbolic in gyroformer/ops/lifted.py.
struct Ball {
  float aa[LANES], bb[LANES], alpha[LANES], beta[LANES], square[LANES], by_sigma[LANES], by_p[LANES];
  float ps[LANES], pc[LANES], xs[LANES], xc[LANES], dps[LANES], dpc[LANES], dxs[LANES], dxc[LANES];

  void from(const float *p, const float *x, float *sigma, float k, int d) {
    dot(aa, p, p, d);
    dot(bb, x, x, d);
    FOR_LANES {
      const Turn a = turn<BALL>(k * aa[l]), b = turn<BALL>(k * bb[l]);
      ps[l] = a.sine; pc[l] = a.cosine; dps[l] = a.dsine; dpc[l] = a.dcosine;
      xs[l] = b.sine; xc[l] = b.cosine; dxs[l] = b.dsine; dxc[l] = b.dcosine;
      alpha[l] = b.cosine * a.sine;
      beta[l] = a.cosine * b.sine;
    }
    for (int j = 0; j < d; ++j) FOR_LANES sigma[j * LANES + l] = alpha[l] * p[j * LANES + l] + beta[l] * x[j * LANES + l];
    dot(square, sigma, sigma, d);
    FOR_LANES {
      const float z = k * square[l];
      float ratio, slope;
      asin_ratio<BALL>(z, 1.f - z, ratio, slope);
      const float g = ratio / (std::sqrt(1.f - z) * pc[l]);
      by_sigma[l] = g * xc[l];
      by_p[l] = -g * z * ps[l];
    }
  }

  // replaces p and x by their gradients and sigma by its own; adds to by_k
  void back(float *p, float *x, float *sigma, const float *grad, float k, int d, float *by_k) const {
    float along[LANES], with_p[LANES], with_x[LANES], twice[LANES], own[LANES];
    dot(along, grad, sigma, d);
    dot(own, grad, p, d);
    float g_xc[LANES], g_ps[LANES], g_pc[LANES];
    FOR_LANES {
      const float z = k * square[l], inverse = 1.f / std::sqrt(1.f - z), least = 1.f / pc[l];
      float ratio, slope;
      asin_ratio<BALL>(z, 1.f - z, ratio, slope);
      const float f = ratio * inverse, df = slope * inverse + .5f * f * inverse * inverse;
      const float h = along[l], e = own[l] * ps[l];
      const float g_z = (h * xc[l] * df - e * (df * z + f)) * least;
      twice[l] = 2.f * k * g_z;
      by_k[l] = g_z * square[l];
      g_xc[l] = h * f * least;
      g_ps[l] = -own[l] * f * z * least;
      g_pc[l] = (e * z - h * xc[l]) * f * least * least;
    }
    for (int j = 0; j < d; ++j)
      FOR_LANES sigma[j * LANES + l] = by_sigma[l] * grad[j * LANES + l] + twice[l] * sigma[j * LANES + l];
    dot(with_p, sigma, p, d);
    dot(with_x, sigma, x, d);
    FOR_LANES {
      const float g_zp = (g_ps[l] + with_p[l] * xc[l]) * dps[l] + (g_pc[l] + with_x[l] * xs[l]) * dpc[l];
      const float g_zx = with_x[l] * pc[l] * dxs[l] + (g_xc[l] + with_p[l] * ps[l]) * dxc[l];
      by_k[l] += aa[l] * g_zp + bb[l] * g_zx;
      with_p[l] = 2.f * k * g_zp;
      with_x[l] = 2.f * k * g_zx;
    }
    for (int j = 0; j < d; ++j) FOR_LANES {
      const int at = j * LANES + l;
      p[at] = by_p[l] * grad[at] + alpha[l] * sigma[at] + with_p[l] * p[at];
      x[at] = beta[l] * sigma[at] + with_x[l] * x[at];
    }
  }
};

// inner products of p and x
[[gnu::always_inline]] inline void products(float *aa, float *ab, float *bb, float *ww, const float *p, const float *x, int d) {
  dot(aa, p, p, d);
  dot(ab, p, x, d);
  dot(bb, x, x, d);
  wedge(ww, p, x, ab, bb, d);
}

struct Translation {
  const int d;
  Ball ball;
  Block sigma;

  explicit Translation(int width) : d(width), sigma(width * LANES) {}

  // replaces p by p ⊕ x
  void apply(float *p, const float *x, float k) {
    if (k <= 0.f) {
      ball.from(p, x, sigma.data(), k, d);
      for (int j = 0; j < d; ++j)
        FOR_LANES p[j * LANES + l] = ball.by_p[l] * p[j * LANES + l] + ball.by_sigma[l] * sigma[j * LANES + l];
      return;
    }
    float aa[LANES], ab[LANES], bb[LANES], ww[LANES];
    products(aa, ab, bb, ww, p, x, d);
    FOR_LANES {
      float c1, c2, unused;
      gyro<false>(aa[l], ab[l], bb[l], ww[l], k, 0.f, 0.f, c1, c2, unused, unused, unused, unused);
      aa[l] = c1;
      bb[l] = c2;
    }
    for (int j = 0; j < d; ++j) FOR_LANES p[j * LANES + l] = aa[l] * p[j * LANES + l] + bb[l] * x[j * LANES + l];
  }

  // replaces p and x by their gradients and returns that of k, for the gradient g of p ⊕ x
  double back(float *p, float *x, const float *g, float k) {
    float aa[LANES], ab[LANES], bb[LANES], ww[LANES], e1[LANES], e2[LANES], c1[LANES], c2[LANES], by_k[LANES];
    if (k <= 0.f) {
      ball.from(p, x, sigma.data(), k, d);
      ball.back(p, x, sigma.data(), g, k, d, by_k);
      return total(by_k);
    }
    products(aa, ab, bb, ww, p, x, d);
    dot(e1, g, p, d);
    dot(e2, g, x, d);
    FOR_LANES {
      float s1, s2, ga, gb, gc, gk;
      gyro<true>(aa[l], ab[l], bb[l], ww[l], k, e1[l], e2[l], s1, s2, ga, gb, gc, gk);
      c1[l] = s1; c2[l] = s2;
      aa[l] = 2.f * ga; ab[l] = gb; bb[l] = 2.f * gc; by_k[l] = gk;
    }
    for (int j = 0; j < d; ++j) FOR_LANES {
      const float pa = p[j * LANES + l], pb = x[j * LANES + l], pg = g[j * LANES + l];
      p[j * LANES + l] = c1[l] * pg + aa[l] * pa + ab[l] * pb;
      x[j * LANES + l] = c2[l] * pg + bb[l] * pb + ab[l] * pa;
    }
    return total(by_k);
  }
};

}  // namespace
