// What is shown: window, cores, filters, search, selection. Everything drawn is a function of this.

const state = {
  view: 'overview',
  from: profile.device[0],
  to: profile.device[1],
  cores: new Set([...profile.cores, PORTS, OTHERS]),
  engines: new Set(lanes.map((lane) => lane.engine)),
  heights: true,
  stalls: true,
  names: true,
  selected: null, // { lane, row }
  hovered: null, // { lane, track, place, row }
  remembered: null,
  panel: 'bandwidth',
  segment: 0, // ns; 0: as wide as a pixel
  memoryFilter: 'all',
  sharesAs: 'pie',
  sharesOf: 'window',
};

// Filters and search, worked out per kind.
const filters = {
  wanted: {}, // key -> code
  hidden: new Set(), // codes of what the legend hides, by the colour key
  query: '',
  passes: new Uint8Array(kinds.count).fill(1),
  matches: null, // per kind, while a search is on
  number: null, // a place in its lane that is searched for
  dim: null, // the matches, where any kind matches: the others are drawn faintly

  get active() {
    return Object.keys(this.wanted).length > 0 || this.hidden.size > 0;
  },

  rebuild() {
    const colourKey = COLOUR_KEYS[colours.by];
    for (let kind = 0; kind < kinds.count; kind++) {
      let passes = 1;
      for (const [key, code] of Object.entries(this.wanted)) if (kinds.code[key][kind] !== code) passes = 0;
      if (colourKey && this.hidden.has(kinds.code[colourKey][kind])) passes = 0;
      this.passes[kind] = passes;
    }
    for (const lane of lanes) if (lane.columns) lane.rebuild();
  },

  // Smart case: a capital in the query makes it exact. A bare number also finds a place.
  search(query) {
    this.query = query;
    this.matches = null;
    this.number = null;
    this.dim = null;
    if (!query) return;
    const exact = query !== query.toLowerCase();
    const fold = (text) => (exact ? text : text.toLowerCase());
    if (/^#?\d+$/.test(query)) this.number = Number(query.replace('#', ''));
    this.matches = new Uint8Array(kinds.count);
    const found = {};
    for (const key of ['name', 'type', 'kernel', 'direction', 'dtype']) {
      found[key] = profile.strings[key].map((text) => fold(text).includes(query));
    }
    for (let kind = 0; kind < kinds.count; kind++) {
      for (const key of Object.keys(found)) if (found[key][kinds.code[key][kind]]) this.matches[kind] = 1;
    }
    if (this.matches.includes(1)) this.dim = this.matches;
  },
};

function shownLanes() {
  return lanes.filter((lane) => state.cores.has(lane.key) && state.engines.has(lane.engine));
}

let drawing = 0;
const drawers = [];

// Asks for the views to be drawn before the next frame.
function redraw() {
  if (!drawing) drawing = requestAnimationFrame(drawNow);
}

function drawNow() {
  drawing = 0;
  for (const draw of drawers) draw();
}

const NARROWEST = 10; // ns

// Shows a window of time, kept inside the profile.
function setWindow(from, to) {
  const length = Math.min(Math.max(to - from, Math.min(NARROWEST, SPAN)), SPAN);
  const middle = (from + to) / 2;
  const first = Math.min(Math.max(middle - length / 2, WINDOW_START), WINDOW_END - length);
  state.from = first;
  state.to = first + length;
  redraw();
}

function zoomAbout(time, factor) {
  const length = Math.min(Math.max((state.to - state.from) * factor, Math.min(NARROWEST, SPAN)), SPAN);
  const share = (time - state.from) / (state.to - state.from);
  const from = Math.min(Math.max(time - share * length, WINDOW_START), WINDOW_END - length);
  state.from = from;
  state.to = from + length;
  redraw();
}

function pan(share) {
  const length = state.to - state.from;
  setWindow(state.from + share * length, state.to + share * length);
}

// Selects an instruction; `zoom` shows it with half its duration around.
function select(lane, row, zoom = false) {
  state.selected = lane ? { lane, row } : null;
  if (lane) {
    const start = lane.columns.start[row], end = lane.ends[row];
    const around = Math.max((end - start) / 2, 5);
    if (zoom) setWindow(start - around, end + around);
    else if (end < state.from || start > state.to) {
      const half = (state.to - state.from) / 2;
      setWindow((start + end) / 2 - half, (start + end) / 2 + half);
    }
    state.cores.add(lane.key);
    state.engines.add(lane.engine);
    drawCoreButtons();
    timeline.reveal(lane, row);
    table.follow(lane, row);
  } else table.marked = null;
  showDetails();
  redraw();
}
