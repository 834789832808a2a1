// The data table: every event of a lane, drawn as far as it is visible.

const ROW_HEIGHT = 22;
const TALLEST_TABLE = 8e6; // pixels that every browser can scroll

const ofKind = (key) => [titleOfColumn(key), 'text', (lane, row) => [key, lane.columns.kind[row]]];
const ofRow = (key, title = titleOfColumn(key)) => [title, 'number', (lane, row) => lane.detail(key, row)];
const scaledOf = (key, title, scale) => [title, 2, (lane, row) => scaledValue(lane.detail(key, row), scale)];

// Columns that the source has; the first five are any profile's.
const TABLE_COLUMNS = [
  ofRow('order'),
  ['Start (ns)', 'number', (lane, row) => lane.columns.start[row]],
  ['End (ns)', 'number', (lane, row) => lane.ends[row]],
  ['Duration (ns)', 'number', (lane, row) => lane.columns.duration[row]],
  ofKind('name'), ofKind('type'), ofKind('kernel'), ofRow('scope'), ofKind('direction'), ofKind('dtype'), ofRow('bytes'),
  ...profile.memories.map(({ key, label }) => scaledOf(key, `${label} (GB/s)`, 1e4)),
  ...(profile.rate ? [scaledOf(profile.rate.key, `${profile.rate.title} (%)`, 100)] : []),
  ofRow('stall', titleOfColumn('stall') && `${titleOfColumn('stall')} (cycles)`), ofRow('cycles'), ofRow('command_id'),
].filter(([title]) => title);

function scaledValue(value, scale) {
  return value < 0 ? -1 : value / scale;
}

const table = {
  lane: null,
  sort: 1, // column
  descending: false,
  inView: false,
  rows: new Uint32Array(0),

  show() {
    const content = byId('panel-content');
    if (!this.element || this.element.parentNode !== content) this.build(content);
    const wanted = shownLanes().filter((lane) => lane.columns);
    const key = wanted.map((lane) => lane.index).join();
    if (this.laneKey !== key) this.offerLanes(wanted, key);
    if (!this.lane) return;
    const rowsKey = [this.lane.index, this.sort, this.descending, JSON.stringify(filters.wanted), [...filters.hidden],
      filters.query, this.inView ? `${state.from},${state.to}` : '', Boolean(this.lane.details)].join('|');
    if (this.rowsKey !== rowsKey) {
      this.rowsKey = rowsKey;
      this.choose();
    }
    this.drawRows();
  },

  build(content) {
    this.picker = el('select', '', [], { title: 'Lane', onchange: () => this.pick(lanes[this.picker.value]) });
    const check = el('input', '', [], { type: 'checkbox', checked: this.inView, onchange: () => {
      this.inView = check.checked;
      redraw();
    } });
    this.count = el('span', 'quiet');
    this.head = el('div', 'table-head', [], { role: 'row' });
    this.body = el('div', 'table-body');
    this.spacer = el('div', 'table-spacer', this.body);
    this.scroller = el('div', 'table-scroll', [this.head, this.spacer], { tabIndex: 0, role: 'table' });
    this.scroller.addEventListener('scroll', () => this.drawRows());
    this.element = el('div', 'table', [el('div', 'table-tools', [this.picker, el('label', '', [check, ' only the window shown']),
      this.count]), this.scroller]);
    content.replaceChildren(this.element);
    shares.key = null;
    this.laneKey = null;
    this.rowsKey = null;
  },

  offerLanes(wanted, key) {
    this.laneKey = key;
    this.picker.replaceChildren(...wanted.map((lane) => el('option', '', `${lane.title} (${grouped(lane.count)})`,
      { value: lane.index })));
    if (!wanted.includes(this.lane)) this.lane = wanted[0] || null;
    if (this.lane) this.picker.value = this.lane.index;
  },

  pick(lane) {
    this.lane = lane;
    this.scroller.scrollTop = 0;
    redraw();
  },

  // The rows that filters, search and window let pass, in order.
  choose() {
    const { lane } = this;
    const found = [];
    for (const track of lane.tracks) {
      const first = this.inView ? track.firstAfter(state.from) : 0;
      for (let i = first; i < track.n && (!this.inView || track.start[i] < state.to); i++) {
        const row = Lane.rowOf(track, i);
        if (!filters.matches || filters.matches[track.kind[i]] || lane.detail('order', row) === filters.number) found.push(row);
      }
    }
    const rows = Uint32Array.from(found);
    const [, kind, value] = TABLE_COLUMNS[this.sort];
    const keys = new Float64Array(rows.length ? Math.max(...[lane.ends.length]) : 0);
    const rank = kind === 'text' ? this.ranks(this.sort) : null;
    for (const row of rows) {
      const held = value(lane, row);
      keys[row] = rank ? rank[kinds.code[held[0]][held[1]] + 1] : held;
    }
    const sign = this.descending ? -1 : 1;
    if (!(this.sort === 1 && !this.descending && lane.subrows.length === 1)) {
      rows.sort((a, b) => sign * (keys[a] - keys[b]) || a - b);
    }
    this.rows = rows;
    this.count.textContent = `${grouped(rows.length)} of ${grouped(lane.count)} ${profile.words.events}`
      + (lane.shown < lane.count ? `, ${grouped(lane.count - lane.shown)} are not in this page` : '');
    this.spacer.style.height = `${Math.min(rows.length * ROW_HEIGHT, TALLEST_TABLE)}px`;
    this.drawHead();
  },

  // Alphabetical rank of each code of a text column, shifted by one: missing first.
  ranks(column) {
    const [key] = TABLE_COLUMNS[column][2]({ columns: { kind: [0] } }, 0);
    const texts = profile.strings[key];
    const order = texts.map((_, code) => code).sort((a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0));
    const ranks = new Int32Array(texts.length + 1);
    order.forEach((code, rank) => (ranks[code + 1] = rank + 1));
    return ranks;
  },

  drawHead() {
    this.head.replaceChildren(...TABLE_COLUMNS.map(([title, kind], place) => el('button',
      `cell ${kind === 'text' ? '' : 'number'}`, `${title}${place === this.sort ? (this.descending ? ' ▾' : ' ▴') : ''}`, {
        title: 'Sort; again to reverse',
        onclick: () => {
          this.descending = place === this.sort ? !this.descending : false;
          this.sort = place;
          redraw();
        },
      })));
  },

  drawRows() {
    const room = this.scroller.clientHeight - ROW_HEIGHT;
    const fits = Math.ceil(room / ROW_HEIGHT) + 1, { rows, lane } = this;
    const full = rows.length * ROW_HEIGHT, shownHeight = Math.min(full, TALLEST_TABLE);
    const share = shownHeight > room ? this.scroller.scrollTop / (shownHeight - room) : 0;
    const first = Math.max(0, Math.min(rows.length - fits + 1, Math.floor((share * (full - room)) / ROW_HEIGHT)));
    this.body.style.transform = `translateY(${this.scroller.scrollTop}px)`;
    const selected = state.selected && state.selected.lane === lane ? state.selected.row : -1;
    this.body.replaceChildren(...Array.from(rows.subarray(first, first + fits), (row) => {
      const line = el('div', `table-row${row === selected ? ' selected' : ''}`, TABLE_COLUMNS.map(([, kind, value]) =>
        el('span', `cell ${kind === 'text' ? '' : 'number'}`, cellText(lane, row, kind, value))));
      line.onclick = () => select(lane, row, true);
      return line;
    }));
  },
};

function cellText(lane, row, kind, value) {
  const held = value(lane, row);
  if (kind === 'text') return kinds.text(...held) || MISSING;
  if (held < 0) return MISSING;
  return grouped(held, kind === 'number' ? 0 : kind);
}

panels.shown.table = () => table.show();
