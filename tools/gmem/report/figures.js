/* Figures of the model: groups of blocks, what lives when, what grows. No function here draws. */

const HIDDEN = 255;    // the group of a block that the filter leaves out
const MOST_GROUPS = 8; // with a colour of their own; the rest is "other"
const CHECK = 256;     // events between two sums by group

/* ---- keys: what blocks are grouped by ---- */

/* The mark in force at an event: its number + 1, or 0 before the first. */
function markAt(model, event) {
  let low = 0, high = model.markEvent.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (model.markEvent[middle] <= event) low = middle + 1; else high = middle;
  }
  return low;
}

function markName(model, number) {
  if (number > 0) return model.marks[number - 1];
  return model.before > 0 ? "before the range" : "before the first mark";
}

function keysByMark(model) {
  const key = new Uint32Array(model.blocks);
  for (let i = 0, mark = 0; i < model.blocks; i++) {
    while (mark < model.markEvent.length && model.markEvent[mark] <= model.born[i]) mark++;
    key[i] = mark;
  }
  return {key, count: model.marks.length + 1, name: (k) => markName(model, k)};
}

function keysByBirth(model, column, word) {
  const key = new Uint32Array(model.blocks);
  let count = 1;
  for (let i = 0; i < model.blocks; i++) {
    key[i] = column[model.born[i]];
    if (key[i] >= count) count = key[i] + 1;
  }
  return {key, count, name: (k) => word + " " + k};
}

/* The choices, with the most telling one first. */
function groupings(model) {
  const all = [];
  if (model.tag) all.push(["tag", "tag"]);
  all.push(["mark", "mark of birth"], ["size", "size"]);
  if (model.streamCount > 1) all.push(["stream", "stream"]);
  if (model.thread) all.push(["thread", "thread"]);
  return all;
}

function makeKeys(model, by) {
  if (by === "tag") return {key: model.tag, count: model.tags.length, name: (k) => model.tags[k]};
  if (by === "stream") return keysByBirth(model, model.stream, "stream");
  if (by === "thread") return keysByBirth(model, model.thread, "thread");
  if (by === "size") return {key: model.sizeOf, count: model.sizes.length, name: (k) => exactText(model.sizes[k])};
  return keysByMark(model);
}

/* ---- the filter ---- */

/* The keys whose name has the text, as flags. */
function namesWith(keys, text) {
  const flags = new Uint8Array(keys.count);
  for (let k = 0; k < keys.count; k++) flags[k] = keys.name(k).toLowerCase().includes(text) ? 1 : 0;
  return flags;
}

/* A test of a block's number, or null: all pass. */
function makeFilter(model, filter) {
  const tests = [];
  if (filter.stream !== null) tests.push((i) => model.stream[model.born[i]] === filter.stream);
  if (filter.thread !== null && model.thread) tests.push((i) => model.thread[model.born[i]] === filter.thread);
  if (filter.least > 0) tests.push((i) => model.bytes[i] >= filter.least);
  if (filter.most < Infinity) tests.push((i) => model.bytes[i] <= filter.most);
  if (filter.name) {
    const text = filter.name.toLowerCase();
    const marks = makeKeys(model, "mark"), inMarks = namesWith(marks, text);
    const inTags = model.tag ? namesWith(makeKeys(model, "tag"), text) : null;
    tests.push((i) => inMarks[marks.key[i]] || (inTags && inTags[model.tag[i]]));
  }
  return tests.length ? (i) => tests.every((test) => test(i)) : null;
}

/* ---- live bytes over events ---- */

/* Levels of (min, max), each a fourth of the one below; the lowest is the values themselves. */
function makePyramid(values) {
  const levels = [{min: values, max: values}];
  for (let below = levels[0]; below.min.length > 4; levels.push(below)) {
    const count = Math.ceil(below.min.length / 4);
    const level = {min: new Float64Array(count), max: new Float64Array(count)};
    for (let i = 0; i < count; i++) {
      let min = Infinity, max = -Infinity;
      for (let k = 4 * i, end = Math.min(k + 4, below.min.length); k < end; k++) {
        if (below.min[k] < min) min = below.min[k];
        if (below.max[k] > max) max = below.max[k];
      }
      level.min[i] = min;
      level.max[i] = max;
    }
    below = level;
  }
  return levels;
}

/* The place of the first highest value below one item of a level. */
function placeOfMost(levels, level, index) {
  for (; level > 0; level--) {
    const below = levels[level - 1].max, wanted = levels[level].max[index];
    for (index *= 4; below[index] !== wanted;) index++;
  }
  return index;
}

/* Exact: the least and the highest value of [from, to), and where the highest is first. Values that are not empty. */
function rangeOf(levels, from, to) {
  let min = Infinity, max = -Infinity, bestLevel = 0, best = from;
  for (let i = from; i < to;) {
    let level = 0, size = 1;
    while (level + 1 < levels.length && i % (size * 4) === 0 && i + size * 4 <= to) {
      level++;
      size *= 4;
    }
    const at = i / size;
    if (levels[level].min[at] < min) min = levels[level].min[at];
    if (levels[level].max[at] > max) {
      max = levels[level].max[at];
      bestLevel = level;
      best = at;
    }
    i += size;
  }
  return {min, max, at: placeOfMost(levels, bestLevel, best)};
}

/* The keys that are largest at their own best moment. */
function largestKeys(model, keys, shown) {
  const now = new Float64Array(keys.count), most = new Float64Array(keys.count);
  for (let i = 0; i < model.events; i++) {
    if (model.kind[i] === KIND.mark) continue;
    const block = model.number[i], key = keys.key[block];
    if (shown && !shown[block]) continue;
    now[key] += model.kind[i] === KIND.alloc ? model.bytes[block] : -model.bytes[block];
    if (now[key] > most[key]) most[key] = now[key];
  }
  const order = [];
  for (let k = 0; k < keys.count; k++) if (most[k] > 0) order.push(k);
  order.sort((a, b) => most[b] - most[a] || a - b);
  return order;
}

/* Each block's group: the place of its key among the largest, MOST_GROUPS for other, or HIDDEN. */
function makeGroups(model, keys, shown) {
  const order = largestKeys(model, keys, shown);
  const groupOf = new Uint8Array(keys.count).fill(MOST_GROUPS);
  const names = order.slice(0, MOST_GROUPS).map(keys.name);
  order.slice(0, MOST_GROUPS).forEach((key, place) => { groupOf[key] = place; });
  if (order.length > MOST_GROUPS) names.push("other (" + countText(order.length - MOST_GROUPS) + ")");
  const group = new Uint8Array(model.blocks);
  for (let i = 0; i < model.blocks; i++) group[i] = shown && !shown[i] ? HIDDEN : groupOf[keys.key[i]];
  return {group, groupOf, names, count: names.length};
}

/* Live bytes after each event, of the blocks that the filter shows, and by group at every CHECK-th event. */
function makeSeries(model, keys, shown) {
  const groups = makeGroups(model, keys, shown), count = Math.max(groups.count, 1);
  const live = new Float64Array(model.events), now = new Float64Array(count);
  const checks = new Float64Array((Math.floor(model.events / CHECK) + 1) * count);
  for (let i = 0, sum = 0; i < model.events; i++) {
    if (i % CHECK === 0) checks.set(now, i / CHECK * count);
    const group = model.kind[i] === KIND.mark ? HIDDEN : groups.group[model.number[i]];
    if (group !== HIDDEN) {
      const bytes = model.kind[i] === KIND.alloc ? model.bytes[model.number[i]] : -model.bytes[model.number[i]];
      now[group] += bytes;
      sum += bytes;
    }
    live[i] = sum;
  }
  const levels = makePyramid(live);
  const whole = model.events ? rangeOf(levels, 0, model.events) : {min: 0, max: 0, at: 0};
  return {...groups, count, live, levels, checks, peak: whole.max, peakAt: whole.at};
}

/* Live bytes by group after an event, into `out`. */
function groupsAt(model, series, event, out) {
  const {group, checks, count} = series, check = Math.floor(event / CHECK);
  for (let g = 0; g < count; g++) out[g] = checks[check * count + g];
  for (let i = check * CHECK; i <= event; i++) {
    if (model.kind[i] === KIND.mark) continue;
    const block = model.number[i], place = group[block];
    if (place !== HIDDEN) out[place] += model.kind[i] === KIND.alloc ? model.bytes[block] : -model.bytes[block];
  }
  return out;
}

/* ---- tables ---- */

function livesAt(model, block, event) { return model.born[block] <= event && model.died[block] > event; }

function sumByKey(model, keys, shown, test) {
  const bytes = new Float64Array(keys.count), blocks = new Uint32Array(keys.count);
  for (let i = 0; i < model.blocks; i++) {
    if ((shown && !shown[i]) || !test(i)) continue;
    bytes[keys.key[i]] += model.bytes[i];
    blocks[keys.key[i]]++;
  }
  return {bytes, blocks};
}

/* Who holds the memory at the cursor and at another moment; the largest at the cursor first. */
function holders(model, keys, shown, cursor, other) {
  const now = sumByKey(model, keys, shown, (i) => livesAt(model, i, cursor));
  const then = sumByKey(model, keys, shown, (i) => livesAt(model, i, other));
  const rows = [];
  for (let k = 0; k < keys.count; k++) {
    if (!now.blocks[k] && !then.blocks[k]) continue;
    rows.push({key: k, bytes: now.bytes[k], blocks: now.blocks[k], otherBytes: then.bytes[k],
      otherBlocks: then.blocks[k]});
  }
  return rows.sort((a, b) => b.bytes - a.bytes || b.otherBytes - a.otherBytes || a.key - b.key);
}

/* Growth between two moments: what was allocated after the first and lives at the second, and what was freed. */
function growth(model, keys, shown, from, to) {
  const stays = sumByKey(model, keys, shown, (i) => model.born[i] > from && livesAt(model, i, to));
  const goes = sumByKey(model, keys, shown, (i) => livesAt(model, i, from) && model.died[i] <= to);
  const rows = [];
  for (let k = 0; k < keys.count; k++) {
    if (!stays.blocks[k] && !goes.blocks[k]) continue;
    rows.push({key: k, grown: stays.bytes[k], grownBlocks: stays.blocks[k], freed: goes.bytes[k],
      freedBlocks: goes.blocks[k], change: stays.bytes[k] - goes.bytes[k]});
  }
  return rows.sort((a, b) => b.change - a.change || b.grown - a.grown || a.key - b.key);
}

/* Sizes of the blocks that were born in [from, to), and how many events they lived. */
function sizesTable(model, shown, from, to) {
  const rows = new Map();
  for (let i = 0; i < model.blocks; i++) {
    if ((shown && !shown[i]) || model.born[i] < from || model.born[i] >= to) continue;
    let row = rows.get(model.sizeOf[i]);
    if (!row) {
      row = {size: model.bytes[i], blocks: 0, total: 0, never: 0, least: Infinity, most: 0, sum: 0};
      rows.set(model.sizeOf[i], row);
    }
    row.blocks++;
    row.total += row.size;
    const life = model.died[i] - model.born[i];
    if (model.died[i] === NEVER) { row.never++; continue; }
    row.sum += life;
    if (life < row.least) row.least = life;
    if (life > row.most) row.most = life;
  }
  return [...rows.values()].sort((a, b) => b.total - a.total || b.size - a.size);
}

/* The blocks that live at an event, of one key or of all (null); the largest first. */
function blocksAt(model, keys, shown, event, key) {
  const rows = [];
  for (let i = 0; i < model.blocks; i++) {
    if ((shown && !shown[i]) || !livesAt(model, i, event)) continue;
    if (key === null || keys.key[i] === key) rows.push(i);
  }
  return rows.sort((a, b) => model.bytes[b] - model.bytes[a] || a - b);
}
