// Local memory over time: which addresses of a lane's share decoded commands read and wrote.

const SIDE = 100; // where the bars of use per address end, in the gutter

const memory = {
  loaded: new Map(), // lane index -> columns
  loading: false,
  shown: null,

  get core() {
    const cores = (profile.memory ? profile.memory.lanes : []).map(({ lane }) => lanes[lane].core);
    if (this.wanted !== undefined && cores.includes(this.wanted) && state.cores.has(this.wanted)) return this.wanted;
    return cores.find((core) => state.cores.has(core));
  },

  // Reads the columns of a core when they are first wanted.
  async load(core) {
    if (this.loading) return;
    this.loading = true;
    for (const record of profile.memory.lanes) {
      if (lanes[record.lane].core !== core || this.loaded.has(record.lane)) continue;
      const columns = await readChunk(record.chunk), lane = lanes[record.lane];
      const count = columns.row.length;
      const [start, end, latest] = [0, 1, 2].map(() => new Float64Array(count));
      for (let i = 0, last = -Infinity; i < count; i++) {
        start[i] = lane.columns.start[columns.row[i]];
        end[i] = lane.ends[columns.row[i]];
        latest[i] = last = Math.max(last, end[i]);
      }
      this.loaded.set(record.lane, { ...columns, start, end, latest });
    }
    this.loading = false;
    redraw();
  },

  draw(raster) {
    if (!profile.memory) {
      drawNote(raster, 'The local memory chart needs a capture of mode 2: addresses stand in decoded commands.');
      return;
    }
    const core = this.core;
    if (core === undefined) {
      drawNote(raster, say('None of the chosen {units} has any that can be decoded.'));
      return;
    }
    const records = profile.memory.lanes.filter(({ lane }) => lanes[lane].core === core);
    if (records.some(({ lane }) => !this.loaded.has(lane))) {
      if (records.every(({ lane }) => lanes[lane].columns)) this.load(core);
      drawNote(raster, 'Reading …');
      return;
    }
    this.drawCore(raster, core, records);
  },

  drawCore(raster, core, records) {
    const strip = Math.min(46, raster.height * 0.2);
    const frame = { x0: GUTTER, x1: GUTTER + timeline.plot, y0: 6, y1: raster.height - strip - 28, strip, core };
    this.frame = frame;
    const sums = { read: new Float64Array(raster.pw), write: new Float64Array(raster.pw) };
    const use = { read: new Float64Array(256), write: new Float64Array(256) };
    this.drawBanks(raster, frame);
    for (const { lane } of records) this.drawAccesses(raster, lane, frame, sums, use);
    const stripTop = frame.y1 + 6;
    const most = Math.max(1, ...sums.read.map((value, x) => value + sums.write[x]));
    for (let x = 0; x < raster.pw; x++) {
      const scale = ((strip - 2) * raster.ratio) / most, bottom = Math.round((stripTop + strip) * raster.ratio);
      const reads = Math.round(sums.read[x] * scale), writes = Math.round(sums.write[x] * scale);
      raster.box(x, bottom - reads, x + 1, bottom, theme.goodPixel);
      raster.box(x, bottom - reads - writes, x + 1, bottom - reads, theme.badPixel);
    }
    this.drawSide(raster, frame, use);
    const context = raster.show();
    this.drawTexts(context, raster, frame, stripTop, most);
  },

  // Where banks begin; drawn first, so that the lines lie below.
  drawBanks(raster, frame) {
    const banks = profile.memory.lane_bytes / profile.memory.bank_bytes;
    const [x0, x1] = [frame.x0, frame.x1].map((x) => Math.round(x * raster.ratio));
    if (banks > (frame.y1 - frame.y0) / 3) return;
    for (let bank = 0; bank <= banks; bank++) {
      const y = Math.round((frame.y0 + (bank / banks) * (frame.y1 - frame.y0)) * raster.ratio);
      raster.box(x0, y, x1, y + 1, theme.linePixel);
    }
  },

  timeX(time, frame) {
    return frame.x0 + ((time - state.from) / (state.to - state.from)) * (frame.x1 - frame.x0);
  },

  drawAccesses(raster, index, frame, sums, use) {
    const columns = this.loaded.get(index), { ratio } = raster, { writes, lane_bytes: laneBytes } = profile.memory;
    const tall = frame.y1 - frame.y0, count = columns.start.length;
    const edge = Math.round(frame.x1 * ratio);
    for (let i = lowerBound(columns.latest, state.from, 0, count); i < count && columns.start[i] < state.to; i++) {
      if (columns.end[i] < state.from) continue;
      const write = writes[columns.operand[i]];
      if (state.memoryFilter !== 'all' && (state.memoryFilter === 'write') !== write) continue;
      const left = Math.max(Math.floor(this.timeX(columns.start[i], frame) * ratio), Math.round(frame.x0 * ratio));
      const right = Math.min(Math.max(Math.floor(this.timeX(columns.end[i], frame) * ratio), left + 1), edge);
      const top = frame.y0 + (columns.address[i] / laneBytes) * tall;
      const bottom = top + Math.max((columns.size[i] / laneBytes) * tall, 2);
      raster.box(left, Math.round(top * ratio), right, Math.round(bottom * ratio),
        write ? theme.badPixel : theme.goodPixel);
      const key = write ? 'write' : 'read';
      if (left < edge) sums[key][left] += columns.size[i];
      const last = Math.min(255, Math.floor(((columns.address[i] + columns.size[i] - 1) / laneBytes) * 256));
      for (let place = Math.floor((columns.address[i] / laneBytes) * 256); place <= last; place++) use[key][place]++;
    }
  },

  // How often each part of the addresses was used in the window.
  drawSide(raster, frame, use) {
    const { ratio } = raster, x0 = Math.round(SIDE * ratio);
    const most = Math.max(1, ...use.read.map((value, place) => value + use.write[place]));
    const tall = frame.y1 - frame.y0;
    for (let place = 0; place < 256; place++) {
      const top = Math.round((frame.y0 + (place / 256) * tall) * ratio);
      const bottom = Math.round((frame.y0 + ((place + 1) / 256) * tall) * ratio);
      const scale = ((SIDE - 18) * ratio) / most;
      const reads = Math.round(use.read[place] * scale), writes = Math.round(use.write[place] * scale);
      raster.box(x0 - reads, top, x0, bottom, theme.goodPixel);
      raster.box(x0 - reads - writes, top, x0 - reads, bottom, theme.badPixel);
    }
  },

  drawTexts(context, raster, frame, stripTop, most) {
    const { lane_bytes: laneBytes, bank_bytes: bankBytes } = profile.memory;
    const banks = laneBytes / bankBytes, tall = frame.y1 - frame.y0;
    const every = Math.ceil(banks / Math.max(1, Math.floor(tall / 14)));
    context.font = FONT;
    context.textBaseline = 'middle';
    context.fillStyle = theme.quiet;
    context.textAlign = 'right';
    for (let bank = 0; bank < banks; bank += every) {
      const y = frame.y0 + (bank / banks) * tall;
      context.fillText(`BANK[${bank}]`, GUTTER - 8, y + Math.min(tall / banks, 14) / 2);
    }
    context.textAlign = 'left';
    context.fillStyle = theme.quiet;
    context.fillText('↑ use per address', 18, stripTop + 8);
    context.fillText('bytes per lane begun', 18, stripTop + 22);
    context.fillText(`most ${sizeText(most)}`, 18, stripTop + 36);
    const axis = timeTicks(raster.width);
    drawAxis(context, axis, raster.width, raster.height - 18, 18);
    const cut = profile.memory.lanes.find(({ lane, until }) => lanes[lane].core === frame.core && until !== null);
    if (cut) {
      context.fillStyle = theme.caution;
      context.fillText(`Accesses after ${durationText(cut.until)} are left out of this page.`, frame.x0 + 8, frame.y0 + 10);
    }
  },

  find(x, y) {
    const { frame } = this;
    if (!frame || x < frame.x0 || x > frame.x1 || y < frame.y0 || y > frame.y1) return null;
    const perPixel = (state.to - state.from) / (frame.x1 - frame.x0);
    const time = state.from + (x - frame.x0) * perPixel;
    const address = ((y - frame.y0) / (frame.y1 - frame.y0)) * profile.memory.lane_bytes;
    for (const { lane } of profile.memory.lanes) {
      if (lanes[lane].core !== frame.core || !this.loaded.has(lane)) continue;
      const columns = this.loaded.get(lane);
      const after = lowerBound(columns.start, time + perPixel, 0, columns.start.length);
      for (let i = after - 1; i >= 0 && columns.latest[i] >= time - perPixel; i--) {
        const inside = address >= columns.address[i] && address < columns.address[i] + columns.size[i];
        const write = profile.memory.writes[columns.operand[i]];
        if (state.memoryFilter !== 'all' && (state.memoryFilter === 'write') !== write) continue;
        if (inside && columns.end[i] >= time - perPixel) return { lane: lanes[lane], columns, place: i, write };
      }
    }
    return null;
  },

  hit(x, y) {
    const found = this.find(x, y);
    return found && { lane: found.lane, row: found.columns.row[found.place] };
  },

  facts(x, y) {
    const found = this.find(x, y);
    if (!found) return null;
    const { columns, place, lane } = found, address = columns.address[place], size = columns.size[place];
    return {
      title: `${found.write ? 'Write' : 'Read'} of ${profile.memory.operands[columns.operand[place]]}`,
      facts: [
        ['Function', kinds.name(lane.columns.kind[columns.row[place]])],
        ['Lane', lane.title],
        [titleOfColumn('order'), grouped(lane.detail('order', columns.row[place]))],
        ['Address', hexText(address)],
        ['Bank', `${Math.floor(address / profile.memory.bank_bytes)}`],
        ['Bytes per lane', `${grouped(size)} (estimated from the shape)`],
        ['Start', `${grouped(columns.start[place])} ns`],
        ['End', `${grouped(columns.end[place])} ns`],
      ],
    };
  },
};

panels.drawn.memory = memory;

function drawNote(raster, text) {
  const context = raster.show();
  context.font = FONT;
  context.fillStyle = theme.quiet;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(text, raster.width / 2, raster.height / 2);
  context.textAlign = 'left';
}
