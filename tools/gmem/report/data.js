"use strict";
/* From the text in the page to columns. page_data.h describes the bytes. */

const KIND = {alloc: 0, free: 1, mark: 2};
const NEVER = 0xffffffff; // the death of a block that lives at the end

async function readData() {
  const element = document.getElementById("data");
  const packed = element.dataset.packed === "deflate";
  let answer = await fetch("data:application/octet-stream;base64," + element.textContent);
  element.textContent = "";
  if (packed) answer = new Response(answer.body.pipeThrough(new DecompressionStream("deflate")));
  return new Uint8Array(await answer.arrayBuffer());
}

function splitData(bytes) {
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const columns = {};
  let at = 4 + length;
  for (const column of head.columns) {
    columns[column.name] = bytes.subarray(at, at + column.bytes);
    at += column.bytes;
  }
  if (at !== bytes.length) throw new Error("the data of this page is not whole");
  return {head, columns};
}

/* Fills `out` with numbers of 7 bits a byte. Sums stay exact up to 2^53. */
function readNumbers(bytes, out) {
  for (let i = 0, at = 0; i < out.length; i++) {
    let value = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    out[i] = value;
  }
  return out;
}

/* Each block's bytes: the next size of the list, or an earlier one. */
function readSizes(columns, blocks) {
  const place = readNumbers(columns.size || [], new Uint32Array(blocks));
  let distinct = 0;
  for (let i = 0; i < blocks; i++) if (place[i] === 0) distinct++;
  const sizes = readNumbers(columns.sizes || [], new Float64Array(distinct));
  const bytes = new Float64Array(blocks);
  for (let i = 0, next = 0; i < blocks; i++) {
    if (place[i] === 0) place[i] = ++next;
    bytes[i] = sizes[--place[i]];
  }
  return {bytes, sizes, sizeOf: place};
}

/* The life of each block, and the number of each event's block or mark. */
function readEvents(model, columns) {
  const frees = readNumbers(columns.free || [], new Uint32Array(model.events - model.blocks - model.marks.length));
  let blocks = 0, marks = 0, freed = 0;
  for (let i = 0; i < model.events; i++) {
    const kind = model.kind[i];
    if (kind === KIND.alloc) {
      model.born[blocks] = i;
      model.number[i] = blocks++;
    } else if (kind === KIND.free) {
      model.number[i] = blocks - 1 - frees[freed++];
      model.died[model.number[i]] = i;
    } else {
      model.markEvent[marks] = i;
      model.number[i] = marks++;
    }
  }
}

function readStreams(model, column) {
  const steps = readNumbers(column, new Uint32Array(model.events - model.marks.length));
  for (let i = 0, at = 0, stream = 0; i < model.events; i++) {
    if (model.kind[i] === KIND.mark) continue;
    if (steps[at] > 0) stream = steps[at] - 1;
    model.stream[i] = stream;
    if (stream >= model.streamCount) model.streamCount = stream + 1;
    at++;
  }
}

/* Numbers that are changes from event to event. */
function readSums(column, events, signed) {
  const out = readNumbers(column, new Float64Array(events));
  for (let i = 0, sum = 0; i < events; i++) {
    sum += !signed ? out[i] : out[i] % 2 ? -(out[i] + 1) / 2 : out[i] / 2;
    out[i] = sum;
  }
  return out;
}

function makeModel({head, columns}) {
  const {events, blocks} = head;
  const model = {...head, ...readSizes(columns, blocks),
    kind: columns.kind || new Uint8Array(0), number: new Uint32Array(events), stream: new Uint16Array(events),
    born: new Uint32Array(blocks), died: new Uint32Array(blocks).fill(NEVER),
    markEvent: new Uint32Array(head.marks.length), streamCount: 1, thread: null, tag: null, time: null, reserved: null};
  readEvents(model, columns);
  if (columns.stream) readStreams(model, columns.stream);
  if (columns.thread) model.thread = readNumbers(columns.thread, new Uint32Array(events));
  if (columns.tag) model.tag = readNumbers(columns.tag, new Uint32Array(blocks));
  if (columns.time) model.time = readSums(columns.time, events, false);
  if (columns.reserved) model.reserved = readSums(columns.reserved, events, true);
  return model;
}

/* ---- texts ---- */

/* Control characters, and those that turn the direction of text, are shown by their numbers. */
function cleanText(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (sign) => "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0"));
}

function shortText(text, most) {
  const clean = cleanText(text);
  return clean.length > most ? clean.slice(0, most - 1) + "\u2026" : clean;
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0, value = Math.abs(bytes);
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  const digits = unit === 0 || value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  return (bytes < 0 ? "-" : "") + value.toFixed(digits) + " " + units[unit];
}

function exactText(bytes) {
  return Math.abs(bytes) < 1024 ? bytes + " B" : bytesText(bytes) + " (" + countText(bytes) + " B)";
}

function countText(count) { return String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f"); }

/* "2M" and plain bytes; NaN: neither; `empty` for no text. */
function parseBytes(text, empty) {
  const match = /^([0-9]+(?:\.[0-9]+)?) *([kmgt]?)(?:i?b)?$/i.exec(text.trim());
  if (!text.trim()) return empty;
  return match ? Number(match[1]) * 1024 ** " kmgt".indexOf((match[2] || " ").toLowerCase()) : NaN;
}

/* The number of an event in the recording: a page of a range does not begin at its first. */
function eventText(model, event) {
  if (event < model.carried) return "before the range";
  return countText(event - model.carried + model.before);
}

function timeText(nanoseconds) {
  const units = ["ns", "\u00b5s", "ms", "s"];
  let unit = 0;
  for (; nanoseconds >= 1000 && unit < 3; unit++) nanoseconds /= 1000;
  return nanoseconds.toFixed(unit ? 3 : 0) + " " + units[unit];
}
