// Colours of functions, types, kernel functions and cores; as numbers for pixels and as texts for the rest.

const PALETTE = ['#4f9cf9', '#3fb68b', '#f59e57', '#c084fc', '#f472b6', '#22b8cf', '#d4a72c', '#8b7cf6', '#7cb342',
  '#ef6f6c', '#2dd4bf', '#e8890c', '#a3a3f5', '#5cb85c', '#e05297', '#3b82c4', '#b5894e', '#9b59d0', '#38a169', '#d97757'];
// Units stand beside functions, in the gutter and in the charts of bandwidth, and share no colour with them.
const UNIT_PALETTE = ['#4456c7', '#8fb0ff', '#1f8f82', '#9ad78c', '#e6bf4f', '#c9662b', '#f0a3a0', '#8e4a86'];
const COLOUR_KEYS = { function: 'name', type: 'type', kernel: 'kernel', direction: 'direction', core: null };

// Every further round through the palette is a shade greyer.
function colourOfRank(rank, palette = PALETTE) {
  const round = Math.min(3, Math.floor(rank / palette.length)), colour = pixel(palette[rank % palette.length]);
  return round ? hexOf(mixed(colour, 0xff808080, 1 - 0.25 * round)) : palette[rank];
}

function hexOf(value) {
  const bytes = [value & 255, (value >> 8) & 255, (value >> 16) & 255];
  return `#${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

const theme = {};

// Little-endian pixels: red is the lowest byte.
function pixel(hex) {
  const value = parseInt(hex.slice(1), 16);
  return ((255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

function mixed(front, back, share) {
  const part = Math.round(share * 256), rest = 256 - part;
  const even = (((front & 0xff00ff) * part + (back & 0xff00ff) * rest) >>> 8) & 0xff00ff;
  const odd = ((((front >>> 8) & 0xff) * part + ((back >>> 8) & 0xff) * rest) >>> 8) << 8;
  return (0xff000000 | even | odd) >>> 0;
}

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['bg', 'surface', 'raised', 'line', 'text', 'quiet', 'accent', 'good', 'caution', 'bad', 'still',
    'row']) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
    theme[`${name}Pixel`] = pixel(theme[name]);
  }
}

const colours = {
  by: 'function',
  ofKind: [], // text
  pixelOfKind: new Uint32Array(0),
  ofCode: new Map(),

  // Ranks what is coloured by the time it took, so that what matters gets colours of its own.
  rebuild() {
    const key = COLOUR_KEYS[this.by];
    this.ofCode = new Map();
    if (key) {
      const times = new Map();
      for (const lane of lanes) {
        for (const [kind, , ns] of lane.totals) {
          if (kinds.role[kind] > ROLE.WORK) continue;
          const code = kinds.code[key][kind];
          times.set(code, (times.get(code) || 0) + (lane.ofHost ? ns / 1e9 : ns)); // the host's come last
        }
      }
      const ranked = [...times].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
      ranked.forEach(([code], rank) => this.ofCode.set(code, colourOfRank(rank)));
    }
    this.ofKind = Array.from({ length: kinds.count }, (_, kind) => {
      if (kinds.role[kind] > ROLE.WORK) return theme.still;
      return (key && this.ofCode.get(kinds.code[key][kind])) || PALETTE[0];
    });
    this.pixelOfKind = Uint32Array.from(this.ofKind, pixel);
    this.kernels = new Map();
    this.quiet = Uint8Array.from(kinds.role, (role) => (role > ROLE.WORK ? 1 : 0));
  },

  ofCore(core) {
    return core === undefined || core < 0 ? theme.quiet : colourOfRank(core, UNIT_PALETTE);
  },

  ofKernel(kind) {
    const code = kinds.code.kernel[kind];
    if (!this.kernels.has(code)) this.kernels.set(code, PALETTE[(code * 7 + 3) % PALETTE.length]);
    return this.kernels.get(code);
  },

  ofInstruction(lane, kind) {
    if (this.by === 'core' && kinds.role[kind] <= ROLE.WORK) return this.ofCore(lane.core);
    return this.ofKind[kind];
  },
};

const TEXT_ON = new Map();
// Black or white, whichever reads better on a colour.
function textOn(hex) {
  if (!TEXT_ON.has(hex)) {
    const value = parseInt(hex.slice(1), 16);
    const light = 0.299 * (value >> 16) + 0.587 * ((value >> 8) & 255) + 0.114 * (value & 255);
    TEXT_ON.set(hex, light > 130 ? '#0b0f16' : '#ffffff');
  }
  return TEXT_ON.get(hex);
}
