/* The picture: one query for each column of pixels, so it is exact at every zoom. */

const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f5fb5", "#8d939e"]; // Okabe and Ito
const EDGE = {left: 74, right: 8, top: 22, bottom: 20};

/* The events that a column of pixels stands for, at least one. */
function columnEvents(view, width, x) {
  const span = view.to - view.from;
  const from = Math.min(Math.floor(view.from + x * span / width), view.events - 1);
  return [from, Math.min(Math.max(from + 1, Math.floor(view.from + (x + 1) * span / width)), view.events)];
}

/* For each column its least and highest bytes, and the bytes by group at the highest moment. */
function measureColumns(model, series, view, width) {
  const columns = {width, min: new Float64Array(width), max: new Float64Array(width), at: new Uint32Array(width),
    groups: new Float64Array(width * series.count), held: null, least: Infinity, most: 0};
  const reserved = series.reserved;
  if (reserved) columns.held = new Float64Array(width);
  for (let x = 0; x < width; x++) {
    const [from, to] = columnEvents(view, width, x), range = rangeOf(series.levels, from, to);
    columns.min[x] = range.min;
    columns.max[x] = range.max;
    columns.at[x] = range.at;
    groupsAt(model, series, range.at, columns.groups.subarray(x * series.count, (x + 1) * series.count));
    if (reserved) columns.held[x] = rangeOf(reserved, from, to).max;
    columns.least = Math.min(columns.least, range.min);
    columns.most = Math.max(columns.most, range.max, reserved ? columns.held[x] : 0);
  }
  return columns;
}

/* A round step in bytes for about four lines. */
function byteStep(most) {
  let step = 1;
  while (step * 5 < most) step *= 2;
  return step;
}

/* The marks of a view: [number, first column, last column], not more than one for each column. */
function marksInView(model, view, width) {
  const out = [], scale = width / (view.to - view.from);
  let last = -1;
  for (let k = markAt(model, view.from); k <= model.marks.length; k++) {
    const begin = k ? model.markEvent[k - 1] : 0, end = k < model.marks.length ? model.markEvent[k] : model.events;
    if (begin >= view.to) break;
    const x = Math.max(0, Math.floor((begin - view.from) * scale)), to = Math.min(width, Math.floor((end - view.from) * scale));
    if (x === last && to <= x + 1) continue;
    out.push([k, x, to]);
    last = x;
  }
  return out;
}

/* A surface is a canvas or an SVG: rect, line, text. */
function canvasSurface(context) {
  return {
    rect(x, y, width, height, colour) { context.fillStyle = colour; context.fillRect(x, y, width, height); },
    line(x1, y1, x2, y2, colour, dash) {
      context.strokeStyle = colour;
      context.setLineDash(dash || []);
      context.beginPath();
      context.moveTo(x1 + 0.5, y1 + 0.5);
      context.lineTo(x2 + 0.5, y2 + 0.5);
      context.stroke();
    },
    text(x, y, text, colour, align) {
      context.fillStyle = colour;
      context.textAlign = align === "end" ? "right" : "left";
      context.fillText(text, x, y);
    },
  };
}

function svgSurface(svg) {
  const add = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key of Object.keys(attributes)) element.setAttribute(key, attributes[key]);
    if (text) element.textContent = text;
    svg.appendChild(element);
  };
  const round = (value) => Math.round(value * 100) / 100;
  return {
    rect(x, y, width, height, fill) { add("rect", {x: round(x), y: round(y), width: round(width), height: round(height), fill}); },
    line(x1, y1, x2, y2, stroke, dash) {
      add("line", {x1, y1: round(y1), x2, y2: round(y2), stroke, "stroke-dasharray": (dash || []).join(" ")});
    },
    text(x, y, text, fill, align) { add("text", {x, y: round(y), fill, "text-anchor": align || "start"}, text); },
  };
}

function drawMarks(surface, plot, model, view, theme) {
  for (const [mark, from, to] of marksInView(model, view, plot.width)) {
    if (mark % 2) surface.rect(plot.left + from, 0, to - from, plot.top + plot.height, theme.mark);
    const room = Math.floor((to - from - 6) / 6.6);
    if (room >= 3) surface.text(plot.left + from + 4, 14, shortText(markName(model, mark), room), theme.dim);
  }
}

/* Bytes to pixels: from 0, or with `fit` from a little below the least of the view. */
function makeScale(plot, columns, fit) {
  const low = fit ? Math.max(0, columns.least - (columns.most - columns.least) * 0.1) : 0;
  const high = low + Math.max(columns.most - low, 1) * 1.05;
  return {low, high, y: (bytes) => plot.bottom - Math.max(0, bytes - low) / (high - low) * plot.height};
}

function drawAxes(surface, plot, model, view, scale, theme) {
  const step = byteStep(scale.high - scale.low);
  for (let bytes = Math.ceil(scale.low / step) * step; bytes <= scale.high; bytes += step) {
    const y = scale.y(bytes);
    surface.line(plot.left, Math.round(y), plot.left + plot.width, Math.round(y), theme.line);
    surface.text(plot.left - 6, y + 4, bytesText(bytes), theme.dim, "end");
  }
  for (let part = 0; part <= 4; part++) {
    const event = Math.min(Math.floor(view.from + (view.to - view.from) * part / 4), view.events - 1);
    const x = plot.left + plot.width * part / 4;
    surface.text(Math.min(x, plot.left + plot.width - 90), plot.bottom + 15, "event " + eventText(model, event), theme.dim);
  }
}

function drawColumns(surface, plot, columns, series, scale, theme) {
  const sums = new Float64Array(columns.width);
  for (let g = 0; g < series.count; g++) {
    for (let x = 0; x < columns.width; x++) {
      const from = scale.y(sums[x]), to = scale.y(sums[x] += columns.groups[x * series.count + g]);
      if (to < from) surface.rect(plot.left + x, to, 1, from - to, COLOURS[g]);
    }
  }
  for (let x = 0; x < columns.width; x++) {
    if (columns.min[x] < columns.max[x]) surface.rect(plot.left + x, scale.y(columns.min[x]) - 1, 1, 1, theme.text);
    if (columns.held) surface.rect(plot.left + x, scale.y(columns.held[x]) - 1, 1, 2, theme.accent);
  }
}

function eventColumn(plot, view, event) {
  return plot.left + Math.floor((event + 0.5 - view.from) / (view.to - view.from) * plot.width);
}

function drawMoments(surface, plot, view, moments, theme) {
  for (const {event, dash} of moments) {
    const x = eventColumn(plot, view, event);
    if (x >= plot.left && x <= plot.left + plot.width) surface.line(x, 0, x, plot.bottom, theme.text, dash);
  }
}

function plotOf(width, height) {
  const plot = {left: EDGE.left, top: EDGE.top, width: Math.max(1, Math.floor(width - EDGE.left - EDGE.right)),
    height: height - EDGE.top - EDGE.bottom};
  plot.bottom = plot.top + plot.height;
  return plot;
}

function drawTimeline(surface, size, model, series, view, moments, theme) {
  const plot = plotOf(size.width, size.height);
  surface.rect(0, 0, size.width, size.height, theme.back);
  if (model.events === 0) return;
  const columns = measureColumns(model, series, view, plot.width), scale = makeScale(plot, columns, view.fit);
  drawMarks(surface, plot, model, view, theme);
  drawAxes(surface, plot, model, view, scale, theme);
  drawColumns(surface, plot, columns, series, scale, theme);
  drawMoments(surface, plot, view, moments, theme);
}

/* All events, and a frame around those of the view. */
function drawOverview(surface, size, model, series, view, theme) {
  const width = Math.max(1, Math.floor(size.width - EDGE.left - EDGE.right)), whole = {from: 0, to: model.events, events: model.events};
  surface.rect(0, 0, size.width, size.height, theme.back);
  if (model.events === 0) return;
  const from = EDGE.left + view.from / model.events * width, to = EDGE.left + view.to / model.events * width;
  surface.rect(from, 0, Math.max(2, to - from), size.height, theme.mark);
  for (let x = 0; x < width; x++) {
    const [first, end] = columnEvents(whole, width, x);
    const height = rangeOf(series.levels, first, end).max / Math.max(series.peak, 1) * (size.height - 4);
    surface.rect(EDGE.left + x, size.height - height, 1, height, theme.dim);
  }
  surface.rect(from, 0, 2, size.height, theme.accent);
  surface.rect(Math.max(from, to - 2), 0, 2, size.height, theme.accent);
}

/* A canvas in the pixels of the screen. */
function beginCanvas(canvas) {
  const size = {width: canvas.clientWidth, height: canvas.clientHeight}, scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(size.width * scale);
  canvas.height = Math.round(size.height * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  return {size, surface: canvasSurface(context)};
}

function svgOf(draw, size) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 " + size.width + " " + size.height);
  svg.setAttribute("font-size", "11");
  svg.setAttribute("font-family", "sans-serif");
  draw(svgSurface(svg), size);
  return new XMLSerializer().serializeToString(svg);
}
