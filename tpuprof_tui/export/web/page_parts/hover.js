// Pointing, clicking and dragging on the timeline; the card at the pointer; the details of what is selected.

// Everything the page knows of an event: [label, text].
function factsOf(lane, row) {
  const kind = lane.columns.kind[row];
  const start = lane.columns.start[row], end = lane.ends[row];
  const stall = lane.columns.stall ? lane.columns.stall[row] : -1;
  const value = (key) => lane.detail(key, row);
  const number = (key) => (value(key) < 0 ? '' : grouped(value(key)));
  const rate = (key, scale, decimals) => (value(key) < 0 ? '' : grouped(value(key) / scale, decimals));
  const moved = lane.transfers ? profile.memories.filter(({ key }, place) => (place ? value(key) > 0 : value(key) >= 0)) : [];
  const core = lane.core >= 0 ? lane.core : value('core');
  const facts = [
    [titleOfColumn('type'), kinds.text('type', kind)],
    ['Start', `${grouped(start)} ns`],
    ['End', `${grouped(end)} ns`],
    ['Duration', `${durationText(end - start)}${end - start >= 1000 ? ` (${grouped(end - start)} ns)` : ''}`],
    [titleOfColumn('stall'), stall < 0 ? '' : `${grouped(stall)} cycles (${percentText(lane.stallNs(row) / Math.max(end - start, 1))})`],
    [titleOfColumn('name'), kinds.text('name', kind)],
    [titleOfColumn('order'), number('order')],
    [profile.rate && profile.rate.title, lane.transfers || !profile.rate || value(profile.rate.key) < 0 ? ''
      : `${rate(profile.rate.key, 100, 2)}%`],
    ...moved.map(({ key, label }) => [`${label} bandwidth`, `${rate(key, 1e4, 2)} GB/s`]),
    [titleOfColumn('dtype'), kinds.text('dtype', kind)],
    [titleOfColumn('direction'), kinds.text('direction', kind)],
    ['Bytes', value('bytes') < 0 ? '' : sizeText(value('bytes'))],
    [titleOfColumn('kernel'), kinds.text('kernel', kind)],
    [titleOfColumn('scope') || 'Launch', number('scope')],
    ['Batch', number('batch')],
    ['Mode', kinds.text('mode', kind)],
    ['Role', (lane.guessed ? '~' : '') + (ROLE_NAMES[kinds.role[kind]] ?? '')],
    ['Cycles', number('cycles')],
    ['Command id', number('command_id')],
    [say('{Unit}'), core < 0 ? '' : `${core}`],
    ['Execution ratio', percentText((end - start) / DEVICE_SPAN, 4)],
  ];
  return facts.filter(([, text]) => text !== '');
}

function launchFacts(hit) {
  const { track, place } = hit;
  return [
    [titleOfColumn('kernel'), kinds.text('kernel', track.kind[place])],
    ['First start', `${grouped(track.start[place])} ns`],
    ['Last end', `${grouped(track.end[place])} ns`],
    ['Duration', durationText(track.end[place] - track.start[place])],
    ['Launch', grouped(hit.launches.columns.scope[place])],
  ];
}

function factList(facts) {
  const list = el('dl', 'facts');
  for (const [label, text] of facts) list.append(el('dt', '', label), el('dd', '', text));
  return list;
}

function titleOf(lane, row) {
  const kind = lane.columns.kind[row];
  const swatch = el('span', 'swatch');
  swatch.style.background = colours.ofInstruction(lane, kind);
  return el('div', 'card-title', [swatch, el('b', '', kinds.name(kind) || 'unknown'), el('span', 'quiet', lane.title)]);
}

const CARD_FACTS = new Set(['Start', 'End', 'Duration', 'Bytes', 'Batch', 'Execution ratio',
  ...['stall', 'type', 'name', 'order', 'dtype', 'direction', 'kernel'].map(titleOfColumn),
  ...(profile.rate ? [profile.rate.title] : []), ...profile.memories.map(({ label }) => `${label} bandwidth`)]);

const hover = {
  start() {
    const box = byId('timeline-box');
    box.addEventListener('pointermove', (event) => this.move(event));
    box.addEventListener('pointerleave', () => this.clear());
    box.addEventListener('pointerdown', (event) => this.press(event));
    box.addEventListener('dblclick', (event) => {
      const hit = this.hitOf(event);
      if (hit) setWindow(...around(hit.track.start[hit.place], hit.track.end[hit.place]));
    });
    box.addEventListener('scroll', redraw);
    box.addEventListener('wheel', (event) => {
      const { x } = this.point(event);
      if (event.shiftKey || x < GUTTER) return; // the browser scrolls
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / timeline.plot);
      else zoomAbout(timeline.timeAt(x), Math.exp(Math.max(-240, Math.min(240, event.deltaY)) * 0.0018));
    }, { passive: false });
  },

  point(event) {
    const frame = byId('timeline').getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  },

  hitOf(event) {
    const { x, y } = this.point(event);
    return timeline.hit(x, y);
  },

  move(event) {
    if (event.buttons) return;
    const hit = this.hitOf(event);
    const changed = (hit && hit.place) !== (state.hovered && state.hovered.place)
      || (hit && hit.track) !== (state.hovered && state.hovered.track);
    state.hovered = hit;
    if (changed) {
      this.show(hit);
      redraw();
    }
    this.place(event);
    this.last = timeline.timeAt(this.point(event).x);
    showCursor(this.last);
  },

  show(hit) {
    const card = byId('card');
    card.hidden = !hit;
    if (!hit) return;
    if (hit.row < 0) {
      const name = kinds.text('kernel', hit.track.kind[hit.place]);
      card.replaceChildren(el('div', 'card-title', [el('b', '', name), el('span', 'quiet', unitTitle(hit.launches.core))]),
        factList(launchFacts(hit)));
      return;
    }
    const facts = factsOf(hit.lane, hit.row).filter(([label]) => CARD_FACTS.has(label));
    card.replaceChildren(titleOf(hit.lane, hit.row), factList(facts));
  },

  place(event) {
    const card = byId('card');
    if (card.hidden) return;
    const { offsetWidth: width, offsetHeight: height } = card;
    const x = event.clientX + 18 + width > innerWidth ? event.clientX - width - 14 : event.clientX + 18;
    const y = Math.min(event.clientY + 14, innerHeight - height - 8);
    card.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
  },

  clear() {
    state.hovered = null;
    this.last = undefined;
    byId('card').hidden = true;
    showCursor(null);
    redraw();
  },

  // A drag moves the window (with Shift: chooses one); a click without a drag selects.
  press(event) {
    if (event.button !== 0) return;
    const box = byId('timeline-box');
    const first = this.point(event), { from, to } = state, scroll = box.scrollTop;
    if (first.x < GUTTER) {
      const row = first.y > AXIS && timeline.rowAt(first.y);
      if (row && row.kind === 'core') chooseCores(state.cores.size > 1 ? [row.lane.key] : allCores());
      return;
    }
    if (first.x > GUTTER + timeline.plot) return;
    const choosing = event.shiftKey || first.y < AXIS;
    let moved = false;
    box.setPointerCapture(event.pointerId);
    const move = (next) => {
      const { x, y } = this.point(next);
      if (!moved && Math.hypot(x - first.x, y - first.y) < 4) return;
      moved = true;
      byId('card').hidden = true;
      if (choosing) {
        showBand(Math.max(GUTTER, Math.min(first.x, x)), Math.max(first.x, x));
        return;
      }
      box.scrollTop = scroll + first.y - y;
      const shift = ((first.x - x) / timeline.plot) * (to - from);
      setWindow(from + shift, to + shift);
    };
    const release = (last) => {
      box.removeEventListener('pointermove', move);
      showBand(0, 0);
      if (!moved) {
        const hit = timeline.hit(first.x, first.y);
        if (hit && hit.row < 0) setWindow(...around(hit.track.start[hit.place], hit.track.end[hit.place]));
        else select(hit ? hit.lane : null, hit ? hit.row : -1);
      } else if (choosing) {
        const times = [first.x, this.point(last).x].map((x) => timeline.timeAt(x)).sort((a, b) => a - b);
        setWindow(...times);
      }
    };
    box.addEventListener('pointermove', move);
    box.addEventListener('pointerup', release, { once: true });
  },
};

// A window with half a duration on either side.
function around(start, end) {
  const half = Math.max((end - start) / 2, 5);
  return [start - half, end + half];
}

function showBand(left, right) {
  const band = byId('band');
  band.hidden = right - left < 1;
  band.style.left = `${left}px`;
  band.style.width = `${right - left}px`;
}

function showCursor(time) {
  const text = byId('cursor-text');
  const inside = time !== null && time >= state.from && time <= state.to;
  text.textContent = inside ? `at ${grouped(Math.round(time))} ns` : '';
}

// The pane beside the timeline: all of the selected instruction.
function showDetails() {
  const pane = byId('details');
  const { selected } = state;
  pane.hidden = !selected;
  document.documentElement.dataset.selected = selected ? `${selected.lane.index},${selected.row}` : '';
  if (!selected) return;
  const { lane, row } = selected;
  const button = (label, hint, action) => el('button', '', label, { title: hint, onclick: action });
  const track = lane.tracks.find((each) => placeOf(each, row) >= 0);
  const step = (by) => {
    const place = track ? placeOf(track, row) + by : -1;
    if (track && place >= 0 && place < track.n) select(lane, Lane.rowOf(track, place));
  };
  pane.replaceChildren(
    el('div', 'pane-head', [titleOf(lane, row), button('×', 'Close (Esc)', () => select(null))]),
    el('div', 'buttons', [
      button('‹ previous', 'Previous on this lane (,)', () => step(-1)),
      button('next ›', 'Next on this lane (.)', () => step(1)),
      button('zoom', 'Zoom to it (f)', () => select(lane, row, true)),
      button('copy', 'Copy what is said here (Ctrl C)', () => copyText(rowsCopied(factsOf(lane, row)))),
    ]),
    factList(factsOf(lane, row)),
  );
  pane.step = step;
}

// Place of a row of the lane's columns in a track; -1 where it is not shown.
function placeOf(track, row) {
  if (typeof track.rows === 'number') return row >= track.rows && row < track.rows + track.n ? row - track.rows : -1;
  const place = lowerBound(track.rows, row, 0, track.rows.length);
  return track.rows[place] === row ? place : -1;
}
