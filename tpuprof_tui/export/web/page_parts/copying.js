// Copying rows as a spreadsheet takes them: tabs between cells, a line for each row, headers first.

// A cell that no spreadsheet takes for a formula (as formats/escape.py says) and that stays one cell.
function cellCopied(text) {
  const cell = text.replace(/[\t\r\n]/g, ' ');
  return /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(cell) && !/^-$|^-[\d.,]+(e[+-]?\d+)?%?$/i.test(cell) ? `'${cell}` : cell;
}

function rowsCopied(rows) {
  return rows.map((cells) => cells.map(cellCopied).join('\t')).join('\n');
}

// Puts a text on the clipboard; also where the page came without encryption, where browsers have no clipboard for scripts.
function copyText(text) {
  const area = el('textarea', 'aside', [], { value: text });
  const { activeElement } = document;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (activeElement) activeElement.focus({ preventScroll: true });
  return copied;
}

// Ctrl C: what is selected in the page, else the rows chosen in the table, else the selected event.
function onCopy(event) {
  if (state.view !== 'timeline' || !getSelection().isCollapsed || /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
  const rows = state.panel === 'table' && table.copied();
  const facts = !rows && state.selected && factsOf(state.selected.lane, state.selected.row);
  if (!rows && !facts) return;
  event.clipboardData.setData('text/plain', rowsCopied(rows || facts));
  event.preventDefault();
}
