// Columns from the page: base64, then deflate, then byte planes, then differences.

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const packed = atob(text);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  return bytes;
}

async function inflated(bytes, size) {
  if (typeof DecompressionStream === 'function') {
    try {
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
      return new Uint8Array(await new Response(stream).arrayBuffer());
    } catch (error) {
      // an older browser knows the stream but not the format
    }
  }
  return inflate(bytes, size);
}

const LENGTH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163,
  195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BASE = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049,
  3073, 4097, 6145, 8193, 12289, 16385, 24577];
const DISTANCE_BITS = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const LONGEST_CODE = 15;

// A lookup of every pattern of 15 bits: symbol and length of the code that it begins with.
function huffmanTable(lengths) {
  const counts = new Uint16Array(LONGEST_CODE + 1);
  for (const length of lengths) counts[length]++;
  counts[0] = 0;
  const next = new Uint16Array(LONGEST_CODE + 2);
  for (let bits = 1; bits <= LONGEST_CODE; bits++) next[bits + 1] = (next[bits] + counts[bits]) << 1;
  const table = new Uint16Array(1 << LONGEST_CODE);
  lengths.forEach((length, symbol) => {
    if (!length) return;
    let code = next[length]++;
    let reversed = 0;
    for (let bit = 0; bit < length; bit++, code >>= 1) reversed = (reversed << 1) | (code & 1);
    for (let place = reversed; place < table.length; place += 1 << length) table[place] = (symbol << 4) | length;
  });
  return table;
}

// Raw deflate (RFC 1951), for browsers that cannot.
function inflate(source, size) {
  const out = new Uint8Array(size);
  let at = 0, held = 0, count = 0, next = 0;
  const need = (bits) => {
    while (count < bits) {
      held |= (next < source.length ? source[next] : 0) << count;
      next++;
      count += 8;
    }
  };
  const take = (bits) => {
    if (!bits) return 0;
    need(bits);
    const value = held & ((1 << bits) - 1);
    held >>>= bits;
    count -= bits;
    return value;
  };
  const symbol = (table) => {
    need(LONGEST_CODE);
    const entry = table[held & 0x7fff];
    const length = entry & 15;
    if (!length) throw new Error('damaged data');
    held >>>= length;
    count -= length;
    return entry >> 4;
  };
  const fixed = () => [
    huffmanTable(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))),
    huffmanTable(new Array(30).fill(5)),
  ];
  const dynamic = () => {
    const literals = take(5) + 257, distances = take(5) + 1, codes = take(4) + 4;
    const codeLengths = new Array(19).fill(0);
    for (let i = 0; i < codes; i++) codeLengths[CODE_ORDER[i]] = take(3);
    const table = huffmanTable(codeLengths);
    const lengths = [];
    while (lengths.length < literals + distances) {
      const code = symbol(table);
      if (code < 16) lengths.push(code);
      else {
        const value = code === 16 ? lengths[lengths.length - 1] : 0;
        const repeat = code === 16 ? 3 + take(2) : code === 17 ? 3 + take(3) : 11 + take(7);
        for (let i = 0; i < repeat; i++) lengths.push(value);
      }
    }
    return [huffmanTable(lengths.slice(0, literals)), huffmanTable(lengths.slice(literals, literals + distances))];
  };
  for (let last = 0; !last;) {
    last = take(1);
    const type = take(2);
    if (type === 0) {
      take(count & 7);
      const length = take(8) | (take(8) << 8);
      take(8);
      take(8);
      for (let i = 0; i < length; i++) out[at++] = take(8);
      continue;
    }
    if (type === 3) throw new Error('damaged data');
    const [literals, distances] = type === 1 ? fixed() : dynamic();
    for (;;) {
      const code = symbol(literals);
      if (code < 256) out[at++] = code;
      else if (code === 256) break;
      else {
        const length = LENGTH_BASE[code - 257] + take(LENGTH_BITS[code - 257]);
        const far = symbol(distances);
        const from = at - DISTANCE_BASE[far] - take(DISTANCE_BITS[far]);
        for (let i = 0; i < length; i++) out[at++] = out[from + i];
      }
      if (at > size || next > source.length + 8) throw new Error('damaged data');
    }
  }
  return out;
}

// The columns of one chunk, by key.
async function readChunk(number) {
  const element = document.getElementById(`chunk${number}`);
  const [count, descriptions] = JSON.parse(element.dataset.columns);
  const planes = descriptions.reduce((sum, description) => sum + description[1], 0);
  const bytes = await inflated(bytesOfBase64(element.textContent), planes * count);
  element.remove();
  const columns = {};
  let at = 0;
  for (const [key, width, ascending, narrow] of descriptions) {
    columns[key] = columnOf(bytes, at, count, width, ascending, narrow);
    at += width * count;
  }
  return columns;
}

function columnOf(bytes, at, count, planes, ascending, narrow) {
  const values = narrow ? new Int32Array(count) : new Float64Array(count);
  if (planes > 4) return wideColumn(values, bytes, at, count, planes, ascending);
  const [p0, p1, p2, p3] = [0, 1, 2, 3].map((plane) => (plane < planes ? at + plane * count : -1));
  let sum = 0;
  for (let i = 0; i < count; i++) {
    let value = p0 < 0 ? 0 : bytes[p0 + i];
    if (p1 >= 0) value |= bytes[p1 + i] << 8;
    if (p2 >= 0) value |= bytes[p2 + i] << 16;
    if (p3 >= 0) value |= bytes[p3 + i] << 24;
    if (ascending) values[i] = sum += (value >>> 1) ^ -(value & 1);
    else values[i] = (value >>> 0) - 1;
  }
  return values;
}

// More than 32 bits: whole numbers in floats, exact up to 2^53.
function wideColumn(values, bytes, at, count, planes, ascending) {
  let sum = 0;
  for (let i = 0; i < count; i++) {
    let value = 0;
    for (let plane = planes - 1; plane >= 0; plane--) value = value * 256 + bytes[at + plane * count + i];
    if (ascending) values[i] = sum += value % 2 ? -(value + 1) / 2 : value / 2;
    else values[i] = value - 1;
  }
  return values;
}
