// The strip above the timeline: the whole profile, with the window as a slider.

const minimap = {
  raster: null,
  grip: 7,

  start() {
    this.raster = new Raster(byId('minimap'));
    const canvas = byId('minimap');
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.hint(event));
    canvas.addEventListener('dblclick', () => setWindow(WINDOW_START, WINDOW_END));
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      zoomAbout(this.timeAt(event.offsetX), Math.exp(event.deltaY * 0.0015));
    }, { passive: false });
  },

  xOf(time) {
    return GUTTER + ((time - WINDOW_START) / SPAN) * (this.raster.width - GUTTER - RIGHT);
  },

  timeAt(x) {
    return WINDOW_START + ((x - GUTTER) / (this.raster.width - GUTTER - RIGHT)) * SPAN;
  },

  part(x) {
    const left = this.xOf(state.from), right = this.xOf(state.to);
    if (Math.abs(x - left) < this.grip) return 'left';
    if (Math.abs(x - right) < this.grip) return 'right';
    return x > left && x < right ? 'middle' : 'outside';
  },

  hint(event) {
    const shapes = { left: 'ew-resize', right: 'ew-resize', middle: 'grab', outside: 'crosshair' };
    event.target.style.cursor = shapes[this.part(event.offsetX)];
  },

  press(event) {
    const part = this.part(event.offsetX), { from, to } = state, first = this.timeAt(event.offsetX);
    event.target.setPointerCapture(event.pointerId);
    const move = (next) => {
      const time = this.timeAt(next.offsetX);
      if (part === 'left') setWindow(Math.min(time, to - NARROWEST), to);
      else if (part === 'right') setWindow(from, Math.max(time, from + NARROWEST));
      else if (part === 'middle') setWindow(from + time - first, to + time - first);
      else if (Math.abs(time - first) > SPAN / 500) setWindow(Math.min(first, time), Math.max(first, time));
    };
    const release = () => {
      event.target.removeEventListener('pointermove', move);
      if (part === 'outside' && state.from === from && state.to === to) {
        setWindow(first - (to - from) / 2, first + (to - from) / 2);
      }
    };
    event.target.addEventListener('pointermove', move);
    event.target.addEventListener('pointerup', release, { once: true });
  },

  // Mean share of time per pixel over the shown cores: of compute, and of transfers.
  shares(pixels) {
    const key = [pixels, [...state.cores].sort(), [...state.engines], lanes.filter((lane) => lane.overview).length].join('|');
    if (this.key === key) return this.found;
    const perPixel = SPAN / pixels;
    this.found = [false, true].map((transfers) => {
      const counted = (lane) => lane.overview && !lane.ofHost && lane.transfers === transfers;
      const cores = new Map(); // of each core what its engines did, at most all of the time
      for (const lane of shownLanes()) {
        if (!counted(lane)) continue;
        const sums = cores.get(lane.key) || new Float64Array(pixels);
        for (let x = 0; x < pixels; x++) {
          const time = WINDOW_START + x * perPixel;
          sums[x] = Math.min(1, sums[x] + lane.overview.between('busy', time, time + perPixel) / perPixel);
        }
        cores.set(lane.key, sums);
      }
      const mean = new Float64Array(pixels);
      for (const sums of cores.values()) sums.forEach((share, x) => (mean[x] += share / cores.size));
      return mean;
    });
    this.key = key;
    return this.found;
  },

  draw() {
    if (state.view !== 'timeline') return;
    const { raster } = this;
    const box = byId('minimap-box');
    raster.fit(box.clientWidth, box.clientHeight);
    raster.clear(theme.surfacePixel);
    const x0 = Math.round(GUTTER * raster.ratio), x1 = Math.round((raster.width - RIGHT) * raster.ratio);
    const middle = Math.round(raster.ph / 2), half = middle - Math.round(3 * raster.ratio);
    const [compute, transfer] = this.shares(x1 - x0);
    for (let x = x0; x < x1; x++) {
      raster.box(x, middle - Math.round(half * compute[x - x0]), x + 1, middle, pixel(PALETTE[0]));
      raster.box(x, middle, x + 1, middle + Math.round(half * transfer[x - x0]), pixel(PALETTE[1]));
    }
    const context = raster.show();
    const left = this.xOf(state.from), right = Math.max(this.xOf(state.to), left + 2);
    context.fillStyle = theme.bg;
    context.globalAlpha = 0.62;
    context.fillRect(GUTTER, 0, left - GUTTER, raster.height);
    context.fillRect(right, 0, raster.width - RIGHT - right, raster.height);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.5, 1, right - left - 1, raster.height - 2);
    context.fillStyle = theme.accent;
    for (const x of [left, right]) context.fillRect(x - 2, raster.height / 2 - 8, 4, 16);
    context.font = FONT;
    context.textBaseline = 'middle';
    context.fillStyle = theme.text;
    context.fillText('whole capture', 18, raster.height / 2 - 9);
    context.fillStyle = theme.quiet;
    context.fillText('compute ↑  transfer ↓', 18, raster.height / 2 + 8);
    if (profile.until !== null) {
      context.fillStyle = theme.caution;
      context.fillRect(this.xOf(profile.until), 0, 2, raster.height);
    }
    byId('window-text').textContent =
      `${durationText(state.from)} to ${durationText(state.to)}  (${durationText(state.to - state.from)})`;
    document.documentElement.dataset.window = `${state.from},${state.to}`;
  },
};

drawers.push(() => minimap.draw());
