// The profile: lanes with their columns, kinds of events, and what is asked of them in O(log n).

const profile = JSON.parse(byId('profile').textContent);
const ROLE = { WORK: 0, WAIT: 1, SYNC: 2 };
const ROLE_NAMES = ['work', 'wait', 'sync'];
const PORTS = -1, OTHERS = -2; // stand for a unit where there is none
const DRAWN_HEIGHT_OF_STILL = 90; // of 255: waits and syncs are no measure of a rate
const LEAST_HEIGHT = 20;

const kinds = {
  count: profile.kinds.role.length,
  code: Object.fromEntries(Object.entries(profile.kinds).map(([key, codes]) => [key, Int32Array.from(codes)])),
  role: Int8Array.from(profile.kinds.role),
  text(key, kind) {
    return profile.strings[key][this.code[key][kind]] ?? '';
  },
  name(kind) {
    return this.text('name', kind) || (this.role[kind] === ROLE.WORK ? '' : ROLE_NAMES[this.role[kind]] ?? '');
  },
};

// First place in values[from..to) with a value >= wanted.
function lowerBound(values, wanted, from, to) {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle] < wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}

// The same, quick where the answer is near `from`.
function lowerBoundNear(values, wanted, from, to) {
  let step = 1;
  while (from + step < to && values[from + step] < wanted) {
    from += step;
    step *= 2;
  }
  return lowerBound(values, wanted, from, Math.min(to, from + step + 1));
}

// One row of boxes: times ascending, with running sums for exact shares at any zoom.
class Track {
  constructor(lane, start, end, kind, height, rows) {
    this.lane = lane;
    this.n = start.length;
    this.start = start;
    this.end = end;
    this.kind = kind;
    this.height = height;
    this.rows = rows; // place in the lane's columns
    this.latest = this.n ? new Float64Array(this.n) : end;
    this.time = new Float64Array(this.n + 1);
    this.area = new Float64Array(this.n + 1);
    let latest = -Infinity, time = 0, area = 0;
    for (let i = 0; i < this.n; i++) {
      if (end[i] > latest) latest = end[i];
      this.latest[i] = latest;
      const duration = end[i] - start[i];
      this.time[i + 1] = time += duration;
      this.area[i + 1] = area += duration * height[i];
    }
  }

  // Place of the first event that ends after a time.
  firstAfter(time) {
    return lowerBound(this.latest, time + 1e-9, 0, this.n);
  }

  // Place of the event that runs at a time, of several the last begun; else the nearest within reach; -1 without.
  at(time, reach) {
    const after = lowerBound(this.start, time + 1e-9, 0, this.n);
    for (let i = after - 1; i >= 0 && this.latest[i] > time; i--) if (this.end[i] > time) return i;
    let best = -1, distance = reach;
    if (after > 0 && time - this.latest[after - 1] <= distance) {
      best = lowerBound(this.latest, this.latest[after - 1], 0, after);
      distance = time - this.latest[after - 1];
    }
    if (after < this.n && this.start[after] - time < distance) best = after;
    return best;
  }
}

// What fills the cells of the whole window, as running sums: exact for whole cells, evenly spread inside one.
class Overview {
  constructor(columns) {
    this.sums = {};
    for (const [key, values] of Object.entries(columns)) {
      this.sums[key] = new Float64Array(values.length + 1);
      values.forEach((value, i) => (this.sums[key][i + 1] = this.sums[key][i] + value));
    }
    this.cells = columns.busy.length;
  }

  before(key, time) {
    const at = Math.min(Math.max(((time - WINDOW_START) / SPAN) * this.cells, 0), this.cells);
    const cell = Math.min(Math.floor(at), this.cells - 1), sums = this.sums[key];
    return sums[cell] + (sums[cell + 1] - sums[cell]) * (at - cell);
  }

  between(key, from, to) {
    return this.before(key, to) - this.before(key, from);
  }
}

class Lane {
  constructor(record, index) {
    Object.assign(this, record);
    this.index = index;
    this.columns = null;
    this.details = null;
    this.overview = null;
    this.tracks = [];
    this.ends = null;
    this.heights = null;
  }

  get key() {
    return this.core >= 0 ? this.core : this.port >= 0 ? PORTS : OTHERS;
  }

  async readOverview() {
    this.overview = new Overview(await readChunk(this.cells));
  }

  takeColumns(columns) {
    this.columns = columns;
    const { start, duration } = columns;
    this.ends = new Float64Array(start.length);
    for (let i = 0; i < start.length; i++) this.ends[i] = start[i] + duration[i];
    this.heights = this.boxHeights();
    this.rebuild();
  }

  async readDetails() {
    this.details = await readChunk(this.chunks[1]);
  }

  // Box heights of 255: the rate, or bandwidth against the peak of the memory; full where unknown.
  boxHeights() {
    const heights = new Uint8Array(this.ends.length).fill(255);
    const { kind } = this.columns, rate = profile.rate && this.columns[profile.rate.key];
    const memories = profile.memories.filter(({ key, name }) => this.columns[key] && profile.peak[name] > 0)
      .map(({ key, name }) => ({ values: this.columns[key], peak: profile.peak[name] }));
    this.measured = Boolean(this.transfers ? memories.length : rate);
    for (let i = 0; i < heights.length; i++) {
      let share = -1;
      if (kinds.role[kind[i]] > ROLE.WORK) share = DRAWN_HEIGHT_OF_STILL / 255;
      else if (!this.transfers) share = rate ? rate[i] / 10000 : -1;
      else if (memories.length) {
        // the last memory that moved anything, else the first
        const used = memories.findLast(({ values }) => values[i] > 0) ?? memories[0];
        share = used.values[i] / 1e4 / used.peak;
      }
      if (share >= 0) heights[i] = Math.max(LEAST_HEIGHT, Math.min(255, Math.round(share * 255)));
    }
    return heights;
  }

  // The tracks with the kinds that the filters let pass.
  rebuild() {
    const { start, kind } = this.columns;
    this.tracks = [];
    let first = 0;
    for (const count of this.subrows) {
      const range = [first, first + count];
      first += count;
      if (!filters.active) {
        const cut = (values) => values.subarray(...range);
        this.tracks.push(new Track(this, cut(start), cut(this.ends), cut(kind), cut(this.heights), range[0]));
        continue;
      }
      const rows = new Uint32Array(count);
      let kept = 0;
      for (let i = range[0]; i < range[1]; i++) if (filters.passes[kind[i]]) rows[kept++] = i;
      const places = rows.slice(0, kept);
      const gather = (values) => {
        const gathered = new values.constructor(kept);
        for (let i = 0; i < kept; i++) gathered[i] = values[places[i]];
        return gathered;
      };
      this.tracks.push(new Track(this, gather(start), gather(this.ends), gather(kind), gather(this.heights), places));
    }
  }

  // Row of the lane's columns for a place in one of its tracks.
  static rowOf(track, place) {
    return typeof track.rows === 'number' ? track.rows + place : track.rows[place];
  }

  stallNs(row) {
    const stall = this.columns.stall ? this.columns.stall[row] : -1;
    return stall > 0 && profile.clock.dma > 0 ? Math.min((stall * 1000) / profile.clock.dma, this.columns.duration[row]) : 0;
  }

  detail(key, row) {
    const column = (this.details && this.details[key]) || this.columns[key];
    return column ? column[row] : -1;
  }
}

// Launches of a unit, drawn as one thin row.
class Launches {
  constructor(record) {
    Object.assign(this, record);
    this.engine = 'Kernel';
    this.track = null;
  }

  async readColumns() {
    this.columns = await readChunk(this.chunk);
    const { start, duration, kind } = this.columns;
    const end = Float64Array.from(start, (time, i) => time + duration[i]);
    this.track = new Track(this, start, end, kind, new Uint8Array(start.length).fill(255), 0);
  }
}

const lanes = profile.lanes.map((record, index) => new Lane(record, index));
const launches = new Map(profile.launches.map((record) => [record.core, new Launches(record)]));
const [WINDOW_START, WINDOW_END] = profile.window;
const SPAN = WINDOW_END - WINDOW_START;
const DEVICE_SPAN = profile.device[1] - profile.device[0];
