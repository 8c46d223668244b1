// The other end of report/packing.py: one deflated block with a description and arrays.

const SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%.()*+-;,=>?@^_`{|}~";

// five signs to four bytes; the last group may be shorter
function fromText(text) {
  const values = new Uint8Array(128), groups = Math.ceil(text.length / 5);
  for (let i = 0; i < SIGNS.length; i++) values[SIGNS.charCodeAt(i)] = i;
  const bytes = new Uint8Array(4 * groups);
  for (let group = 0; group < groups; group++) {
    let value = 0;
    for (let i = 5 * group; i < 5 * group + 5; i++) value = value * 85 + (i < text.length ? values[text.charCodeAt(i)] : 84);
    bytes[4 * group] = value >>> 24;
    bytes[4 * group + 1] = value >>> 16;
    bytes[4 * group + 2] = value >>> 8;
    bytes[4 * group + 3] = value;
  }
  return bytes.subarray(0, 4 * groups - (5 * groups - text.length));
}

export async function unpack(text) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old to unpack the page (no DecompressionStream): use one of 2023 or later");
  }
  const stream = new Blob([fromText(text.trim())]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const head = new DataView(bytes.buffer).getUint32(0, true);
  const about = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + head)));
  return { about, arrays: bytes.subarray(4 + head) };
}

// an array from its description: high bytes first, plane by plane
export function readArray(arrays, { at, length, width, signed, delta, step }) {
  const values = new Float64Array(length);
  for (let plane = 0; plane < width; plane++) {
    const from = at + plane * length;
    for (let i = 0; i < length; i++) values[i] = values[i] * 256 + arrays[from + i];
  }
  if (signed) for (let i = 0; i < length; i++) values[i] = values[i] % 2 ? -(values[i] + 1) / 2 : values[i] / 2;
  if (delta) for (let i = 1; i < length; i++) values[i] += values[i - 1];
  if (step) for (let i = 0; i < length; i++) values[i] *= step;
  return values;
}
