// A canvas whose boxes are written as pixels: a hundred thousand a frame cost a few milliseconds.

class Raster {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.ratio = 1;
    this.width = this.height = 0;
  }

  // Fits the canvas to its element; sizes are CSS pixels, `pw` and `ph` those of the device.
  fit(width, height) {
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = Math.max(1, Math.floor(width));
    this.height = Math.max(1, Math.floor(height));
    const pw = Math.round(this.width * this.ratio), ph = Math.round(this.height * this.ratio);
    if (pw !== this.pw || ph !== this.ph) {
      this.pw = pw;
      this.ph = ph;
      this.canvas.width = pw;
      this.canvas.height = ph;
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${this.height}px`;
      this.image = this.context.createImageData(pw, ph);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
  }

  clear(colour) {
    this.pixels.fill(colour);
  }

  // Fills a box given in device pixels, cut to the canvas.
  box(x0, y0, x1, y1, colour) {
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    if (x1 > this.pw) x1 = this.pw;
    if (y1 > this.ph) y1 = this.ph;
    if (x1 <= x0) return;
    const { pixels, pw } = this;
    if (x1 - x0 < 12) {
      for (let y = y0, row = y0 * pw; y < y1; y++, row += pw) for (let x = row + x0; x < row + x1; x++) pixels[x] = colour;
    } else {
      for (let y = y0, row = y0 * pw; y < y1; y++, row += pw) pixels.fill(colour, row + x0, row + x1);
    }
  }

  // Diagonal stripes over a box.
  stripes(x0, y0, x1, y1, colour) {
    x0 = Math.max(x0, 0);
    y0 = Math.max(y0, 0);
    x1 = Math.min(x1, this.pw);
    y1 = Math.min(y1, this.ph);
    const gap = Math.round(5 * this.ratio), thick = Math.round(2 * this.ratio);
    for (let y = y0; y < y1; y++) {
      const row = y * this.pw;
      for (let x = x0; x < x1; x++) if ((x + y) % gap < thick) this.pixels[row + x] = colour;
    }
  }

  // Shows the pixels; texts and lines are drawn over them, in CSS pixels.
  show() {
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.putImageData(this.image, 0, 0);
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    return this.context;
  }
}

// Steps of an axis that read well: about one for every `apart` pixels.
function axisStep(span, width, apart = 110) {
  const rough = (span * apart) / Math.max(width, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((each) => each * power >= rough);
  return Math.max(factor * power, 1);
}

const GUTTER = 168;
const RIGHT = 10;
const FONT = '11px ui-sans-serif, system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';

// Ticks of the time axis: [x, time], and what their labels need.
function timeTicks(width) {
  const span = state.to - state.from;
  const plot = width - GUTTER - RIGHT;
  const step = axisStep(span, plot);
  const [unit, length] = unitFor(Math.max(span, Math.abs(state.to) / 1e4, step));
  const ticks = [];
  for (let time = Math.ceil(state.from / step) * step; time <= state.to; time += step) {
    ticks.push([GUTTER + ((time - state.from) / span) * plot, time]);
  }
  return { ticks, step, unit, length };
}
