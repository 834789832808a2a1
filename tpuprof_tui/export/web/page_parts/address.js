// The address holds what is shown, so that a link shows the same: view, window, units, engines, panel, colours,
// filters, search, and the selected event. What is as it is at first is left out; what a link says wrongly is ignored.

const address = {
  written: '',
  selected: null, // "lane.row" of a link, until the columns are there
  reading: true,
  timer: 0,

  start() {
    this.apply();
    addEventListener('hashchange', () => {
      if (location.hash.slice(1) === this.written) return;
      this.apply();
      if (!this.reading) this.finish();
    });
    drawers.push(() => this.note());
  },

  // What a link says, as far as it can be done before the columns are read.
  apply() {
    const told = new URLSearchParams(location.hash.slice(1));
    const numbers = (key) => new Set(told.getAll(key).map(Number));
    this.written = location.hash.slice(1);
    const core = [...told.keys()].map((key) => /^core(\d+)$/.exec(key)).find(Boolean);
    const keys = allCores(), units = core ? new Set([Number(core[1])]) : numbers('unit');
    const chosen = keys.filter((key) => units.has(key));
    state.cores = new Set(chosen.length ? chosen : keys);
    const hidden = new Set(told.getAll('without'));
    state.engines = new Set(lanes.map((lane) => lane.engine).filter((engine) => !hidden.has(engine)));
    colours.by = Object.hasOwn(COLOUR_KEYS, told.get('colour') ?? '') ? told.get('colour') : 'function';
    byId('colour-by').value = colours.by;
    colours.rebuild();
    const codeOf = (key, text) => profile.strings[key].indexOf(text);
    filters.wanted = Object.fromEntries(FILTERS.map(([key]) => [key, told.has(key) ? codeOf(key, told.get(key)) : -1])
      .filter(([, code]) => code >= 0));
    const key = COLOUR_KEYS[colours.by];
    filters.hidden = new Set(key ? told.getAll('hide').map((text) => codeOf(key, text)).filter((code) => code >= 0) : []);
    const panel = PANELS.some(([name]) => name === told.get('panel')) ? told.get('panel') : PANELS[0][0];
    const [from, to] = ['from', 'to'].map((name) => (told.get(name) ? Number(told.get(name)) : NaN));
    select(null);
    setWindow(...(from < to && Number.isFinite(to - from) ? [from, to] : profile.device));
    showPanel(panel);
    const known = core ? chosen.length > 0 : told.has('timeline') || told.has('from') || told.has('unit');
    showView(known ? 'timeline' : 'overview');
    drawCoreButtons();
    filtersChanged();
    setQuery(told.get('search') ?? '');
    this.selected = told.get('event');
  },

  // The rest of a link, once the columns are there.
  finish() {
    const [, lane, row] = /^(\d+)\.(\d+)$/.exec(this.selected ?? '') ?? [], { from, to } = state;
    this.selected = null;
    findMatches();
    if (lanes[lane] && Number(row) < lanes[lane].shown) {
      select(lanes[lane], Number(row));
      setWindow(from, to);
    }
    this.reading = false;
  },

  text() {
    const parts = [], put = (key, value) => parts.push(value === undefined ? key : `${key}=${encodeURIComponent(value)}`);
    if (state.view === 'timeline') put('timeline');
    if (state.from !== profile.device[0] || state.to !== profile.device[1]) {
      put('from', Number(state.from.toFixed(1)));
      put('to', Number(state.to.toFixed(1)));
    }
    const keys = allCores();
    if (!keys.every((key) => state.cores.has(key))) keys.filter((key) => state.cores.has(key)).forEach((key) => put('unit', key));
    new Set(lanes.map((lane) => lane.engine)).forEach((engine) => state.engines.has(engine) || put('without', engine));
    if (state.panel !== PANELS[0][0]) put('panel', state.panel);
    if (colours.by !== 'function') put('colour', colours.by);
    for (const [key, code] of Object.entries(filters.wanted)) put(key, profile.strings[key][code]);
    for (const code of filters.hidden) put('hide', profile.strings[COLOUR_KEYS[colours.by]][code] ?? '');
    if (filters.query) put('search', filters.query);
    if (state.selected) put('event', `${state.selected.lane.index}.${state.selected.row}`);
    return parts.join('&');
  },

  // Writes the address a moment after the last change: browsers refuse too many in a row.
  note() {
    if (this.reading) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const text = this.text();
      if (text === this.written) return;
      this.written = text;
      history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search);
    }, 200);
  },
};
