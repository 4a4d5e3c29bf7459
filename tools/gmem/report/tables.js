/* The tables below the picture. Each is {caption, head, rows}; a cell is a text, or {text, act}, or {meter}. */

const MOST_ROWS = 200; // in the page; a saved CSV has all

function makeElement(name, text) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  return element;
}

function makeButton(text, act) {
  const button = makeElement("button", text);
  button.type = "button";
  button.className = "plain";
  button.addEventListener("click", act);
  return button;
}

function makeCell(cell) {
  const element = makeElement("td");
  if (cell.act) {
    element.appendChild(makeButton(cell.text, cell.act));
  } else if (cell.meter !== undefined) {
    const meter = element.appendChild(makeElement("meter"));
    meter.value = cell.meter;
    meter.setAttribute("aria-label", Math.round(cell.meter * 100) + " percent");
  } else {
    element.textContent = cell;
  }
  return element;
}

function makeTable(table) {
  const element = makeElement("table");
  const left = table.rows.length - MOST_ROWS;
  element.appendChild(makeElement("caption", table.caption + (left > 0 ? " " + countText(left) + " more rows are in the CSV." : "")));
  const head = element.appendChild(makeElement("thead")).appendChild(makeElement("tr"));
  for (const name of table.head) head.appendChild(makeElement("th", name)).scope = "col";
  const body = element.appendChild(makeElement("tbody"));
  for (const row of table.rows.slice(0, MOST_ROWS)) {
    const line = body.appendChild(makeElement("tr"));
    for (const cell of table.cells(row)) line.appendChild(makeCell(cell));
  }
  return element;
}

/* ---- CSV ---- */

/* A spreadsheet runs a text that begins as a formula, unless a sign stands in front. */
function csvCell(value) {
  const text = cleanText(String(value));
  return "\"" + (typeof value === "string" && /^[=+\-@]/.test(text) ? "'" : "") + text.replace(/"/g, "\"\"") + "\"";
}

function csvOf(table) {
  const lines = [table.csvHead, ...table.rows.map(table.csv)];
  return lines.map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function saveFile(name, type, text) {
  const link = makeElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/* ---- each table ---- */

function holdersTable(app) {
  const {model, keys, shown, state} = app, other = app.other();
  const rows = holders(model, keys, shown, state.cursor, other);
  const total = rows.reduce((sum, row) => sum + row.bytes, 0) || 1;
  return {rows,
    caption: "Bytes by " + app.byName() + " at the cursor (event " + eventText(model, state.cursor) + ") and at " +
      (state.compare === null ? "the peak" : "the other moment") + " (event " + eventText(model, other) + ").",
    head: [app.byName(), "bytes at the cursor", "", "blocks", "bytes at the other", "blocks", "change"],
    cells: (row) => [{text: shortText(keys.name(row.key), 120), act: () => app.showBlocks(row.key)}, exactText(row.bytes),
      {meter: row.bytes / total}, countText(row.blocks), exactText(row.otherBytes), countText(row.otherBlocks),
      bytesText(row.bytes - row.otherBytes)],
    csvHead: [app.byName(), "bytes", "blocks", "other_bytes", "other_blocks"],
    csv: (row) => [keys.name(row.key), row.bytes, row.blocks, row.otherBytes, row.otherBlocks]};
}

function growthTable(app) {
  const {model, keys, shown, state} = app, other = app.other();
  const from = Math.min(other, state.cursor), to = Math.max(other, state.cursor);
  const rows = growth(model, keys, shown, from, to);
  return {rows,
    caption: "Growth from event " + eventText(model, from) + " to event " + eventText(model, to) + ", by " + app.byName() +
      ". A block that is allocated between two equal places of a loop and lives at the second may be a leak.",
    head: [app.byName(), "allocated and alive", "blocks", "freed", "blocks", "change"],
    cells: (row) => [{text: shortText(keys.name(row.key), 120), act: () => app.showBlocks(row.key)}, exactText(row.grown),
      countText(row.grownBlocks), exactText(row.freed), countText(row.freedBlocks), bytesText(row.change)],
    csvHead: [app.byName(), "grown_bytes", "grown_blocks", "freed_bytes", "freed_blocks", "change_bytes"],
    csv: (row) => [keys.name(row.key), row.grown, row.grownBlocks, row.freed, row.freedBlocks, row.change]};
}

function sizeTable(app) {
  const {model, shown, state} = app, rows = sizesTable(model, shown, state.from, state.to);
  const freed = (row) => row.blocks - row.never;
  return {rows,
    caption: "Sizes of the blocks that were born in the view; life times in events.",
    head: ["size", "blocks", "bytes together", "least life", "mean life", "most life", "alive at the end"],
    cells: (row) => [exactText(row.size), countText(row.blocks), bytesText(row.total), freed(row) ? countText(row.least) : "",
      freed(row) ? countText(Math.round(row.sum / freed(row))) : "", freed(row) ? countText(row.most) : "", countText(row.never)],
    csvHead: ["bytes", "blocks", "total_bytes", "least_life", "mean_life", "most_life", "alive_at_end"],
    csv: (row) => [row.size, row.blocks, row.total, freed(row) ? row.least : "", freed(row) ? row.sum / freed(row) : "",
      freed(row) ? row.most : "", row.never]};
}

function blocksTable(app) {
  const {model, keys, shown, state} = app, rows = blocksAt(model, keys, shown, state.cursor, state.key);
  return {rows,
    caption: countText(rows.length) + " blocks live at event " + eventText(model, state.cursor) +
      (state.key === null ? "" : " of " + shortText(keys.name(state.key), 80)) + ", the largest first.",
    head: ["block", "bytes", "born at event", "freed at event", "stream", app.byName()],
    cells: (i) => [{text: "block " + countText(i), act: () => app.showBlock(i)}, exactText(model.bytes[i]),
      eventText(model, model.born[i]), model.died[i] === NEVER ? "never" : eventText(model, model.died[i]),
      String(model.stream[model.born[i]]), shortText(keys.name(keys.key[i]), 60)],
    csvHead: ["block", "bytes", "born", "freed", "stream", app.byName()],
    csv: (i) => [i, model.bytes[i], model.born[i], model.died[i] === NEVER ? "" : model.died[i], model.stream[model.born[i]],
      keys.name(keys.key[i])]};
}

function marksTable(app) {
  const {model, series} = app, rows = model.marks.map((label, i) => i);
  const end = (i) => i + 1 < rows.length ? model.markEvent[i + 1] : model.events;
  const peak = (i) => rangeOf(series.levels, model.markEvent[i], end(i));
  return {rows,
    caption: "Marks, and the part of the recording up to the next one.",
    head: ["mark", "event", "live bytes there", "most live bytes", "at event"],
    cells: (i) => [{text: shortText(model.marks[i], 120), act: () => app.goTo(model.markEvent[i])}, eventText(model, model.markEvent[i]),
      exactText(series.live[model.markEvent[i]]), exactText(peak(i).max), eventText(model, peak(i).at)],
    csvHead: ["mark", "event", "live_bytes", "peak_bytes", "peak_event"],
    csv: (i) => [model.marks[i], model.markEvent[i], series.live[model.markEvent[i]], peak(i).max, peak(i).at]};
}

const TABLES = {holders: holdersTable, growth: growthTable, sizes: sizeTable, blocks: blocksTable, marks: marksTable};

/* ---- one block ---- */

function blockFacts(app, i) {
  const {model} = app, born = model.born[i], died = model.died[i];
  const facts = [["Bytes", exactText(model.bytes[i])],
    ["Born", "event " + eventText(model, born) + ", in " + shortText(markName(model, markAt(model, born)), 120)],
    ["Freed", died === NEVER ? "never: it lives at the end" :
      "event " + eventText(model, died) + ", in " + shortText(markName(model, markAt(model, died)), 120)],
    ["Life", died === NEVER ? "to the end" : countText(died - born) + " events"],
    ["Stream", model.stream[born] + (died !== NEVER && model.stream[died] !== model.stream[born] ? ", freed on " + model.stream[died] : "")]];
  if (model.time && died !== NEVER) facts.push(["Time", timeText(model.time[died] - model.time[born])]);
  if (model.tag) facts.push(["Tag", shortText(model.tags[model.tag[i]], 120)]);
  if (model.thread) facts.push(["Thread", String(model.thread[born])]);
  return facts;
}

function fillBlock(app, element, i) {
  element.replaceChildren();
  element.hidden = i === null;
  if (i === null) return;
  element.appendChild(makeElement("h2", "Block " + countText(i)));
  const list = element.appendChild(makeElement("dl"));
  for (const [name, text] of blockFacts(app, i)) {
    list.appendChild(makeElement("dt", name));
    list.appendChild(makeElement("dd", text));
  }
  element.appendChild(makeButton("Go to its birth", () => app.goTo(app.model.born[i])));
  if (app.model.died[i] === NEVER) return;
  element.appendChild(makeElement("span", " \u00b7 "));
  element.appendChild(makeButton("Go to its free", () => app.goTo(app.model.died[i])));
}
