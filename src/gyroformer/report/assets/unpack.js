// The other end of report/packing.py: one deflated block with a description and arrays.

export async function unpack(base64) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old to unpack the page (no DecompressionStream): use one of 2023 or later");
  }
  const text = atob(base64.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
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
