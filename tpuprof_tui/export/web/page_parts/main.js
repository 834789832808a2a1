// The start: what needs no columns is shown first, then columns are read lane by lane.

async function readAll() {
  // the first lanes on the screen come first; details only when everything can be drawn
  for (const lane of lanes) await lane.readOverview();
  redraw();
  let since = performance.now();
  const pause = async () => {
    if (performance.now() - since < 40) return;
    redraw();
    await new Promise((resolve) => setTimeout(resolve));
    since = performance.now();
  };
  // while one lane is unpacked here, the browser inflates the next ones
  const ahead = lanes.slice(0, 2).map((lane) => readChunk(lane.chunks[0]));
  for (const lane of lanes) {
    const next = lanes[lane.index + 2];
    if (next) ahead.push(readChunk(next.chunks[0]));
    lane.takeColumns(await ahead[lane.index]);
    await pause();
  }
  for (const each of launches.values()) await each.readColumns();
  document.documentElement.dataset.drawn = Math.round(performance.now());
  drawLegend();
  address.finish();
  redraw();
  for (const lane of lanes) {
    await lane.readDetails();
    await pause();
  }
  if (filters.number !== null) findMatches();
  document.documentElement.dataset.ready = Math.round(performance.now());
  redraw();
}

function start() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  readTheme();
  colours.rebuild();
  byId('title').textContent = profile.name;
  byId('subtitle').textContent = [profile.chip, countOf(profile.cores.length, 'unit'), profile.recording[0],
    lanes.length ? bySide(countOf(profile.instructions, 'event')) : '', profile.selection].filter(Boolean).join(' · ');
  byId('subtitle').title = profile.selection;
  byId('sentence').textContent = profile.sentence;
  byId('made-by').textContent = `tpuprof ${profile.version}`;
  timeline.start();
  minimap.start();
  hover.start();
  panels.start();
  overview.start();
  startControls();
  drawCoreButtons();
  drawFilters();
  drawLegend();
  address.start();
  byId('omitted').hidden = profile.until === null;
  byId('omitted').title = 'Later ones are in all sums, but not in this page; see the overview.';
  if (profile.until !== null) {
    byId('omitted').textContent = `Single instructions end at ${durationText(profile.until)}.`;
  }
  readAll().catch((error) => {
    const text = `This page is damaged or was cut off: its data could not be read (${error.message}).`;
    byId('failure').textContent = text;
    byId('failure').hidden = false;
  });
}

// For scripts that look at the page.
window.tpuprof = { profile, state, lanes, kinds, timeline, minimap, bandwidth, scatter, memory, shares, table, search, address, drawNow,
  showPanel, showView, chooseCores, setWindow, select };
start();
