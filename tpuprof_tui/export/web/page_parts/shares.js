// Shares of time by function type and function name, for each kind of engine: as pies or as bars.

const shares = {
  // By engine: { total, types: [[code, ns, [[name code, ns, count]]]] }, work only.
  measure() {
    const engines = new Map();
    const add = (lane, kind, ns, count) => {
      if (kinds.role[kind] > ROLE.WORK || ns <= 0) return;
      if (!engines.has(lane.engine)) engines.set(lane.engine, { total: 0, types: new Map() });
      const engine = engines.get(lane.engine);
      const type = kinds.code.type[kind], name = kinds.code.name[kind];
      if (!engine.types.has(type)) engine.types.set(type, { ns: 0, names: new Map() });
      const entry = engine.types.get(type);
      const known = entry.names.get(name) || [0, 0];
      engine.total += ns;
      entry.ns += ns;
      entry.names.set(name, [known[0] + ns, known[1] + count]);
    };
    for (const lane of shownLanes()) {
      if (state.sharesOf === 'capture' && !filters.active) {
        for (const [kind, count, ns] of lane.totals) add(lane, kind, ns, count);
        continue;
      }
      const window = state.sharesOf === 'capture' ? [WINDOW_START, WINDOW_END] : [state.from, state.to];
      const times = new Float64Array(kinds.count), counts = new Float64Array(kinds.count);
      for (const track of lane.tracks) {
        for (let i = track.firstAfter(window[0]); i < track.n && track.start[i] < window[1]; i++) {
          const inside = Math.min(track.end[i], window[1]) - Math.max(track.start[i], window[0]);
          if (inside <= 0) continue;
          times[track.kind[i]] += inside;
          counts[track.kind[i]]++;
        }
      }
      times.forEach((ns, kind) => add(lane, kind, ns, counts[kind]));
    }
    return [...engines].map(([engine, found]) => ({
      engine,
      total: found.total,
      types: [...found.types]
        .map(([code, { ns, names }]) => ({
          text: profile.strings.type[code] ?? 'unknown',
          ns,
          names: [...names].map(([name, [time, count]]) => ({ code: name, text: profile.strings.name[name] ?? 'unknown',
            ns: time, count })).sort((a, b) => b.ns - a.ns),
        }))
        .sort((a, b) => b.ns - a.ns),
    }));
  },

  show() {
    const key = [state.from, state.to, state.sharesAs, state.sharesOf, [...state.cores], [...state.engines],
      JSON.stringify(filters.wanted), [...filters.hidden], theme.bg, lanes.filter((lane) => lane.columns).length].join('|');
    if (this.key === key) return;
    this.key = key;
    const found = this.measure();
    const content = byId('panel-content');
    const cards = found.map((engine) => (state.sharesAs === 'pie' ? this.pie(engine) : this.bars(engine)));
    content.replaceChildren(el('div', 'share-cards', cards.length ? cards : el('p', 'quiet', 'No work in this window.')));
  },

  colour(name, place) {
    return (colours.by === 'function' && colours.ofCode.get(name.code)) || PALETTE[place % PALETTE.length];
  },

  pie({ engine, total, types }) {
    const canvas = el('canvas');
    const size = 190, ratio = Math.min(devicePixelRatio || 1, 2);
    canvas.width = canvas.height = size * ratio;
    canvas.style.width = canvas.style.height = `${size}px`;
    const context = canvas.getContext('2d');
    context.scale(ratio, ratio);
    let angle = -Math.PI / 2, place = 0;
    const arcs = [];
    const ring = (from, to, inner, outer, colour, title) => {
      context.beginPath();
      context.arc(size / 2, size / 2, outer, from, to);
      context.arc(size / 2, size / 2, inner, to, from, true);
      context.closePath();
      context.fillStyle = colour;
      context.fill();
      context.strokeStyle = theme.surface;
      context.lineWidth = 1;
      if (to - from > 0.02) context.stroke();
      arcs.push({ from, to, inner, outer, title });
    };
    for (const type of types) {
      const first = angle;
      for (const name of type.names) {
        const next = angle + (name.ns / total) * 2 * Math.PI;
        ring(angle, next, 62, 92, this.colour(name, place++),
          `${name.text}: ${percentText(name.ns / total)}, ${durationText(name.ns)}, ${grouped(name.count)} times`);
        angle = next;
      }
      ring(first, angle, 38, 60, this.colour(type.names[0], 0), `${type.text}: ${percentText(type.ns / total)}, ${durationText(type.ns)}`);
    }
    context.fillStyle = theme.text;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.font = `600 13px ${FONT.slice(5)}`;
    context.fillText(engine, size / 2, size / 2 - 7);
    context.font = FONT;
    context.fillStyle = theme.quiet;
    context.fillText(durationText(total), size / 2, size / 2 + 9);
    canvas.addEventListener('pointermove', (event) => {
      const x = event.offsetX - size / 2, y = event.offsetY - size / 2, radius = Math.hypot(x, y);
      let turn = Math.atan2(y, x);
      if (turn < -Math.PI / 2) turn += 2 * Math.PI;
      const arc = arcs.find((each) => radius >= each.inner && radius <= each.outer && turn >= each.from && turn < each.to);
      canvas.title = arc ? arc.title : '';
    });
    return el('div', 'share-card', [canvas, this.list(types, total, 9)]);
  },

  bars({ engine, total, types }) {
    const names = this.ranked(types);
    const rows = names.slice(0, 14).map((name, place) => {
      const bar = el('span', 'bar');
      bar.style.width = `${(name.ns / names[0].ns) * 100}%`;
      bar.style.background = this.colour(name, place);
      const text = [name.text, ...(this.ambiguous(names, name) ? [el('span', 'quiet', ` ${name.type}`)] : [])];
      return el('div', 'bar-row', [el('span', 'bar-name', text, { title: `${name.type}: ${name.text}` }),
        el('span', 'bar-room', bar), el('span', 'number', percentText(name.ns / total)),
        el('span', 'number quiet', durationText(name.ns))]);
    });
    if (names.length > 14) rows.push(el('div', 'quiet', `and ${names.length - 14} more`));
    return el('div', 'share-card wide', [el('h3', '', [`${engine} `, el('span', 'quiet', durationText(total))]), ...rows]);
  },

  ranked(types) {
    return types.flatMap((type) => type.names.map((name) => ({ ...name, type: type.text }))).sort((a, b) => b.ns - a.ns);
  },

  // Whether a name occurs under more than one type.
  ambiguous(names, name) {
    return names.some((other) => other.code === name.code && other.type !== name.type);
  },

  list(types, total, most) {
    const names = this.ranked(types);
    const rows = names.slice(0, most).map((name, place) => {
      const swatch = el('span', 'swatch');
      swatch.style.background = this.colour(name, place);
      const text = [name.text, ...(this.ambiguous(names, name) ? [el('span', 'quiet', ` ${name.type}`)] : [])];
      return el('div', 'share-row', [swatch, el('span', 'bar-name', text, { title: `${name.type}: ${name.text}` }),
        el('span', 'number', percentText(name.ns / total))]);
    });
    if (names.length > most) rows.push(el('div', 'quiet', `and ${names.length - most} more`));
    return el('div', 'share-list', rows);
  },
};

panels.shown.shares = () => shares.show();
