/* The state of the page, and what changes it. Its hash is a link to the view. */

const byId = (id) => document.getElementById(id);
const app = {model: null, keys: null, shown: null, series: null, pending: false, table: null, state: {from: 0, to: 1, cursor: 0,
  compare: null, by: "mark", stream: null, thread: null, name: "", least: 0, most: Infinity, tab: "holders", fit: false, key: null, block: null}};

app.other = () => app.state.compare === null ? app.series.peakAt : app.state.compare;
app.byName = () => groupings(app.model).find(([by]) => by === app.state.by)[1];
app.showBlocks = (key) => change({tab: "blocks", key});
app.showBlock = (block) => change({block});
app.goTo = (event) => {
  const {from, to} = app.state, half = Math.floor((to - from) / 2);
  change({cursor: event, ...(event < from || event >= to ? limitView(event - half, event - half + (to - from)) : {})});
};

/* ---- the view ---- */

function limitView(from, to) {
  const events = Math.max(app.model.events, 1), span = Math.min(Math.max(Math.round(to - from), Math.min(8, events)), events);
  const begin = Math.min(Math.max(Math.round(from), 0), events - span);
  return {from: begin, to: begin + span};
}

function zoomView(factor, at) {
  const {from, to} = app.state;
  change(limitView(at - (at - from) * factor, at + (to - at) * factor));
}

function panView(share) {
  const {from, to} = app.state;
  change(limitView(from + (to - from) * share, to + (to - from) * share));
}

function goToMark(step) {
  const {model, state} = app, now = markAt(model, state.cursor);
  const onMark = now > 0 && model.markEvent[now - 1] === state.cursor;
  const wanted = step > 0 ? now : now - (onMark ? 2 : 1);
  if (wanted >= 0 && wanted < model.marks.length) app.goTo(model.markEvent[wanted]);
}

/* ---- changes ---- */

const GROUPED_BY = ["by", "stream", "thread", "name", "least", "most"];

function change(part) {
  const regroup = GROUPED_BY.some((key) => key in part && part[key] !== app.state[key]);
  Object.assign(app.state, part);
  if (regroup && !("key" in part)) app.state.key = null;
  if (regroup) regroupBlocks();
  schedule();
}

function regroupBlocks() {
  const {model, state} = app, test = makeFilter(model, state);
  app.keys = makeKeys(model, state.by);
  app.shown = test ? Uint8Array.from({length: model.blocks}, (_, i) => test(i) ? 1 : 0) : null;
  app.series = makeSeries(model, app.keys, app.shown);
  app.series.reserved = model.reserved ? makePyramid(model.reserved) : null;
}

function schedule() {
  if (app.pending) return;
  app.pending = true;
  requestAnimationFrame(() => {
    app.pending = false;
    drawAll();
    writeHash();
  });
}

/* ---- the hash ---- */

const HASH_NUMBERS = {from: "from", to: "to", at: "cursor", vs: "compare", stream: "stream", thread: "thread", least: "least",
  most: "most", key: "key", block: "block"};
const HASH_TEXTS = {by: "by", name: "name", tab: "tab", fit: "fit"};

function writeHash() {
  const {state, model} = app, words = new URLSearchParams();
  for (const [word, key] of Object.entries(HASH_TEXTS)) if (state[key]) words.set(word, state[key]);
  for (const [word, key] of Object.entries(HASH_NUMBERS)) {
    const idle = state[key] === null || state[key] === Infinity || (key === "least" && state[key] === 0);
    if (!idle && !(key === "from" && state.from === 0) && !(key === "to" && state.to === model.events)) words.set(word, state[key]);
  }
  app.hash = "#" + words;
  history.replaceState(null, "", app.hash);
}

/* A number of the hash is an event, block or key that is there; others are left out. */
function hashNumber(words, word, most) {
  const value = words.has(word) ? Number(words.get(word)) : NaN;
  return Number.isFinite(value) && value >= 0 && value < most ? value : null;
}

function readHash() {
  const {model} = app, words = new URLSearchParams(location.hash.slice(1)), or = (value, other) => value === null ? other : value;
  const events = Math.max(model.events, 1);
  const by = words.get("by"), tab = words.get("tab"), bys = groupings(model).map(([name]) => name);
  const part = {by: bys.includes(by) ? by : bys[0], tab: Object.hasOwn(TABLES, tab) ? tab : "holders", name: words.get("name") || "",
    fit: words.get("fit") === "true",
    stream: hashNumber(words, "stream", model.streamCount), thread: hashNumber(words, "thread", 2 ** 32),
    least: or(hashNumber(words, "least", 2 ** 53), 0), most: or(hashNumber(words, "most", 2 ** 53), Infinity),
    cursor: Math.floor(or(hashNumber(words, "at", events), model.peak_event)),
    compare: hashNumber(words, "vs", events), block: hashNumber(words, "block", model.blocks)};
  Object.assign(part, limitView(or(hashNumber(words, "from", events), 0), or(hashNumber(words, "to", events + 1), events)));
  Object.assign(app.state, part);
  regroupBlocks();
  app.state.key = hashNumber(words, "key", app.keys.count);
  showControls();
  schedule();
}

/* ---- drawing ---- */

function themeColours() {
  const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue("--" + name).trim();
  return {back: of("back"), text: of("text"), dim: of("dim"), line: of("line"), mark: of("mark"), accent: of("accent")};
}

function drawPicture(surface, size) {
  const {model, series, state} = app, view = {from: state.from, to: state.to, events: model.events, fit: state.fit};
  const moments = [{event: state.cursor}];
  if (state.compare !== null) moments.push({event: state.compare, dash: [4, 3]});
  drawTimeline(surface, size, model, series, view, moments, themeColours());
}

function drawLegend() {
  const {model, series, state} = app, bytes = new Float64Array(series.count);
  if (model.events) groupsAt(model, series, state.cursor, bytes);
  byId("legend").replaceChildren(...series.names.map((name, g) => {
    const item = makeElement("li"), colour = item.appendChild(makeElement("span"));
    colour.style.background = COLOURS[g];
    item.appendChild(document.createTextNode(shortText(name, 60) + " " + bytesText(bytes[g])));
    return item;
  }));
}

function eventFacts(event) {
  const {model} = app, number = model.number[event];
  if (model.kind[event] === KIND.mark) return "mark " + shortText(model.marks[number], 80);
  const verb = model.kind[event] === KIND.alloc ? "allocates" : "frees";
  return verb + " block " + countText(number) + " of " + exactText(model.bytes[number]) + " on stream " + model.stream[event];
}

function drawMoment() {
  const {model, series, state} = app, element = byId("moment");
  if (model.events === 0) { element.textContent = "The recording has no events."; return; }
  const time = model.time ? ", at " + timeText(model.time[state.cursor]) : "";
  const held = model.reserved ? ", reserved " + exactText(model.reserved[state.cursor]) : "";
  element.textContent = "Event " + eventText(model, state.cursor) + time + ": live " + exactText(series.live[state.cursor]) + held +
    "; in " + shortText(markName(model, markAt(model, state.cursor)), 80) + "; it " + eventFacts(state.cursor) + ".";
  if (model.kind[state.cursor] === KIND.mark) return;
  const block = model.number[state.cursor];
  element.append(" ", makeButton("Show the block", () => app.showBlock(block)));
}

function drawTable() {
  const {state} = app;
  for (const name of Object.keys(TABLES)) {
    byId("tab-" + name).setAttribute("aria-selected", String(name === state.tab));
    byId("tab-" + name).tabIndex = name === state.tab ? 0 : -1;
  }
  byId("panel").setAttribute("aria-labelledby", "tab-" + state.tab);
  byId("all-blocks").hidden = state.tab !== "blocks" || state.key === null;
  byId("compare-peak").hidden = state.compare === null;
  app.table = TABLES[state.tab](app);
  byId("panel-table").replaceChildren(makeTable(app.table));
  fillBlock(app, byId("block"), state.block);
}

function drawAll() {
  const timeline = beginCanvas(byId("timeline")), overview = beginCanvas(byId("overview")), {state, model, series} = app;
  drawPicture(timeline.surface, timeline.size);
  drawOverview(overview.surface, overview.size, model, series, {from: state.from, to: state.to}, themeColours());
  drawLegend();
  drawMoment();
  byId("fit").setAttribute("aria-pressed", String(state.fit));
  byId("filter-note").textContent = app.shown ? "Filtered: peak " + exactText(series.peak) : "";
  clearTimeout(app.timer);
  app.timer = setTimeout(drawTable, model.blocks > 1e6 ? 120 : 0);
}

/* ---- controls ---- */

function fillSelect(element, options, value) {
  element.replaceChildren(...options.map(([key, text]) => {
    const option = makeElement("option", text);
    option.value = key;
    return option;
  }));
  element.value = value;
}

function numbersOf(count, word) { return Array.from({length: Math.min(count, 4096)}, (_, i) => [String(i), word + " " + i]); }

function showControls() {
  const {model, state} = app, any = (value) => value === null ? "" : String(value);
  fillSelect(byId("group"), groupings(model), state.by);
  fillSelect(byId("filter-stream"), [["", "any"], ...numbersOf(model.streamCount, "stream")], any(state.stream));
  const threads = model.thread ? [...new Set(model.thread)].sort((a, b) => a - b) : [];
  byId("thread-label").hidden = !model.thread;
  fillSelect(byId("filter-thread"), [["", "any"], ...threads.map((t) => [String(t), "thread " + t])], any(state.thread));
  fillSelect(byId("mark-choice"), [["", "\u2026"], ...model.marks.slice(0, 5000).map((label, i) => [String(i), shortText(label, 60)])], "");
  byId("filter-name").value = state.name;
  byId("filter-least").value = state.least || "";
  byId("filter-most").value = state.most === Infinity ? "" : state.most;
}

function listenToSizes(id, key, empty) {
  byId(id).addEventListener("change", (event) => {
    const bytes = parseBytes(event.target.value, empty);
    event.target.setAttribute("aria-invalid", String(Number.isNaN(bytes)));
    if (!Number.isNaN(bytes)) change({[key]: bytes});
  });
}

function listenToFilters() {
  const number = (text) => text === "" ? null : Number(text);
  byId("group").addEventListener("change", (event) => change({by: event.target.value}));
  byId("filter-stream").addEventListener("change", (event) => change({stream: number(event.target.value)}));
  byId("filter-thread").addEventListener("change", (event) => change({thread: number(event.target.value)}));
  byId("filter-name").addEventListener("change", (event) => change({name: event.target.value}));
  listenToSizes("filter-least", "least", 0);
  listenToSizes("filter-most", "most", Infinity);
  byId("filter-clear").addEventListener("click", () => {
    change({stream: null, thread: null, name: "", least: 0, most: Infinity});
    showControls();
  });
}

const ACTIONS = {
  "zoom-in": () => zoomView(0.5, app.state.cursor), "zoom-out": () => zoomView(2, app.state.cursor),
  "zoom-all": () => change(limitView(0, app.model.events)), "to-peak": () => app.goTo(app.series.peakAt),
  "mark-before": () => goToMark(-1), "mark-after": () => goToMark(1), "theme": changeTheme,
  "fit": () => change({fit: !app.state.fit}),
  "save-svg": () => saveFile("report.svg", "image/svg+xml", svgOf(drawPicture, {width: 1200, height: 360})),
  "save-csv": () => saveFile("report-" + app.state.tab + ".csv", "text/csv", csvOf(app.table)),
  "compare-here": () => change({compare: app.state.cursor}), "compare-peak": () => change({compare: null}),
  "all-blocks": () => change({key: null}),
};

function changeTheme() {
  const root = document.documentElement, dark = getComputedStyle(root).colorScheme === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  schedule();
}

function moveCursor(pixels, exact) {
  const {state, model} = app, width = plotOf(byId("timeline").clientWidth, 1).width;
  const step = exact ? 1 : Math.max(1, Math.round((state.to - state.from) / width));
  app.goTo(Math.min(Math.max(state.cursor + pixels * step, 0), Math.max(model.events - 1, 0)));
}

const KEYS = {"+": "zoom-in", "=": "zoom-in", "-": "zoom-out", "0": "zoom-all", "p": "to-peak", "[": "mark-before",
  "]": "mark-after", "d": "theme", "f": "fit", "c": "compare-here"};

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") moveCursor(event.key === "ArrowLeft" ? -1 : 1, event.shiftKey);
  else if (event.key === "PageUp" || event.key === "PageDown") panView(event.key === "PageUp" ? -0.5 : 0.5);
  else if (event.key === "Home") app.goTo(0);
  else if (event.key === "End") app.goTo(Math.max(app.model.events - 1, 0));
  else if (Object.hasOwn(KEYS, event.key)) ACTIONS[KEYS[event.key]]();
  else return;
  event.preventDefault();
}

/* ---- the mouse ---- */

/* The event under the pointer, of a view. */
function eventUnder(canvas, pointer, view) {
  const box = canvas.getBoundingClientRect(), plot = plotOf(box.width, 1), share = (pointer.clientX - box.left - plot.left) / plot.width;
  return Math.floor(Math.min(Math.max(view.from + share * (view.to - view.from), view.from), view.to - 1));
}

function listenToTimeline(canvas) {
  let drag = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomView(event.deltaY < 0 ? 0.8 : 1.25, eventUnder(canvas, event, app.state));
  }, {passive: false});
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = {x: event.clientX, from: app.state.from, to: app.state.to, moved: false};
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag || (!drag.moved && Math.abs(event.clientX - drag.x) < 4)) return;
    drag.moved = true;
    const shift = (drag.x - event.clientX) / plotOf(canvas.clientWidth, 1).width * (drag.to - drag.from);
    change(limitView(drag.from + shift, drag.to + shift));
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved && app.model.events) change({cursor: eventUnder(canvas, event, app.state)});
    drag = null;
  });
}

function listenToOverview(canvas) {
  const move = (event) => {
    if (event.buttons === 0) return;
    const at = eventUnder(canvas, event, {from: 0, to: app.model.events}), half = (app.state.to - app.state.from) / 2;
    change(limitView(at - half, at + half));
  };
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); move(event); });
  canvas.addEventListener("pointermove", move);
}

function listenToTabs() {
  const names = Object.keys(TABLES);
  names.forEach((name, place) => {
    const tab = byId("tab-" + name);
    tab.addEventListener("click", () => change({tab: name}));
    tab.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (step === 0) return;
      const next = names[(place + step + names.length) % names.length];
      change({tab: next});
      byId("tab-" + next).focus();
    });
  });
}

/* ---- the begin ---- */

function showSummary() {
  const {model} = app, range = model.before > 0 || model.carried > 0 ? " A range: " + countText(model.before) +
    " events before it were left out, " + countText(model.carried) + " blocks were alive then." : "";
  document.title = "Memory report: " + cleanText(model.name);
  byId("name").textContent = cleanText(model.name);
  byId("summary").textContent = countText(model.events - model.carried) + " events, " + countText(model.blocks) + " blocks of " +
    countText(model.sizes.length) + " sizes, " + countText(model.marks.length) + " marks. Peak " + exactText(model.peak_bytes) +
    " at event " + eventText(model, model.peak_event) + "; alive at the end " + exactText(model.end_bytes) + " in " +
    countText(model.end_blocks) + " blocks." + range;
}

/* Figures that the tool wrote and those that the page has found must be the same. */
function checkFigures() {
  const {model, series} = app, end = model.events ? series.live[model.events - 1] : 0;
  if (app.shown || (series.peak === model.peak_bytes && end === model.end_bytes)) return;
  throw new Error("the figures of this page do not agree with its events");
}

function listen() {
  for (const id of Object.keys(ACTIONS)) byId(id).addEventListener("click", ACTIONS[id]);
  listenToFilters();
  listenToTimeline(byId("timeline"));
  listenToOverview(byId("overview"));
  listenToTabs();
  byId("timeline").addEventListener("keydown", onKey);
  byId("mark-choice").addEventListener("change", (event) => {
    if (event.target.value) app.goTo(app.model.markEvent[Number(event.target.value)]);
  });
  window.addEventListener("resize", schedule);
  window.addEventListener("hashchange", () => { if (location.hash !== app.hash) readHash(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", schedule);
}

async function begin() {
  app.model = makeModel(splitData(await readData()));
  listen();
  document.querySelector("main").hidden = false;
  readHash();
  checkFigures();
  showSummary();
  drawAll();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

begin().catch((error) => {
  byId("failure").hidden = false;
  byId("failure").textContent = "This page cannot be shown: " + error.message;
});
