// Tabs, buttons of units, filters, legend, search, saving as an image.

const FILTERS = ['type', 'name', 'kernel', 'direction', 'dtype'].map((key) => [key, titleOfColumn(key)]).filter(([, title]) => title);
const PANELS = [...(profile.memories.length ? [['bandwidth', 'Bandwidth']] : []),
  ...(profile.rate ? [['rate', profile.rate.title]] : []), ['shares', 'Shares'],
  ...(profile.has_memory ? [['memory', 'Local memory']] : []), ['table', 'Table']];

function showView(view) {
  state.view = view;
  for (const name of ['overview', 'timeline']) {
    byId(`${name === 'overview' ? 'overview' : 'timeline-view'}`).hidden = name !== view;
    byId(`tab-${name}`).setAttribute('aria-selected', name === view);
  }
  byId('card').hidden = true;
  redraw();
}

// Chooses units; with `add` one is added or taken away, else it stands alone.
function chooseCores(cores, add = false) {
  if (!add) state.cores = new Set(cores);
  else for (const core of cores) if (!state.cores.delete(core)) state.cores.add(core);
  if (!state.cores.size) state.cores = new Set(cores);
  byId('timeline-box').scrollTop = 0;
  drawCoreButtons();
  drawLegend();
  redraw();
}

function showCore(core) {
  chooseCores([core]);
  showView('timeline');
}

// Numbers of the units that have lanes; -1, the ports, comes last.
function allCores() {
  return [...new Set(lanes.map((lane) => lane.key))].sort((a, b) => (a < 0) - (b < 0) || Math.abs(a) - Math.abs(b));
}

function drawCoreButtons() {
  const keys = allCores();
  const all = keys.every((key) => state.cores.has(key));
  const button = (label, pressed, title, onclick) => el('button', 'chip', label, { title, onclick, 'aria-pressed': pressed });
  byId('cores').replaceChildren(
    button('All', all, say('All {units} on one time line'), () => chooseCores(keys)),
    ...keys.map((key) => button(key < 0 ? (key === PORTS && profile.ports_title) || profile.others_title || 'Others' : `${key}`, !all && state.cores.has(key),
      say('This {unit}; with Ctrl or Shift: add or remove it'), (event) => {
        const add = event.ctrlKey || event.metaKey || event.shiftKey;
        chooseCores([key], add && !(all && !event.shiftKey));
      })),
  );
  const engines = [...new Set(lanes.map((lane) => lane.engine))];
  byId('engines').replaceChildren(...engines.map((engine) => button(engine, state.engines.has(engine), 'Show or hide', () => {
    if (!state.engines.delete(engine)) state.engines.add(engine);
    drawCoreButtons();
    drawLegend();
    redraw();
  })));
}

function drawFilters() {
  const box = byId('filters');
  box.replaceChildren(...FILTERS.flatMap(([key, label]) => {
    const used = [...new Set(kinds.code[key])].filter((code) => code >= 0);
    if (used.length < 2) return [];
    used.sort((a, b) => (profile.strings[key][a] < profile.strings[key][b] ? -1 : 1));
    const select = el('select', filters.wanted[key] === undefined ? '' : 'on', [el('option', '', `${label}: all`, { value: '' }),
      ...used.map((code) => el('option', '', profile.strings[key][code] || '(empty)', { value: code }))], {
      title: `Only one ${label.toLowerCase()}`,
      onchange: () => {
        if (select.value === '') delete filters.wanted[key];
        else filters.wanted[key] = Number(select.value);
        filtersChanged();
      },
    });
    select.value = filters.wanted[key] ?? '';
    return [select];
  }));
  const clear = el('button', '', 'clear', { title: 'Show everything again', onclick: clearFilters });
  if (filters.active) box.append(clear);
}

function clearFilters() {
  filters.wanted = {};
  filters.hidden.clear();
  filtersChanged();
}

function filtersChanged() {
  filters.rebuild();
  state.hovered = null;
  drawFilters();
  drawLegend();
  findMatches();
  redraw();
}

const LEGEND_MOST = 24;

// What the colours mean, most time first; a click hides, a double click shows it alone.
function drawLegend() {
  const box = byId('legend');
  const key = COLOUR_KEYS[colours.by];
  const entry = (label, colour, hidden, onclick, ondblclick) => {
    const swatch = el('span', 'swatch');
    swatch.style.background = colour;
    return el('button', `legend-entry${hidden ? ' off' : ''}`, [swatch, label || 'unknown'], { onclick, ondblclick,
      title: onclick ? 'Hide or show; double click: this alone' : '' });
  };
  if (!key) {
    box.replaceChildren(...profile.cores.filter((core) => state.cores.has(core)).map((core) => entry(unitTitle(core),
      colours.ofCore(core), false)));
    return;
  }
  const shown = new Set();
  for (const lane of shownLanes()) for (const [kind] of lane.totals) shown.add(kinds.code[key][kind]);
  const codes = [...colours.ofCode.keys()].filter((code) => shown.has(code));
  const toggle = (code) => () => {
    if (!filters.hidden.delete(code)) filters.hidden.add(code);
    filtersChanged();
  };
  const alone = (code) => () => {
    filters.hidden = new Set(codes.filter((each) => each !== code));
    filtersChanged();
  };
  const entries = codes.slice(0, LEGEND_MOST).map((code) => entry(profile.strings[key][code], colours.ofCode.get(code),
    filters.hidden.has(code), toggle(code), alone(code)));
  const still = el('span', 'legend-entry', [el('span', 'swatch striped'), 'waits and syncs']);
  const stall = el('span', 'legend-entry', [el('span', 'swatch stalled'), titleOfColumn('stall').toLowerCase()]);
  const rest = codes.length - LEGEND_MOST;
  box.replaceChildren(...entries, ...(rest > 0 ? [el('span', 'quiet', `and ${rest} more`)] : []), still,
    ...(lanes.some((lane) => lane.columns && lane.columns.stall) ? [stall] : []));
}

const search = { matches: [], at: -1 };

// All matches in the shown lanes by time, as [track, place].
function findMatches() {
  search.matches = [];
  search.at = -1;
  const { matches, number } = filters;
  if (matches) {
    for (const lane of shownLanes()) {
      for (const track of lane.tracks) {
        for (let i = 0; i < track.n; i++) {
          if (matches[track.kind[i]] || (number !== null && lane.detail('order', Lane.rowOf(track, i)) === number)) {
            search.matches.push([track, i]);
          }
        }
      }
    }
    search.matches.sort((a, b) => a[0].start[a[1]] - b[0].start[b[1]]);
  }
  showMatchCount();
}

function showMatchCount() {
  const { matches, at } = search;
  byId('matches').textContent = !filters.query ? '' : at < 0 ? `${grouped(matches.length)} found`
    : `${grouped(at + 1)} / ${grouped(matches.length)}`;
}

function nextMatch(by) {
  const { matches } = search;
  if (!matches.length) return;
  if (search.at < 0) {
    const first = matches.findIndex(([track, place]) => track.start[place] >= state.from);
    search.at = by > 0 ? Math.max(first, 0) : matches.length - 1;
  } else search.at = (search.at + by + matches.length) % matches.length;
  const [track, place] = matches[search.at];
  showView('timeline');
  select(track.lane, Lane.rowOf(track, place), false);
  if ((track.end[place] - track.start[place]) / (state.to - state.from) < 0.004) {
    const half = Math.max((track.end[place] - track.start[place]) * 20, 100);
    const middle = (track.start[place] + track.end[place]) / 2;
    setWindow(middle - half, middle + half);
  }
  showMatchCount();
}

function showPanel(name) {
  state.panel = name;
  byId('panel-content').replaceChildren();
  byId('panel-legend').replaceChildren();
  delete byId('panel-legend').dataset.key;
  shares.key = null;
  const tabs = PANELS.map(([key, label]) => el('button', 'tab', label, { onclick: () => showPanel(key), role: 'tab',
    'aria-selected': key === name }));
  byId('panel-tabs').replaceChildren(...tabs);
  byId('panel-tools').replaceChildren(...panelTools(name));
  redraw();
}

function choice(options, value, onchange) {
  const select = el('select', '', options.map(([key, label]) => el('option', '', label, { value: key })), {
    onchange: () => {
      onchange(select.value);
      redraw();
    },
  });
  select.value = value;
  return select;
}

function panelTools(name) {
  if (name === 'bandwidth') {
    const input = el('input', 'number', [], { type: 'number', min: 0, step: 100, value: state.segment || '', placeholder: 'auto',
      title: 'Length of a segment in ns; empty: as fine as the screen', onchange: () => {
        state.segment = Math.max(0, Number(input.value) || 0);
        redraw();
      } });
    return [el('label', '', ['segment ', input, ' ns'])];
  }
  if (name === 'shares') {
    return [choice([['pie', 'Pie'], ['bar', 'Bars']], state.sharesAs, (value) => (state.sharesAs = value)),
      choice([['window', 'Window shown'], ['capture', 'Whole capture']], state.sharesOf, (value) => (state.sharesOf = value))];
  }
  if (name === 'memory' && profile.memory) {
    const cores = [...new Set(profile.memory.lanes.map(({ lane }) => lanes[lane].core))];
    const mark = (label, colour) => {
      const swatch = el('span', 'swatch');
      swatch.style.background = `var(--${colour})`;
      return el('span', 'quiet', [swatch, label]);
    };
    return [mark('read', 'good'), mark('write', 'bad'), choice(cores.map((core) => [core, unitTitle(core)]), memory.core ?? cores[0], (value) => {
      memory.wanted = Number(value);
      state.cores.add(memory.wanted);
      drawCoreButtons();
    }), choice([['all', 'Reads and writes'], ['read', 'Reads'], ['write', 'Writes']], state.memoryFilter,
      (value) => (state.memoryFilter = value))];
  }
  return [];
}

function remember() {
  state.remembered = [state.from, state.to];
  byId('return').disabled = false;
  byId('return').title = `Return to ${durationText(state.from)} to ${durationText(state.to)} (b)`;
}

function returnToRemembered() {
  if (state.remembered) setWindow(...state.remembered);
}

// The timeline and the chart below it as one PNG.
function saveImage() {
  drawNow();
  const parts = [byId('minimap'), byId('timeline'), ...(panels.canvasUsed ? [byId('panel-canvas')] : [])];
  const ratio = timeline.raster.ratio, head = Math.round(34 * ratio);
  const canvas = el('canvas');
  canvas.width = Math.max(...parts.map((part) => part.width));
  canvas.height = head + parts.reduce((sum, part) => sum + part.height, 0);
  const context = canvas.getContext('2d');
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(ratio, ratio);
  context.font = `600 ${FONT}`;
  context.fillStyle = theme.text;
  context.textBaseline = 'middle';
  context.fillText(`${profile.name}   ${byId('window-text').textContent}`, 12, 17);
  context.setTransform(1, 0, 0, 1, 0, 0);
  let y = head;
  for (const part of parts) {
    context.drawImage(part, 0, y);
    y += part.height;
  }
  canvas.toBlob((blob) => {
    const link = el('a', '', [], { href: URL.createObjectURL(blob), download: 'timeline.png' });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  readTheme();
  colours.rebuild();
  TEXT_ON.clear();
  shares.key = null;
  drawLegend();
  if (state.selected) showDetails();
  redraw();
}

function startControls() {
  byId('tab-overview').onclick = () => showView('overview');
  byId('tab-timeline').onclick = () => showView('timeline');
  byId('theme').onclick = ACTIONS.t;
  byId('help-button').onclick = ACTIONS['?'];
  byId('help-close').onclick = () => byId('help').close();
  byId('keys').replaceChildren(...KEYS.flatMap(([key, text]) => [el('dt', '', el('kbd', '', key)), el('dd', '', text)]));
  byId('search').oninput = (event) => setQuery(event.target.value.trim());
  byId('search').onfocus = () => state.view !== 'timeline' && showView('timeline');
  byId('whole').onclick = () => setWindow(WINDOW_START, WINDOW_END);
  byId('zoom-in').onclick = () => zoomAbout((state.from + state.to) / 2, 0.5);
  byId('zoom-out').onclick = () => zoomAbout((state.from + state.to) / 2, 2);
  byId('remember').onclick = remember;
  byId('return').onclick = returnToRemembered;
  byId('save').onclick = saveImage;
  for (const key of ['heights', 'stalls', 'names']) {
    byId(key).onchange = (event) => {
      state[key] = event.target.checked;
      redraw();
    };
  }
  // what a source has no column for is not offered
  byId('heights-label').hidden = !profile.rate && !profile.memories.length;
  byId('stalls-label').hidden = !titleOfColumn('stall');
  byId('stall-title').textContent = titleOfColumn('stall').toLowerCase();
  byId('units-title').textContent = say('{Units}');
  byId('colour-by').replaceChildren(...Object.entries(COLOUR_KEYS).map(([value, key]) => [value, key ? titleOfColumn(key) : say('{unit}')])
    .filter(([, title]) => title).map(([value, title]) => el('option', '', title.toLowerCase(), { value })));
  byId('colour-by').onchange = (event) => {
    colours.by = event.target.value;
    filters.hidden.clear();
    colours.rebuild();
    filtersChanged();
  };
  byId('divider').addEventListener('pointerdown', (event) => {
    const body = byId('panel'), height = body.offsetHeight, first = event.clientY;
    event.target.setPointerCapture(event.pointerId);
    const move = (next) => {
      body.style.height = `${Math.max(90, Math.min(innerHeight - 260, height + first - next.clientY))}px`;
      redraw();
    };
    event.target.addEventListener('pointermove', move);
    event.target.addEventListener('pointerup', () => event.target.removeEventListener('pointermove', move), { once: true });
  });
  addEventListener('keydown', onKey);
  addEventListener('copy', onCopy);
  addEventListener('resize', redraw);
}
