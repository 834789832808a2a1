// The overview: what was captured, the reference's summary, what each core did, what took the time, what was odd.

const MODE_NAMES = ['PMU only', 'condensed commands', 'detailed commands'];

const overview = {
  sort: null, // column of the summary
  descending: true,

  start() {
    const root = byId('overview');
    root.append(
      this.tiles(),
      ...this.notes(),
      this.section('Summary', this.summaryBox = el('div', 'scroll-x'), 'By the definitions of bigTpuProfile. '
        + 'Click a header to sort, a row to see its core. Of the whole capture.'),
      el('div', 'columns', [
        this.section('Where the time of each core went', this.coreBars(), 'Compute: TIU work. Transfer: GDMA, SDMA and '
          + 'submitted CDMA work without compute at the same time.'),
        this.section('What took the time', this.topList(), 'Work of all engines of this page, by function.'),
      ]),
      el('div', 'columns', [
        this.section('Lanes', this.laneTable(), 'Busy: when work ran; what overlaps counts once. ~ stands before guesses.'),
        this.section('Parameters', this.parameters()),
      ]),
      ...(profile.problems.length ? [this.section('Problems', this.problems())] : []),
    );
    this.drawSummary();
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
      tile('Total time', durationText(DEVICE_SPAN), `${grouped(DEVICE_SPAN)} ns`),
      tile('Instructions', grouped(profile.instructions), `${profile.cores.length} cores`
        + (profile.ports.length ? `, ${profile.ports.length} CDMA ports` : '')),
      tile('Computing', `${mark}${percentText(compute / time)}`, 'of the time, mean of the cores'),
      ...(most ? [tile('Exposed transfer', `${mark}${percentText(most.exposed / (most.window || 1))}`,
        `core ${most.core}: ${mark}${durationText(most.exposed)} moving data without computing, most of all cores`)] : []),
      tile('Mode', profile.bmodel ? 'bmodel' : `${profile.mode}`, MODE_NAMES[profile.bmodel ? 2 : profile.mode] ?? ''),
      tile('Problems', grouped(profile.problem_count), profile.problem_count ? 'listed below' : 'none found'),
    ]);
  },

  notes() {
    const notes = [];
    if (profile.selected) {
      notes.push(`This page holds a selection (${profile.selection}): ${grouped(profile.total)} of `
        + `${grouped(profile.whole)} instructions.`);
    }
    if (profile.until !== null) {
      notes.push(`A page holds at most ${grouped(profile.most)} instructions one by one. This one holds `
        + `${grouped(profile.shown)} of ${grouped(profile.total)}: those that start before ${durationText(profile.until)} `
        + `(${grouped(profile.until)} ns). Later ones are left out: no boxes, hover, search, table or uArch rate. `
        + 'Summary, totals, shares of the whole capture, the strip above the timeline and the bandwidth are of all. To see a later part, export a range.');
    }
    if (profile.mode < 2 && !profile.bmodel) {
      notes.push('uArch rates and local memory addresses are known from captures of mode 2 only: TIU boxes have full height, '
        + 'and uArchURate in the summary says nothing.');
    }
    if (profile.mode === 0 && !profile.bmodel) {
      notes.push('This capture holds no commands: names are unknown, work and waits are told apart by guesswork (~).');
    }
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
    const empty = el('p', 'quiet', 'No core has instructions.');
    this.summaryBox.replaceChildren(rows.length ? el('table', 'summary', [el('thead', '', head), el('tbody', '', body)]) : empty);
  },

  coreBars() {
    const parts = [['compute', 'compute', 'var(--compute)'], ['exposed', 'transfer without compute', 'var(--transfer)'],
      ['waiting', 'waits and syncs', 'var(--still)'], ['idle', 'idle', 'var(--line)']];
    const legend = el('div', 'legend-line', parts.map(([, label, colour]) => {
      const swatch = el('span', 'swatch');
      swatch.style.background = colour;
      return el('span', '', [swatch, label]);
    }));
    const rows = profile.figures.filter((core) => core.window > 0).map((core) => {
      const ns = { ...core, waiting: Math.max(core.window - core.busy - core.idle, 0) };
      const bar = el('div', 'stack', parts.map(([key, label, colour]) => {
        const piece = el('span', '', '', { title: `${label}: ${durationText(ns[key])}, ${percentText(ns[key] / core.window)}` });
        piece.style.width = `${(ns[key] / core.window) * 100}%`;
        piece.style.background = colour;
        return piece;
      }));
      const line = el('div', 'stack-row link', [el('span', '', `Core ${core.core}`), bar,
        el('span', 'number', `${core.guessed ? '~' : ''}${percentText(core.busy / core.window)}`, { title: 'busy' })]);
      line.onclick = () => showCore(core.core);
      return line;
    });
    return el('div', '', [legend, ...rows]);
  },

  topList() {
    const byName = new Map();
    for (const lane of lanes) {
      if (lane.ofHost) continue;
      for (const [kind, count, ns] of lane.totals) {
        if (kinds.role[kind] > ROLE.WORK) continue;
        const text = kinds.text('name', kind) || `${lane.engine} (unknown)`;
        const found = byName.get(text) || [0, 0, lane.engine];
        byName.set(text, [found[0] + ns, found[1] + count, lane.engine]);
      }
    }
    const ranked = [...byName].sort((a, b) => b[1][0] - a[1][0]);
    const total = ranked.reduce((sum, [, [ns]]) => sum + ns, 0) || 1;
    const rows = ranked.slice(0, 12).map(([text, [ns, count, engine]]) => {
      const bar = el('span', 'bar');
      bar.style.width = `${(ns / ranked[0][1][0]) * 100}%`;
      bar.style.background = engine === 'TIU' ? 'var(--compute)' : 'var(--transfer)';
      return el('div', 'bar-row', [el('span', 'bar-name', text, { title: text }), el('span', 'bar-room', bar),
        el('span', 'number', percentText(ns / total)), el('span', 'number quiet', `${grouped(count)} ×`)]);
    });
    if (ranked.length > 12) rows.push(el('div', 'quiet', `and ${ranked.length - 12} more`));
    return el('div', '', rows.length ? rows : el('p', 'quiet', 'No work was recorded.'));
  },

  laneTable() {
    const titles = ['Lane', 'Count', 'Utilisation', 'Busy', 'Wait', 'Sync', 'Idle', 'Moved'];
    const body = lanes.map((lane) => {
      const mark = lane.guessed ? '~' : '';
      const cells = [lane.title, grouped(lane.count), mark + percentText(lane.busy / (lane.ofHost ? SPAN : DEVICE_SPAN)), mark + durationText(lane.busy),
        mark + durationText(lane.wait), mark + durationText(lane.sync), durationText(lane.idle),
        lane.bytes === null ? MISSING : sizeText(lane.bytes)];
      return el('tr', '', cells.map((cell, place) => el('td', place ? 'number' : 'left', cell)));
    });
    return el('div', 'scroll-x', el('table', 'plain', [el('thead', '', el('tr', '', titles.map((title, place) =>
      el('th', place ? 'number' : 'left', title)))), el('tbody', '', body)]));
  },

  parameters() {
    const rows = [...profile.parameters];
    if (!rows.length) rows.push(['Chip', profile.chip]);
    return el('table', 'plain', el('tbody', '', rows.map(([label, value]) => el('tr', '', [el('td', 'left quiet', label),
      el('td', 'number', value)]))));
  },

  problems() {
    const rows = profile.problems.map((problem) => {
      const place = [problem.file, problem.offset === null ? '' : `byte ${grouped(problem.offset)}`,
        problem.core !== null && !problem.file ? `core ${problem.core}` : '', problem.lane].filter(Boolean).join(', ');
      const times = problem.count > 1 ? ` (${grouped(problem.count)} times)` : '';
      return el('tr', '', [el('td', `left ${problem.severity}`, problem.severity), el('td', 'left', place || MISSING),
        el('td', 'left wrap', `${problem.what}${times} ${problem.done}`)]);
    });
    const rest = profile.problem_count - profile.problems.length;
    return el('div', 'scroll-x', [el('table', 'plain', [el('thead', '', el('tr', '', ['Severity', 'Where', 'What'].map((title) =>
      el('th', 'left', title)))), el('tbody', '', rows)]), ...(rest > 0 ? [el('p', 'quiet', `${grouped(rest)} more.`)] : [])]);
  },
};
