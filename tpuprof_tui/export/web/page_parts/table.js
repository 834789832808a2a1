// The data table: every event of a lane, drawn as far as it is visible.

const ROW_HEIGHT = 22;
const TALLEST_TABLE = 8e6; // pixels that every browser can scroll
const MOST_COPIED = 100_000; // rows; more is an export's work

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
  marked: null, // [first clicked, last clicked] of the rows shown, by place
  wanted: -1, // row of the lane to scroll to, once the rows are chosen

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
    if (this.wanted >= 0) this.reveal();
    this.drawRows();
  },

  // Shows the lane of an event that was selected elsewhere, and its row.
  follow(lane, row) {
    this.lane = lane;
    this.laneKey = null;
    this.wanted = row;
  },

  reveal() {
    const place = this.rows.indexOf(this.wanted);
    this.wanted = -1;
    this.marked = place < 0 ? null : [place, place];
    const [first, fits] = this.visible();
    if (place < 0 || (place >= first && place < first + fits - 1)) return;
    const { full, shownHeight, room } = this.sizes();
    const top = Math.max(0, Math.min(place * ROW_HEIGHT - room / 2, full - room));
    this.scroller.scrollTop = full > room ? (top * (shownHeight - room)) / (full - room) : 0;
  },

  build(content) {
    this.picker = el('select', '', [], { title: 'Lane', onchange: () => this.pick(lanes[this.picker.value]) });
    const check = el('input', '', [], { type: 'checkbox', checked: this.inView, onchange: () => {
      this.inView = check.checked;
      redraw();
    } });
    this.count = el('span', 'quiet');
    this.copier = el('button', '', '', { title: 'The rows marked by click and Shift-click, else all listed (Ctrl C: the marked ones)',
      onclick: () => this.copy() });
    this.head = el('div', 'table-head', [], { role: 'row' });
    this.body = el('div', 'table-body');
    this.spacer = el('div', 'table-spacer', this.body);
    this.scroller = el('div', 'table-scroll', [this.head, this.spacer], { tabIndex: 0, role: 'table' });
    this.scroller.addEventListener('scroll', () => this.drawRows());
    this.element = el('div', 'table', [el('div', 'table-tools', [this.picker, el('label', '', [check, ' only the window shown']),
      this.copier, this.count]), this.scroller]);
    content.replaceChildren(this.element);
    shares.key = null;
    this.laneKey = null;
    this.rowsKey = null;
  },

  offerLanes(wanted, key) {
    this.laneKey = key;
    this.picker.replaceChildren(...wanted.map((lane) => el('option', '', `${lane.title} (${grouped(lane.count)})`,
      { value: lane.index })));
    if (!wanted.includes(this.lane)) {
      const { engine } = this.lane ?? {};
      this.lane = wanted.find((lane) => lane.engine === engine) || wanted[0] || null;
    }
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
    this.marked = null;
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

  sizes() {
    const room = this.scroller.clientHeight - ROW_HEIGHT, full = this.rows.length * ROW_HEIGHT;
    return { room, full, shownHeight: Math.min(full, TALLEST_TABLE) };
  },

  // The first visible place, and how many fit.
  visible() {
    const { room, full, shownHeight } = this.sizes(), fits = Math.ceil(room / ROW_HEIGHT) + 1;
    const share = shownHeight > room ? this.scroller.scrollTop / (shownHeight - room) : 0;
    return [Math.max(0, Math.min(this.rows.length - fits + 1, Math.floor((share * (full - room)) / ROW_HEIGHT))), fits];
  },

  drawRows() {
    const { rows, lane } = this, [first, fits] = this.visible(), [from, to] = this.markedRange();
    const copied = this.marked ? to - from + 1 : Math.min(rows.length, MOST_COPIED);
    this.copier.textContent = `copy ${grouped(copied)} row${copied === 1 ? '' : 's'}`;
    this.body.style.transform = `translateY(${this.scroller.scrollTop}px)`;
    const selected = state.selected && state.selected.lane === lane ? state.selected.row : -1;
    this.body.replaceChildren(...Array.from(rows.subarray(first, first + fits), (row, at) => {
      const place = first + at, chosen = row === selected || (place >= from && place <= to);
      const line = el('div', `table-row${chosen ? ' selected' : ''}`, this.cells(row).map((text, column) =>
        el('span', `cell ${TABLE_COLUMNS[column][1] === 'text' ? '' : 'number'}`, text)));
      line.onclick = (event) => this.mark(row, place, event.shiftKey);
      return line;
    }));
  },

  cells(row) {
    return TABLE_COLUMNS.map(([, kind, value]) => cellText(this.lane, row, kind, value));
  },

  // A click selects a row; with Shift it marks all rows from the last one clicked, to be copied.
  mark(row, place, more) {
    if (more && this.marked) {
      this.marked = [this.marked[0], place];
      getSelection().removeAllRanges();
      redraw();
      return;
    }
    select(this.lane, row, true);
    this.marked = [place, place];
  },

  markedRange() {
    return this.marked ? [Math.min(...this.marked), Math.max(...this.marked)] : [-1, -2];
  },

  // Header and marked rows; null where none is marked.
  copied([from, to] = this.markedRange()) {
    const rows = this.lane && Array.from(this.rows.subarray(Math.max(from, 0), to + 1), (row) => this.cells(row));
    return rows && rows.length ? [TABLE_COLUMNS.map(([title]) => title), ...rows] : null;
  },

  copy() {
    const rows = this.copied(this.marked ? this.markedRange() : [0, Math.min(this.rows.length, MOST_COPIED) - 1]);
    if (!rows || !copyText(rowsCopied(rows))) return;
    const cut = !this.marked && this.rows.length > MOST_COPIED ? `the first ${grouped(MOST_COPIED)} rows` : grouped(rows.length - 1);
    this.count.textContent = `copied ${cut}`;
  },
};

function cellText(lane, row, kind, value) {
  const held = value(lane, row);
  if (kind === 'text') return kinds.text(...held) || MISSING;
  if (held < 0) return MISSING;
  return grouped(held, kind === 'number' ? 0 : kind);
}

panels.shown.table = () => table.show();
