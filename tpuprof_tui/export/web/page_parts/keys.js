// Keys: what they do, and the list of them.

const KEYS = [
  ['w s', 'zoom in, out about the pointer or the middle'],
  ['a d', 'move left, right; A D: a whole window'],
  ['0', 'whole capture'],
  ['f', say('zoom to the selected {event}')],
  [', .', say('previous, next {event} of the lane')],
  ['[ ]', say('previous, next {unit}; a click on {a_unit} in the gutter shows it alone')],
  ['/', 'search names; Enter or n: next, N: previous'],
  ['m b', 'remember this window, go back to it'],
  ['1 2', 'overview, timeline'],
  ['p', 'save as image'],
  ['Ctrl C', say('copy the marked rows of the table, else the selected {event}')],
  ['t', 'light or dark'],
  ['Esc', 'close, clear the search, clear the selection'],
  ['?', 'this list'],
];

function pointerTime() {
  return hover.last ?? (state.from + state.to) / 2;
}

function stepCore(by) {
  const keys = allCores();
  const at = state.cores.size === 1 ? keys.indexOf([...state.cores][0]) + by : by > 0 ? 0 : keys.length - 1;
  chooseCores([keys[(at + keys.length) % keys.length]]);
}

function escape() {
  const help = byId('help');
  if (help.open) help.close();
  else if (filters.query) setQuery('');
  else if (state.selected) select(null);
  else if (filters.active) clearFilters();
}

function setQuery(query) {
  byId('search').value = query;
  filters.search(query);
  findMatches();
  redraw();
}

const ACTIONS = {
  w: () => zoomAbout(pointerTime(), 0.7),
  s: () => zoomAbout(pointerTime(), 1 / 0.7),
  '+': () => zoomAbout(pointerTime(), 0.7),
  '-': () => zoomAbout(pointerTime(), 1 / 0.7),
  a: () => pan(-0.15),
  d: () => pan(0.15),
  A: () => pan(-1),
  D: () => pan(1),
  ArrowLeft: () => pan(-0.15),
  ArrowRight: () => pan(0.15),
  0: () => setWindow(WINDOW_START, WINDOW_END),
  f: () => state.selected && select(state.selected.lane, state.selected.row, true),
  ',': () => state.selected && byId('details').step(-1),
  '.': () => state.selected && byId('details').step(1),
  '[': () => stepCore(-1),
  ']': () => stepCore(1),
  '/': () => byId('search').focus(),
  n: () => nextMatch(1),
  N: () => nextMatch(-1),
  m: remember,
  b: returnToRemembered,
  1: () => showView('overview'),
  2: () => showView('timeline'),
  p: saveImage,
  t: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'),
  Escape: escape,
  '?': () => byId('help').showModal(),
};
const TIMELINE_KEYS = new Set(['w', 's', '+', '-', 'a', 'd', 'A', 'D', 'ArrowLeft', 'ArrowRight', '0', 'f', ',', '.', '[', ']',
  'm', 'b', 'p']);

function onKey(event) {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== 'checkbox';
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.key === 'Escape') {
      if (event.target.id === 'search') setQuery('');
      event.target.blur();
    }
    if (event.key === 'Enter' && event.target.id === 'search') nextMatch(event.shiftKey ? -1 : 1);
    return;
  }
  const action = ACTIONS[event.key];
  if (!action || (TIMELINE_KEYS.has(event.key) && state.view !== 'timeline')) return;
  event.preventDefault();
  byId('card').hidden = true;
  action();
}
