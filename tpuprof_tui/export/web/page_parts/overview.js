// The overview: what was captured, the reference's summary, what each core did, what took the time, what was odd.

const LONG_TEXT = 40; // characters of a cell that are shown without a line break

const overview = {
  sort: null, // column of the summary
  descending: true,

  start() {
    const root = byId('overview');
    root.append(
      this.tiles(),
      ...this.notes(),
      ...(profile.summary.columns.length ? [this.section('Summary', this.summaryBox = el('div', 'scroll-x'),
        say('{published}Click a header to sort, a row to see its {unit}. Of the whole capture.'))] : []),
      ...(profile.figures.length ? [this.section(say('Where the time of each {unit} went'), this.coreBars(), profile.bars)] : []),
      ...profile.views.map((view) => this.section(view.title, this.view(view), view.help)),
      this.section('Parameters', this.parameters()),
    );
    if (this.summaryBox) this.drawSummary();
  },

  section(title, content, note = '') {
    return el('section', 'card-box', [el('h2', '', title), ...(note ? [el('p', 'quiet note', note)] : []), content]);
  },

  tiles() {
    const compute = profile.figures.reduce((sum, core) => sum + core.compute, 0);
    const most = profile.figures.reduce((found, core) => (found && found.exposed >= core.exposed ? found : core), null);
    const time = profile.figures.reduce((sum, core) => sum + core.window, 0) || 1;
    const mark = profile.figures.some((core) => core.guessed) ? '~' : '';
    const tile = (label, value, note) => el('div', 'tile', [el('div', 'quiet', label), el('div', 'tile-value', value),
      el('div', 'quiet', note)]);
    return el('div', 'tiles', [
      ...(lanes.length ? [tile('Total time', durationText(profile.length), `${grouped(profile.length)} ns`),
        tile(say('{Events}'), grouped(profile.instructions), [bySide('').trim(), countOf(profile.cores.length, 'unit')].filter(Boolean).join(', ')
        + (profile.ports.length ? `, ${profile.ports.length} ${profile.ports_title} ports` : ''))]
        : [tile('Total time', '-', say('no times of {events}'))]),
      ...(most ? [tile('Computing', `${mark}${percentText(compute / time)}`, say('of the time, mean of the {units}')),
        tile('Exposed transfer', `${mark}${percentText(most.exposed / (most.window || 1))}`,
        `${unitTitle(most.core)}: ${mark}${durationText(most.exposed)} ${say('moving data without computing, most of all {units}')}`)] : []),
      ...(profile.recording[1] ? [tile('Mode', profile.recording[1], profile.recording[2])] : []),
      tile('Problems', grouped(profile.problem_count), profile.problem_count ? 'listed below' : 'none found'),
    ]);
  },

  notes() {
    const notes = [];
    if (profile.selection) {
      notes.push(`This page holds a selection (${profile.selection}): ${grouped(profile.total)} of `
        + `${grouped(profile.whole)} ${profile.words.events}.`);
    }
    if (profile.until !== null) {
      notes.push(`A page holds at most ${grouped(profile.most)} ${profile.words.events} one by one. This one holds `
        + `${grouped(profile.shown)} of ${grouped(profile.total)}: those that start before ${durationText(profile.until)} `
        + `(${grouped(profile.until)} ns). Later ones are left out: no boxes, hover, search, table${profile.rate ? ` or ${profile.rate.title}` : ''}. `
        + 'Summary, totals, shares of the whole capture, the strip above the timeline and the bandwidth are of all. To see a later part, export a range.');
    }
    notes.push(...profile.notes);
    if (profile.host) notes.push(`The host's slices stand beside the device's time line. Alignment: ${profile.host.replace(/\.$/, '')}.`);
    if (profile.memory && profile.memory.cut) notes.push('Some accesses to local memory are left out; the chart says from when.');
    return notes.length ? [el('div', 'notes', notes.map((text) => el('p', '', text)))] : [];
  },

  drawSummary() {
    const { columns, rows } = profile.summary;
    const cores = rows.filter((row) => row.core !== null), whole = rows.filter((row) => row.core === null);
    if (this.sort !== null) {
      const value = (row) => parseFloat(row.cells[this.sort]);
      cores.sort((a, b) => (this.descending ? value(b) - value(a) : value(a) - value(b)) || a.core - b.core);
    }
    // long names may break where a word begins
    const words = (name) => name.split(/(?=[A-Z(][a-z])/).flatMap((word) => [el('wbr'), word]);
    const head = el('tr', '', columns.map(([name, help], place) => el('th', '', el('button', '',
      [...words(name), `${place === this.sort ? (this.descending ? ' ▾' : ' ▴') : ''}`], { title: help, onclick: () => {
        this.descending = place === this.sort ? !this.descending : place !== 0;
        this.sort = place;
        this.drawSummary();
      } }), { 'aria-sort': place === this.sort ? (this.descending ? 'descending' : 'ascending') : 'none' })));
    const body = [...cores, ...whole].map((row) => {
      const line = el('tr', row.core === null ? 'total' : 'link', row.cells.map((cell, place) => el('td', row.levels[place], cell)));
      if (row.core !== null) line.onclick = () => showCore(row.core);
      return line;
    });
    const empty = el('p', 'quiet', say('No {unit} has {events}.'));
    this.summaryBox.replaceChildren(rows.length ? el('table', 'summary', [el('thead', '', head), el('tbody', '', body)]) : empty);
  },

  coreBars() {
    const parts = [['compute', 'compute', 'var(--compute)'], ['exposed', 'transfer without compute', 'var(--transfer)'],
      ['exposed_communication', 'communication without compute', 'var(--caution)'], ['waiting', 'waits and syncs', 'var(--still)'],
      ['idle', 'idle', 'var(--line)']].filter(([key]) => key === 'waiting' || profile.figures.some((core) => key in core));
    const legend = el('div', 'legend-line', parts.map(([, label, colour]) => {
      const swatch = el('span', 'swatch');
      swatch.style.background = colour;
      return el('span', '', [swatch, label]);
    }));
    const rows = profile.figures.filter((core) => core.window > 0).map((core) => {
      const ns = { ...core, waiting: Math.max(core.window - core.busy - core.idle, 0) };
      const bar = el('div', 'stack', parts.filter(([key]) => ns[key] !== null).map(([key, label, colour]) => {
        const piece = el('span', '', '', { title: `${label}: ${durationText(ns[key])}, ${percentText(ns[key] / core.window)}` });
        piece.style.width = `${(ns[key] / core.window) * 100}%`;
        piece.style.background = colour;
        return piece;
      }));
      const line = el('div', 'stack-row link', [el('span', '', unitTitle(core.core)), bar,
        el('span', 'number', `${core.guessed ? '~' : ''}${percentText(core.busy / core.window)}`, { title: 'busy' })]);
      line.onclick = () => showCore(core.core);
      return line;
    });
    const box = el('div', '', [legend, ...rows]);
    // bars of all units begin in one place
    box.style.setProperty('--title', `max(60px, ${Math.min(Math.max(0, ...profile.figures.map(({ title }) => title.length)), 30)}ch)`);
    return box;
  },

  parameters() {
    const rows = [...profile.parameters];
    if (!rows.length) rows.push(['Chip', profile.chip]);
    return el('table', 'plain', el('tbody', '', rows.map(([label, value]) => el('tr', '', [el('td', 'left quiet', label),
      el('td', 'number', value)]))));
  },

  // A view: its facts, then its tables; a header sorts, bars are full at `full`.
  view({ facts, tables, notes }) {
    const told = facts.map(([title, text]) => el('tr', '', [el('td', 'left quiet', title), el('td', 'left', text)]));
    return el('div', '', [...(told.length ? [el('table', 'plain', el('tbody', '', told))] : []),
      ...notes.map((note) => el('p', 'quiet note', note)), ...tables.map((table) => this.viewTable(table))]);
  },

  viewTable(table) {
    const box = el('div', 'scroll-x');
    const numbers = [...table.rows.keys()];
    const body = table.total ? numbers.slice(0, -1) : numbers;
    // short texts stay on one line, so that the numbers beside them are seen
    const long = table.columns.map(({ text }, place) => text && table.rows.some((row) => row[place].length > LONG_TEXT));
    const draw = (sorted, down) => {
      const order = [...body];
      if (sorted !== null) {
        const { values } = table.columns[sorted];
        const key = (row) => (values ? values[row] ?? -Infinity : table.rows[row][sorted]);
        order.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (down ? -1 : 1) || a - b);
      }
      const head = el('tr', '', table.columns.map((column, place) => el('th', column.text ? 'left' : 'number', el('button', '',
        `${column.title}${place === sorted ? (down ? ' ▾' : ' ▴') : ''}`, { onclick: () => draw(place, place === sorted ? !down
          : !column.text) }), { 'aria-sort': place === sorted ? (down ? 'descending' : 'ascending') : 'none' })));
      const rows = [...order, ...(table.total ? [numbers.length - 1] : [])].map((row) => el('tr', '',
        table.columns.map((column, place) => {
          if (long[place]) return el('td', 'left', el('div', 'wrap', table.rows[row][place]));
          if (!column.full) return el('td', column.text ? 'left' : 'number', table.rows[row][place]);
          const bar = el('span', 'bar');
          bar.style.width = `${(Math.abs(column.values[row] ?? 0) / column.full) * 100}%`;
          bar.style.background = 'var(--compute)';
          return el('td', 'number barred', [el('span', 'bar-room', bar), table.rows[row][place]]);
        })));
      const copy = el('button', 'copy', 'copy', { title: 'Copy the rows', onclick: () => copyText(rowsCopied([
        table.columns.map(({ title }) => title), ...[...order, ...(table.total ? [numbers.length - 1] : [])].map((row) => table.rows[row])])) });
      box.replaceChildren(el('table', 'plain', [el('caption', 'left quiet', [`${table.title} `, copy]), el('thead', '', head),
        el('tbody', '', rows)]));
    };
    draw(null, false);
    const notes = table.more > 0 ? [`${grouped(table.more)} more.`, ...table.notes] : table.notes;
    return el('div', '', [box, ...notes.map((note) => el('p', 'quiet note', note))]);
  },
};
