// The timeline: a row per engine of a core, a box per instruction; where boxes are narrower than a pixel, exact sums.

const AXIS = 24;
const CORE_HEIGHT = 20, LAUNCH_HEIGHT = 15, TRACK_HEIGHT = 30, TALLEST = 96, ROW_GAP = 3;

const timeline = {
  raster: null,
  rows: [], // { kind: 'core' | 'launches' | 'track', y, h, ... } in CSS pixels, before scrolling
  height: 0,
  scroll: 0,

  start() {
    this.raster = new Raster(byId('timeline'));
    this.box = byId('timeline-box');
  },

  // Rows from top to bottom; boxes grow where there is room.
  layout(room) {
    const rows = [];
    let tracks = 0, fixed = 0;
    let group = null;
    for (const lane of shownLanes()) {
      if (lane.group !== group) {
        group = lane.group;
        rows.push({ kind: 'core', h: CORE_HEIGHT, lane });
        fixed += CORE_HEIGHT;
        if (launches.has(lane.core)) {
          rows.push({ kind: 'launches', h: LAUNCH_HEIGHT, lane, launches: launches.get(lane.core) });
          fixed += LAUNCH_HEIGHT + ROW_GAP;
        }
      }
      const parts = lane.columns ? lane.tracks.length : lane.subrows.length;
      for (let part = 0; part < parts; part++) rows.push({ kind: 'track', lane, part, parts });
      tracks += 1;
    }
    const share = tracks ? (room - AXIS - fixed) / tracks - ROW_GAP : TRACK_HEIGHT;
    const height = Math.max(TRACK_HEIGHT, Math.min(TALLEST, Math.floor(share)));
    let y = AXIS;
    for (const row of rows) {
      if (row.kind === 'track') row.h = row.parts > 1 ? Math.max(9, Math.floor(height / row.parts)) : height;
      row.y = y;
      y += row.h + (row.kind === 'core' ? 0 : ROW_GAP);
    }
    this.rows = rows;
    this.height = y + 4;
  },

  draw() {
    if (state.view !== 'timeline') return;
    const width = this.box.clientWidth, room = this.box.clientHeight;
    this.layout(room);
    byId('timeline-spacer').style.height = `${Math.max(this.height - room, 0)}px`;
    this.scroll = this.box.scrollTop;
    const raster = this.raster;
    raster.fit(width, room);
    raster.clear(theme.bgPixel);
    const axis = timeTicks(width);
    for (const [x] of axis.ticks) this.column(x, theme.linePixel);
    const labels = [];
    for (const row of this.rows) {
      const y = row.y - this.scroll;
      if (y + row.h < AXIS || y > room) continue;
      if (row.kind === 'track') this.drawTrack(row, y, labels);
      if (row.kind === 'launches' && row.launches.track) this.drawLaunches(row, y, labels);
    }
    this.shadeOmitted();
    raster.box(0, 0, raster.pw, Math.round(AXIS * raster.ratio), theme.surfacePixel);
    const context = raster.show();
    context.font = FONT;
    context.textBaseline = 'middle';
    this.drawLabels(context, labels);
    this.drawGutter(context, room);
    drawAxis(context, axis, width, 0, AXIS);
    this.drawSelection(context);
  },

  xOf(time) {
    return GUTTER + ((time - state.from) / (state.to - state.from)) * this.plot;
  },

  timeAt(x) {
    return state.from + ((x - GUTTER) / this.plot) * (state.to - state.from);
  },

  get plot() {
    return Math.max(this.raster.width - GUTTER - RIGHT, 10);
  },

  column(x, colour) {
    const at = Math.round(x * this.raster.ratio);
    this.raster.box(at, 0, at + 1, this.raster.ph, colour);
  },

  drawTrack(row, y, labels) {
    const { raster } = this, { ratio } = raster;
    const y0 = Math.max(Math.round(y * ratio), Math.round(AXIS * ratio)), y1 = Math.round((y + row.h) * ratio);
    const x0 = Math.round(GUTTER * ratio), x1 = Math.round((GUTTER + this.plot) * ratio);
    this.tint(x0, y0, x1, y1);
    const track = row.lane.columns && row.lane.tracks[row.part];
    if (track) drawBoxes(raster, track, { x0, x1, y0, y1 }, labels);
    if (!track || profile.until !== null) this.drawOverview(row, x0, x1, y0, y1);
  },

  tint(x0, y0, x1, y1) {
    const { pixels, pw, ph } = this.raster;
    for (let y = Math.max(y0, 0); y < Math.min(y1, ph); y++) {
      for (let x = y * pw + x0; x < y * pw + x1; x++) if (pixels[x] === theme.bgPixel) pixels[x] = theme.rowPixel;
    }
  },

  // The exact share of time per cell, where instructions are not there (yet).
  drawOverview(row, x0, x1, y0, y1) {
    const { overview } = row.lane;
    if (!overview || row.part > 0 || filters.active) return;
    const from = row.lane.columns ? profile.until : WINDOW_START;
    const perPixel = (state.to - state.from) / (x1 - x0), tall = y1 - y0;
    const colour = mixed(theme.accentPixel, theme.rowPixel, 0.55);
    for (let x = Math.max(x0, Math.floor(x0 + (from - state.from) / perPixel)); x < x1; x++) {
      const left = Math.max(state.from + (x - x0) * perPixel, from), right = state.from + (x + 1 - x0) * perPixel;
      const share = (key) => Math.min(1, overview.between(key, left, right) / Math.max(right - left, 1e-9));
      const top = y1 - Math.round(tall * share('busy'));
      this.raster.box(x, top, x + 1, y1, colour);
      this.raster.box(x, Math.max(y0, top - Math.round(tall * share('still'))), x + 1, top, theme.stillPixel);
    }
  },

  drawLaunches(row, y, labels) {
    const { raster } = this, { ratio } = raster, { track } = row.launches;
    const y0 = Math.max(Math.round(y * ratio), Math.round(AXIS * ratio)), y1 = Math.round((y + row.h) * ratio);
    const x0 = Math.round(GUTTER * ratio), x1 = Math.round((GUTTER + this.plot) * ratio);
    const scale = (x1 - x0) / (state.to - state.from);
    let last = -1;
    for (let i = track.firstAfter(state.from); i < track.n && track.start[i] < state.to; i++) {
      const left = Math.max(x0, Math.floor(x0 + (track.start[i] - state.from) * scale));
      const right = Math.min(x1, Math.floor(x0 + (track.end[i] - state.from) * scale));
      if (right <= last) continue;
      const dim = (filters.dim && !filters.dim[track.kind[i]]) || (filters.active && !filters.passes[track.kind[i]]);
      const colour = colours.ofKernel(track.kind[i]);
      raster.box(Math.max(left, last), y0, Math.max(right, left + 1), y1, mixed(pixel(colour), theme.bgPixel, dim ? 0.1 : 0.35));
      raster.box(left, y0, left + 1, y1, mixed(pixel(colour), theme.bgPixel, dim ? 0.2 : 0.9));
      last = Math.max(right, left + 1);
      const next = i + 1 < track.n ? Math.min(right, x0 + (track.start[i + 1] - state.from) * scale) : right;
      if (next - left > 34 * ratio) {
        labels.push({ text: kinds.text('kernel', track.kind[i]), colour: theme.text, x: left / ratio + 4,
          y: (y0 + y1) / 2 / ratio, width: (next - left) / ratio - 8 });
      }
    }
  },

  shadeOmitted() {
    if (profile.until === null || state.to <= profile.until) return;
    const { raster } = this;
    const x = Math.max(GUTTER, this.xOf(profile.until)) * raster.ratio;
    raster.box(Math.round(x), 0, Math.round(x) + Math.round(2 * raster.ratio), raster.ph, theme.cautionPixel);
  },

  drawLabels(context, labels) {
    context.textAlign = 'left';
    for (const label of labels) {
      if (label.y < AXIS + 4) continue;
      const text = fitted(context, label.text, label.width);
      if (!text) continue;
      context.fillStyle = label.colour;
      context.fillText(text, label.x, label.y + 0.5);
      if (label.more) {
        const used = context.measureText(text).width + 8;
        const more = text === label.text && context.measureText(label.more).width <= label.width - used;
        context.globalAlpha = 0.7;
        if (more) context.fillText(label.more, label.x + used, label.y + 0.5);
        context.globalAlpha = 1;
      }
    }
  },

  drawGutter(context, room) {
    context.fillStyle = theme.surface;
    context.fillRect(0, AXIS, GUTTER - 1, room);
    context.fillStyle = theme.line;
    context.fillRect(GUTTER - 1, 0, 1, room);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, GUTTER - 2, room);
    context.clip();
    for (const row of this.rows) {
      const y = row.y - this.scroll, middle = y + row.h / 2;
      if (y + row.h < AXIS || y > room) continue;
      if (row.kind === 'core') {
        context.fillStyle = row.lane.core >= 0 ? colours.ofCore(row.lane.core) : theme.quiet;
        context.fillRect(8, middle - 3, 4, 10);
        context.fillStyle = theme.text;
        context.font = `600 ${FONT}`;
        context.fillText(fitted(context, row.lane.group, GUTTER - 30), 18, middle + 2);
      } else if (row.kind === 'launches') {
        context.font = FONT;
        context.fillStyle = theme.quiet;
        context.fillText(profile.words.scopes, 18, middle);
      } else if (row.part === 0) this.drawLaneLabel(context, row.lane, row, y);
    }
    context.restore();
  },

  drawLaneLabel(context, lane, row, y) {
    const tall = row.h * row.parts >= 26;
    const mark = lane.guessed ? '~' : '';
    context.font = FONT;
    context.fillStyle = theme.text;
    context.fillText(fitted(context, lane.label, 78), 18, tall ? y + 9 : y + row.h / 2);
    context.textAlign = 'right';
    context.fillStyle = theme.text;
    context.fillText(`${mark}${percentText(lane.busy / (lane.ofHost ? SPAN : DEVICE_SPAN))}`, GUTTER - 10, tall ? y + 9 : y + row.h / 2);
    if (tall) {
      context.fillStyle = theme.quiet;
      context.fillText(`${grouped(lane.count)} · ${mark}${durationText(lane.busy)}`, GUTTER - 10, y + 22);
    }
    context.textAlign = 'left';
  },

  drawSelection(context) {
    const outline = (lane, row, colour, thick) => {
      const place = this.rowOfInstruction(lane, row);
      if (!place) return;
      const x0 = Math.max(this.xOf(lane.columns.start[row]), GUTTER);
      const x1 = Math.min(Math.max(this.xOf(lane.ends[row]), x0 + 2), GUTTER + this.plot);
      const y = place.y - this.scroll;
      if (x1 < GUTTER || x0 > GUTTER + this.plot || y < AXIS - place.h) return;
      context.strokeStyle = colour;
      context.lineWidth = thick;
      context.strokeRect(x0 + 0.5, Math.max(y, AXIS) + 0.5, Math.max(x1 - x0 - 1, 1), place.h - 1);
    };
    const { selected, hovered } = state;
    if (hovered && hovered.row >= 0 && hovered.lane.columns) outline(hovered.lane, hovered.row, theme.text, 1);
    if (selected) outline(selected.lane, selected.row, theme.bad, 2.5);
  },

  rowOfInstruction(lane, row) {
    let part = 0;
    for (let first = 0; part < lane.subrows.length - 1 && row >= first + lane.subrows[part]; part++) {
      first += lane.subrows[part];
    }
    return this.rows.find((each) => each.kind === 'track' && each.lane === lane && each.part === part);
  },

  // Scrolls as far as it takes to show the row of an event, with the title of its unit where that fits too.
  reveal(lane, row) {
    const room = this.box.clientHeight;
    this.layout(room);
    const place = this.rowOfInstruction(lane, row);
    if (!place) return;
    byId('timeline-spacer').style.height = `${Math.max(this.height - room, 0)}px`;
    const { scrollTop } = this.box, title = this.rows.findLast((each) => each.kind === 'core' && each.y <= place.y);
    const top = place.y + place.h - title.y <= room - AXIS ? title.y : place.y;
    if (place.y - AXIS < scrollTop) this.box.scrollTop = top - AXIS;
    else if (place.y + place.h > scrollTop + room) this.box.scrollTop = place.y + place.h + ROW_GAP - room;
  },

  rowAt(y) {
    return this.rows.find((row) => y + this.scroll >= row.y && y + this.scroll < row.y + row.h + ROW_GAP);
  },

  // What lies under a point: { lane, track, place, row }; null where there is nothing.
  hit(x, y) {
    if (y < AXIS || x < GUTTER || x > GUTTER + this.plot) return null;
    const row = this.rowAt(y);
    if (!row || row.kind === 'core') return null;
    const track = row.kind === 'launches' ? row.launches.track : row.lane.columns && row.lane.tracks[row.part];
    if (!track) return null;
    const reach = (3 / this.plot) * (state.to - state.from);
    const place = track.at(this.timeAt(x), reach);
    if (place < 0) return null;
    if (row.kind === 'launches') return { lane: row.lane, launches: row.launches, track, place, row: -1 };
    return { lane: row.lane, track, place, row: Lane.rowOf(track, place) };
  },
};

// The boxes of a track between device pixels x0 and x1. Boxes below two pixels are summed up column by column.
function drawBoxes(raster, track, { x0, x1, y0, y1 }, labels) {
  const { start, end, kind, height, n, lane } = track;
  const scale = (x1 - x0) / (state.to - state.from), from = state.from, tall = y1 - y0;
  const laneColour = colours.by === 'core' ? pixel(colours.ofCore(lane.core)) : 0;
  const colourOf = (k) => (laneColour && !colours.quiet[k] ? laneColour : colours.pixelOfKind[k]);
  const back = theme.rowPixel, matches = filters.dim;
  let i = track.firstAfter(from);
  while (i < n && start[i] < state.to) {
    const left = x0 + (start[i] - from) * scale, right = x0 + (end[i] - from) * scale;
    const k = kind[i];
    if (right - left >= 2 || i + 1 >= n) {
      const a = Math.max(x0, Math.floor(left)), b = Math.min(x1, Math.max(Math.floor(right), a + 1));
      const h = state.heights ? Math.max(2, Math.round((tall * height[i]) / 255)) : tall;
      let colour = colourOf(k);
      if (matches && !matches[k]) colour = mixed(colour, back, 0.16);
      raster.box(a, y1 - h, b, y1, colour);
      if (colours.quiet[k]) raster.stripes(a, y1 - h, b, y1, mixed(theme.bgPixel, colour, 0.4));
      if (b - a >= 4) {
        drawStall(raster, track, i, a, b, y1 - h, y1, colour);
        raster.box(b - 1, y1 - h, b, y1, mixed(theme.bgPixel, colour, 0.75));
      }
      if (state.names && b - a > 30 * raster.ratio && h >= 11 * raster.ratio) pushLabel(labels, raster, track, i, a, b, y1, h);
      i++;
      continue;
    }
    const column = Math.floor(left);
    let j = lowerBoundNear(start, from + (column + 1 - x0) / scale, i + 1, n);
    // a long box that begins in this pixel is drawn as a box
    if (j - 1 > i && (end[j - 1] - start[j - 1]) * scale >= 2) j--;
    const time = track.time[j] - track.time[i];
    const mean = time > 0 ? (track.area[j] - track.area[i]) / time : height[i];
    const share = Math.min(1, time * scale);
    const h = state.heights ? Math.max(2, Math.round((tall * mean) / 255)) : tall;
    if (column >= x0 && column < x1) {
      const chosen = longestOf(track, i, j, matches);
      let colour = colourOf(kind[chosen]);
      if (matches && !matches[kind[chosen]]) colour = mixed(colour, back, 0.16);
      raster.box(column, y1 - h, column + 1, y1, mixed(colour, back, 0.3 + 0.7 * share));
    }
    i = j;
  }
}

// Of the events i..j the longest of a few; with a search on, a match where there is one.
function longestOf(track, i, j, matches) {
  const step = Math.max(1, ((j - i) / (matches ? 64 : 10)) | 0);
  let best = i, longest = -1;
  for (let each = i; each < j; each += step) {
    const length = track.end[each] - track.start[each] + (matches && matches[track.kind[each]] ? 1e15 : 0);
    if (length > longest) {
      longest = length;
      best = each;
    }
  }
  return best;
}

function drawStall(raster, track, place, a, b, y0, y1, colour) {
  if (!state.stalls || !track.lane.columns.stall || b - a < 8) return;
  const stall = track.lane.stallNs(Lane.rowOf(track, place));
  const duration = track.end[place] - track.start[place];
  if (stall <= 0 || duration <= 0) return;
  const scale = (timeline.plot * raster.ratio) / (state.to - state.from);
  const left = GUTTER * raster.ratio + (track.start[place] - state.from) * scale;
  const until = Math.min(b, Math.round(left + stall * scale));
  if (until <= a) return;
  raster.box(a, y0, until, y1, mixed(colour, 0xff000000, 0.68));
  raster.stripes(a, y0, until, y1, mixed(colour, 0xff000000, 0.5));
}

function pushLabel(labels, raster, track, place, a, b, y1, h) {
  const kind = track.kind[place];
  const text = kinds.name(kind);
  if (!text) return;
  labels.push({
    text,
    more: durationText(track.end[place] - track.start[place]),
    colour: filters.dim && !filters.dim[kind] ? theme.quiet : textOn(colours.ofInstruction(track.lane, kind)),
    x: a / raster.ratio + 4,
    y: (y1 - Math.min(h, 26 * raster.ratio) / 2) / raster.ratio,
    width: (b - a) / raster.ratio - 8,
  });
}

function drawAxis(context, { ticks, step, unit, length }, width, y, height) {
  context.font = FONT;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = theme.quiet;
  for (const [x, time] of ticks) {
    const label = timeText(time, step, length);
    const half = context.measureText(label).width / 2 + 2;
    if (x > GUTTER + half && x < width - half) context.fillText(label, x, y + height / 2);
  }
  context.textAlign = 'left';
  context.fillText(`time (${unit})`, 18, y + height / 2);
}

drawers.push(() => timeline.draw());
