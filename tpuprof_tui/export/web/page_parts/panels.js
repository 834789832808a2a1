// What stands below the timeline: bandwidth over time and the rate of everything that computes, on the same time axis.

const panels = {
  raster: null,
  drawn: {}, // by name: draws into the canvas
  shown: {}, // by name: fills the element

  start() {
    this.raster = new Raster(byId('panel-canvas'));
    const canvas = byId('panel-canvas');
    canvas.addEventListener('click', (event) => this.click(event));
    canvas.addEventListener('pointermove', (event) => this.point(event));
    canvas.addEventListener('pointerleave', () => (byId('card').hidden = true));
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      zoomAbout(timeline.timeAt(event.offsetX), Math.exp(Math.max(-240, Math.min(240, event.deltaY)) * 0.0018));
    }, { passive: false });
  },

  get canvasUsed() {
    return state.panel in this.drawn;
  },

  draw() {
    if (state.view !== 'timeline') return;
    const canvas = byId('panel-canvas'), content = byId('panel-content');
    canvas.hidden = !this.canvasUsed;
    content.hidden = this.canvasUsed;
    if (!this.canvasUsed) {
      this.shown[state.panel]();
      return;
    }
    const box = byId('panel-body');
    this.raster.fit(box.clientWidth, box.clientHeight);
    this.raster.clear(theme.bgPixel);
    this.drawn[state.panel].draw(this.raster);
  },

  click(event) {
    const drawn = this.drawn[state.panel];
    const hit = drawn && drawn.hit && drawn.hit(event.offsetX, event.offsetY);
    if (hit) select(hit.lane, hit.row, true);
  },

  point(event) {
    const drawn = this.drawn[state.panel], card = byId('card');
    const facts = drawn && drawn.facts && drawn.facts(event.offsetX, event.offsetY);
    card.hidden = !facts;
    if (facts) {
      card.replaceChildren(el('div', 'card-title', el('b', '', facts.title)), factList(facts.facts));
      hover.place(event);
    }
    const x = event.offsetX;
    showCursor(x >= GUTTER && x <= GUTTER + timeline.plot ? timeline.timeAt(x) : null);
  },
};

drawers.push(() => panels.draw());

// Scale marks of a vertical axis from 0 to `top`, between y0 (top) and y1 (bottom).
const SCALE_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000];

function scaleStep(top) {
  return SCALE_STEPS.find((each) => top / each <= 4) || top / 4;
}

// The lines of the scale; drawn first, so that they lie below.
function scaleLines(raster, top, y0, y1) {
  const step = scaleStep(top), x0 = Math.round(GUTTER * raster.ratio);
  for (let value = 0; value <= top * 1.0001; value += step) {
    const y = Math.round((y1 - ((y1 - y0) * value) / top) * raster.ratio);
    raster.box(x0, y, x0 + Math.round(timeline.plot * raster.ratio), y + 1, theme.linePixel);
  }
}

function drawScale(context, top, unit, y0, y1) {
  const step = scaleStep(top);
  context.font = FONT;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (let value = 0; value <= top * 1.0001; value += step) {
    const y = y1 - ((y1 - y0) * value) / top;
    context.fillStyle = theme.quiet;
    if (value > 0) context.fillText(grouped(value, step < 1 ? 1 : 0), GUTTER - 8, y);
  }
  context.textAlign = 'left';
  context.fillStyle = theme.quiet;
  context.fillText(unit, 18, y0 + 26);
}

// Running sums of bytes of a track, by memory; made when first asked for.
function bytesOf(track) {
  if (track.bytes) return track.bytes;
  track.bytes = {};
  for (const { key, name } of profile.memories) {
    const values = track.lane.columns[key], sums = new Float64Array(track.n + 1);
    for (let i = 0; i < track.n; i++) {
      const row = Lane.rowOf(track, i);
      sums[i + 1] = sums[i] + (values && values[row] > 0 ? (values[row] / 1e4) * (track.end[i] - track.start[i]) : 0);
    }
    track.bytes[name] = sums;
  }
  return track.bytes;
}

// Bytes that a track moved before a time; what still runs counts with its part.
function movedBefore(track, sums, time) {
  let place = lowerBound(track.start, time, 0, track.n);
  let moved = sums[place];
  for (let i = place - 1; i >= 0 && track.latest[i] > time; i--) {
    const length = track.end[i] - track.start[i];
    if (track.end[i] > time && length > 0) moved -= ((sums[i + 1] - sums[i]) * (track.end[i] - time)) / length;
  }
  return moved;
}

const bandwidth = {
  cells: [],

  // Edges of the segments: pixels, or so many ns from the start of the profile; never more than pixels.
  edges(width) {
    const span = state.to - state.from;
    const length = Math.max(state.segment, span / Math.max(Math.floor(width / (state.segment ? 1 : 2)), 1));
    const first = state.segment ? Math.floor((state.from - WINDOW_START) / length) * length + WINDOW_START : state.from;
    const edges = [first];
    while (edges[edges.length - 1] < state.to) edges.push(edges[edges.length - 1] + length);
    return { edges, length };
  },

  // GB/s per segment and unit: a map of arrays for each memory.
  measure(edges) {
    const found = Object.fromEntries(profile.memories.map(({ name }) => [name, new Map()]));
    const last = profile.until ?? Infinity; // from here on the overview speaks for everything
    for (const lane of shownLanes()) {
      if (!lane.transfers || !lane.columns) continue;
      for (const { key, name: memory } of profile.memories) {
        if (!lane.columns[key]) continue;
        const values = found[memory].get(lane.core) || new Float64Array(edges.length - 1);
        for (const track of lane.tracks) {
          const sums = bytesOf(track)[memory];
          if (!sums[track.n]) continue;
          let before = movedBefore(track, sums, Math.min(edges[0], last));
          for (let i = 1; i < edges.length; i++) {
            const moved = movedBefore(track, sums, Math.min(edges[i], last));
            values[i - 1] += (moved - before) / (edges[i] - edges[i - 1]);
            before = moved;
          }
        }
        if (profile.until !== null && lane.overview && lane.overview.sums[memory]) this.addOverview(lane, memory, edges, values);
        found[memory].set(lane.core, values);
      }
    }
    return found;
  },

  // Beyond the instructions that the page holds: the bytes of the overview's cells, spread evenly in each.
  addOverview(lane, memory, edges, values) {
    for (let i = 0; i + 1 < edges.length; i++) {
      const from = Math.max(edges[i], profile.until), to = edges[i + 1];
      if (to > from) values[i] += lane.overview.between(memory, from, to) / (to - edges[i]);
    }
  },

  draw(raster) {
    const { edges, length } = this.edges(timeline.plot);
    const found = this.measure(edges);
    const charts = profile.memories.filter(({ name }, place) => !place || found[name].size).map(({ name, label }) => [name, label]);
    const each = (raster.height - 18) / charts.length;
    const frames = charts.map(([memory, label], place) => {
      const y0 = place * each + 6, y1 = (place + 1) * each - 6;
      const totals = new Float64Array(edges.length - 1);
      for (const values of found[memory].values()) values.forEach((value, i) => (totals[i] += value));
      const most = totals.reduce((a, b) => Math.max(a, b), 0);
      // the peak is that of one unit; beyond four times what was reached its line would flatten the chart
      const units = [...found[memory].keys()].filter((core) => core >= 0).length;
      const peak = (profile.peak[memory] || 0) * units;
      const top = Math.max(most * 1.06, peak <= most * 4 ? peak * 1.06 : 0, 1);
      return { memory, label, y0, y1, totals, top, peak, units };
    });
    this.cells = { edges, frames, found };
    this.drawLegend();
    for (const frame of frames) this.drawStack(raster, frame, edges, found[frame.memory]);
    const axis = timeTicks(raster.width);
    const context = raster.show();
    for (const { label, y0, y1, top } of frames) {
      drawScale(context, top, `GB/s per ${durationText(length)}`, y0, y1);
      context.font = `600 ${FONT}`;
      context.fillStyle = theme.text;
      context.fillText(`${label} bandwidth`, 18, y0 + 10);
    }
    for (const frame of frames) this.drawPeak(context, frame);
    drawAxis(context, axis, raster.width, raster.height - 18, 18);
  },

  drawStack(raster, { y0, y1, top }, edges, byCore) {
    const { ratio } = raster;
    const bottom = Math.round(y1 * ratio), tall = Math.round((y1 - y0) * ratio);
    scaleLines(raster, top, y0, y1);
    for (let i = 0; i + 1 < edges.length; i++) {
      const left = Math.round(Math.max(timeline.xOf(edges[i]), GUTTER) * ratio);
      const right = Math.round(Math.min(timeline.xOf(edges[i + 1]), GUTTER + timeline.plot) * ratio);
      let below = 0;
      for (const [core, values] of byCore) {
        const above = below + values[i];
        raster.box(left, bottom - Math.round((above / top) * tall), Math.max(right, left + 1),
          bottom - Math.round((below / top) * tall), pixel(colours.ofCore(core)));
        below = above;
      }
    }
  },

  // A dashed line at the peak of the units shown; above the chart it is only named.
  drawPeak(context, { y0, y1, top, peak, units }) {
    if (!peak) return;
    const above = peak > top, y = above ? y0 + 6 : y1 - ((y1 - y0) * peak) / top, right = GUTTER + timeline.plot;
    const text = `peak ${grouped(peak, 1)} GB/s${units > 1 ? ` (${units} × ${grouped(peak / units, 1)})` : ''}${above ? ' ↑' : ''}`;
    if (!above) {
      context.save();
      context.strokeStyle = theme.bad;
      context.lineWidth = 1.5;
      context.setLineDash([6, 4]);
      context.beginPath();
      context.moveTo(GUTTER, y);
      context.lineTo(right, y);
      context.stroke();
      context.restore();
    }
    context.font = FONT;
    context.textAlign = 'right';
    const width = context.measureText(text).width, middle = above ? y + 2 : y + 9;
    context.fillStyle = theme.bg;
    context.globalAlpha = 0.8;
    context.fillRect(right - width - 8, middle - 7, width + 8, 14);
    context.globalAlpha = 1;
    context.fillStyle = theme.bad;
    context.fillText(text, right - 4, middle);
    context.textAlign = 'left';
  },

  // The colours of the units that are stacked.
  drawLegend() {
    const { frames, found } = this.cells;
    const units = [...new Set(frames.flatMap(({ memory }) => [...found[memory].keys()]))];
    const key = [theme.bg, ...units].join();
    const box = byId('panel-legend');
    if (box.dataset.key === key) return;
    box.dataset.key = key;
    box.replaceChildren(...units.map((core) => {
      const swatch = el('span', 'swatch');
      swatch.style.background = colours.ofCore(core);
      return el('span', 'legend-entry', [swatch, core < 0 ? profile.ports_title || 'Others' : unitTitle(core)]);
    }));
  },

  facts(x, y) {
    const { edges, frames, found } = this.cells;
    const time = timeline.timeAt(x);
    const place = lowerBound(edges, time + 1e-9, 0, edges.length) - 1;
    const frame = frames.find((each) => y >= each.y0 && y <= each.y1);
    if (!frame || x < GUTTER || place < 0 || place + 1 >= edges.length) return null;
    const total = frame.totals[place];
    const facts = [['Total', `${grouped(total, 2)} GB/s`], ...(frame.peak ? [['Of the peak', percentText(total / frame.peak)]] : [])];
    for (const [core, values] of found[frame.memory]) {
      facts.push([core < 0 ? profile.ports_title : unitTitle(core), `${grouped(values[place], 2)} GB/s`]);
    }
    return { title: `${frame.label} from ${durationText(edges[place])}`, facts };
  },
};

panels.drawn.bandwidth = bandwidth;

const scatter = {
  draw(raster) {
    const { ratio } = raster, y0 = 12, y1 = raster.height - 24;
    const axis = timeTicks(raster.width);
    const size = Math.max(2, Math.round(3 * ratio));
    let known = false;
    scaleLines(raster, 100, y0, y1);
    for (const lane of shownLanes()) {
      if (lane.transfers || !lane.columns || !lane.columns[profile.rate.key]) continue;
      known = true;
      for (const track of lane.tracks) {
        for (let i = track.firstAfter(state.from); i < track.n && track.start[i] < state.to; i++) {
          if (colours.quiet[track.kind[i]]) continue;
          const rate = lane.columns[profile.rate.key][Lane.rowOf(track, i)];
          if (rate < 0) continue;
          const x = Math.round(timeline.xOf(track.start[i]) * ratio);
          const y = Math.round((y1 - ((y1 - y0) * Math.min(rate, 10000)) / 10000) * ratio);
          if (x < GUTTER * ratio) continue;
          const match = !filters.dim || filters.dim[track.kind[i]];
          const colour = rate < 10000 ? theme.badPixel : theme.goodPixel;
          raster.box(x, y - (size >> 1), x + size, y + (size >> 1) + 1,
            match ? colour : mixed(colour, theme.bgPixel, 0.2));
        }
      }
    }
    this.frame = known ? { y0, y1 } : null;
    if (!known) {
      raster.clear(theme.bgPixel);
      drawNote(raster, profile.rate.missing);
      return;
    }
    const context = raster.show();
    drawScale(context, 100, `% per ${profile.words.event}`, y0, y1);
    context.font = `600 ${FONT}`;
    context.fillStyle = theme.text;
    context.fillText(profile.rate.title, 18, y0 + 10);
    drawAxis(context, axis, raster.width, raster.height - 20, 18);
  },

  // The command nearest to a point, within a few pixels.
  hit(x, y) {
    if (!this.frame) return null;
    const { y0, y1 } = this.frame, reach = (6 / timeline.plot) * (state.to - state.from), time = timeline.timeAt(x);
    let best = null, distance = 8;
    for (const lane of shownLanes()) {
      if (lane.transfers || !lane.columns || !lane.columns[profile.rate.key]) continue;
      for (const track of lane.tracks) {
        const first = lowerBound(track.start, time - reach, 0, track.n);
        for (let i = first; i < track.n && track.start[i] <= time + reach; i++) {
          const row = Lane.rowOf(track, i), rate = lane.columns[profile.rate.key][row];
          if (rate < 0 || colours.quiet[track.kind[i]]) continue;
          const away = Math.hypot(timeline.xOf(track.start[i]) - x, y1 - ((y1 - y0) * rate) / 10000 - y);
          if (away < distance) {
            distance = away;
            best = { lane, row };
          }
        }
      }
    }
    return best;
  },

  facts(x, y) {
    const hit = this.hit(x, y);
    if (!hit) return null;
    return {
      title: `${kinds.name(hit.lane.columns.kind[hit.row])} · ${hit.lane.title}`,
      facts: factsOf(hit.lane, hit.row).filter(([label]) => CARD_FACTS.has(label)),
    };
  },
};

panels.drawn.rate = scatter;
