// The programs of the graphics card. Positions of nodes come in a texture, moved already, in double precision, by
// spaces.js: a motion uploads that texture and nothing else.

const COMMON = `#version 300 es
precision highp float;
precision highp sampler2D;
uniform sampler2D u_nodes;
uniform vec2 u_scale;  // units of the map to the half view
uniform int u_kind;    // 0 flat, 1 hyperbolic, 2 spherical
vec3 node(int i) { return texelFetch(u_nodes, ivec2(i & 1023, i >> 10), 0).xyz; }
`;

export const POINTS = {
  vertex: `${COMMON}
layout(location = 0) in vec4 a_colour;
layout(location = 1) in float a_size;
uniform float u_size;
out vec4 v_colour;
out float v_radius;
void main() {
  vec3 p = node(gl_VertexID);
  v_colour = a_colour;
  if (u_kind == 2 && p.z < 0.0) v_colour.a *= 0.22;  // the far side of the globe
  v_radius = max(1.0, u_size * a_size);
  gl_PointSize = v_radius * 2.0 + 2.0;
  gl_Position = vec4(p.xy * u_scale, 0.0, 1.0);
}`,
  fragment: `#version 300 es
precision highp float;
in vec4 v_colour;
in float v_radius;
uniform vec4 u_ground;
out vec4 colour;
void main() {
  float far = length(gl_PointCoord - 0.5) * (v_radius * 2.0 + 2.0);
  float cover = clamp(v_radius + 0.5 - far, 0.0, 1.0);
  if (cover <= 0.0) discard;
  // a thin line in the colour of the ground tells overlapping nodes apart
  float rim = v_radius > 2.5 ? clamp(far - (v_radius - 1.0), 0.0, 1.0) * 0.75 : 0.0;
  float alpha = v_colour.a * cover;
  colour = vec4(mix(v_colour.rgb, u_ground.rgb, rim) * alpha, alpha);
}`,
};

export const EDGES = {
  vertex: `${COMMON}
uniform highp usampler2D u_edges;
uniform int u_steps;
uniform float u_typical;  // length of a usual edge, in units of the map's space
uniform vec4 u_colour;
out vec4 v_colour;
vec2 times(vec2 a, vec2 b) { return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
vec2 over(vec2 a, vec2 b) { return vec2(dot(a, b), a.y * b.x - a.x * b.y) / max(dot(b, b), 1e-20); }
void main() {
  // no instances: software and some cards draw each as a call of its own. Two ends of each step of each edge.
  int edge = gl_VertexID / (2 * u_steps), corner = gl_VertexID % (2 * u_steps);
  uvec2 ends = texelFetch(u_edges, ivec2(edge & 1023, edge >> 10), 0).xy;
  vec3 p = node(int(ends.x)), q = node(int(ends.y));
  float t = float((corner + 1) / 2) / float(u_steps), far;
  vec3 here;
  if (u_kind == 1) {
    vec2 bar = vec2(p.x, -p.y);
    vec2 w = over(q.xy - p.xy, vec2(1.0, 0.0) - times(bar, q.xy));
    float size = min(length(w), 0.9999995);
    far = 2.0 * atanh(size);
    vec2 part = size > 0.0 ? w * (tanh(t * atanh(size)) / size) : vec2(0.0);
    here = vec3(over(part + p.xy, vec2(1.0, 0.0) + times(bar, part)), 0.0);
  } else if (u_kind == 2) {
    float angle = 2.0 * asin(min(1.0, length(p - q) * 0.5)), sine = sin(angle);
    far = angle;
    here = sine > 1e-5 ? (sin((1.0 - t) * angle) * p + sin(t * angle) * q) / sine : mix(p, q, t);
  } else {
    far = length(p.xy - q.xy);
    here = mix(p, q, t);
  }
  v_colour = u_colour;
  v_colour.a *= 1.0 / (1.0 + 0.55 * (far / u_typical) * (far / u_typical));
  if (u_kind == 2 && here.z < 0.0) v_colour.a *= 0.22;
  gl_Position = vec4(here.xy * u_scale, 0.0, 1.0);
}`,
  fragment: `#version 300 es
precision highp float;
in vec4 v_colour;
out vec4 colour;
void main() { colour = vec4(v_colour.rgb * v_colour.a, v_colour.a); }`,
};
