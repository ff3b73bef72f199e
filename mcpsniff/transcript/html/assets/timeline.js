// The timeline: a bar for each exchange. Requests that overlap lie one above the other; long silences are drawn short.

const canvas = $("timeline").querySelector("canvas");
const TRACK = 11, BAR = 8, AXIS = 20, SIDE = 6, QUIET = 12, MOST_TRACKS = 14;
const end = [...bars, ...streams].reduce((latest, bar) => Math.max(latest, bar.t + bar.took), 1);

/** Lay overlapping bars on tracks of their own, as far as there are tracks; returns how many were taken. */
function stack(these) {
  const ends = [];
  for (const bar of these) {
    let track = ends.findIndex((taken) => taken <= bar.t);
    if (track < 0) track = ends.length < MOST_TRACKS ? ends.length : MOST_TRACKS - 1;
    ends[track] = Math.max(ends[track] ?? 0, bar.t + bar.took);
    bar.track = track;
  }
  return ends.length;
}

bars.sort((one, other) => one.t - other.t);
const tracks = [stack(bars.filter((bar) => !bar.byServer)), stack(bars.filter((bar) => bar.byServer))];
const noises = [];
const webs = []; // what HTTP says besides the messages, in a lane of its own
const isFailed = (bar) => bar.state === "errored" || (bar.state === "answered" && $(`n${bar.last}`)?.classList.contains("bad"));
for (const bar of bars) {
  bar.colour = isFailed(bar) ? "failed" : bar.state === "cancelled" ? "cancelled"
    : ["abandoned", "refused", "open", "unseen"].includes(bar.state) ? "unanswered" : bar.byServer ? "server" : "client";
}

/**
 * Silences longer than a twentieth of what is left without them; each becomes a short piece of the axis. While a
 * request waits for the answer that comes it is not silent; one that is never answered would make the session of it.
 */
const silences = (() => {
  const gaps = [];
  let until = 0;
  for (const bar of [...bars, { t: end, took: 0, colour: "" }]) {
    if (bar.t > until) gaps.push({ from: until, to: bar.t });
    until = Math.max(until, bar.colour === "unanswered" ? bar.t : bar.t + bar.took);
  }
  gaps.sort((one, other) => other.to - other.from - (one.to - one.from));
  const kept = [];
  let left = end;
  for (const gap of gaps.slice(0, 200)) {
    if (gap.to - gap.from < 1e6 || gap.to - gap.from < (left - (gap.to - gap.from)) / 20) break;
    kept.push(gap);
    left -= gap.to - gap.from;
  }
  for (const gap of kept) gap.short = Math.max(left / 60, 1);
  return kept.sort((one, other) => one.from - other.from);
})();
const squeezed = (t) => silences.reduce((sum, { from, to, short }) =>
  t <= from ? sum : sum - (Math.min(t, to) - from) * (1 - short / (to - from)), t);
const total = squeezed(end);
for (const bar of bars) {
  bar.left = squeezed(bar.t);
  bar.right = squeezed(bar.t + bar.took);
}
function stretched(x) {
  let lost = 0;
  for (const { from, to, short } of silences) {
    const start = from - lost;
    if (x <= start) break;
    if (x < start + short) return from + ((x - start) / short) * (to - from);
    lost += to - from - short;
  }
  return x + lost;
}

let view = [0, total];
let chosen = null;
let drag = null;
const height = () => AXIS + (tracks[0] + tracks[1]) * TRACK + 3 * SIDE + QUIET + (webs.length ? QUIET : 0);
const top = (bar) => AXIS + SIDE + (bar.byServer ? tracks[0] * TRACK + SIDE : 0) + bar.track * TRACK;
const place = (x) => ((x - view[0]) / (view[1] - view[0])) * canvas.clientWidth;
const back = (px) => view[0] + (px / canvas.clientWidth) * (view[1] - view[0]);

function colours() {
  const found = { ink: getComputedStyle($("told")).color, rule: getComputedStyle(canvas).borderTopColor, strong: getComputedStyle(document.body).color };
  for (const one of document.querySelectorAll("#legend i")) found[one.className] = getComputedStyle(one).backgroundColor;
  return found;
}

function draw() {
  const scale = window.devicePixelRatio || 1, wide = canvas.clientWidth, tall = height();
  canvas.style.height = `${tall}px`;
  canvas.width = Math.round(wide * scale);
  canvas.height = Math.round(tall * scale);
  const pen = canvas.getContext("2d"), colour = colours();
  pen.scale(scale, scale);
  pen.font = "11px system-ui, sans-serif";
  drawAxis(pen, colour, wide, tall);
  // What went wrong is drawn last, so that nothing hides it.
  for (const which of ["client", "server", "cancelled", "unanswered", "failed"]) {
    pen.fillStyle = colour[which];
    for (const bar of bars) {
      if (bar.colour !== which || bar.right < view[0] || bar.left > view[1]) continue;
      const x = place(bar.left);
      pen.fillRect(x, top(bar), Math.max(place(bar.right) - x - 0.5, 1.6), BAR);
    }
  }
  pen.fillStyle = colour.web;
  pen.globalAlpha = 0.35;
  for (const { t, took } of streams) {
    const x = place(squeezed(t));
    pen.fillRect(x, tall - 2 * QUIET, Math.max(place(squeezed(t + took)) - x, 1.6), BAR);
  }
  pen.globalAlpha = 1;
  for (const t of webs) pen.fillRect(place(squeezed(t)), tall - 2 * QUIET, 1.6, BAR);
  pen.fillStyle = colour.quiet;
  for (const t of noises) pen.fillRect(place(squeezed(t)), tall - QUIET, 1.6, BAR);
  if (chosen) {
    pen.strokeStyle = colour.strong;
    pen.lineWidth = 1.5;
    pen.strokeRect(place(chosen.left) - 1.5, top(chosen) - 1.5, Math.max(place(chosen.right) - place(chosen.left), 1.6) + 3, BAR + 3);
  }
  if (drag && drag.moved) {
    pen.globalAlpha = 0.15;
    pen.fillStyle = colour.strong;
    pen.fillRect(Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), tall);
    pen.globalAlpha = 1;
  }
}

function drawAxis(pen, colour, wide, tall) {
  pen.fillStyle = colour.rule;
  for (const { from, to } of silences) {
    const x = place(squeezed(from)), width = place(squeezed(to)) - x;
    pen.globalAlpha = 0.5;
    pen.fillRect(x, AXIS, width, tall - AXIS);
    pen.globalAlpha = 1;
  }
  const steps = Math.max(2, Math.floor(wide / 130));
  for (let i = 0; i < steps; i++) {
    const x = (i / steps) * wide;
    pen.fillStyle = colour.rule;
    pen.fillRect(x, 0, 1, tall);
    pen.fillStyle = colour.ink;
    pen.fillText(`${moment(stretched(back(x)))} s`.replace(/(:.*) s$/, "$1"), x + 5, 14);
  }
}

/** The bar at a point, or the nearest on its track within a few pixels. */
function barAt(x, y) {
  let best = null, nearest = 6;
  for (const bar of bars) {
    if (bar.right < view[0] || bar.left > view[1] || y < top(bar) - 2 || y > top(bar) + BAR + 2) continue;
    const left = place(bar.left), right = Math.max(place(bar.right), left + 2);
    const away = x < left ? left - x : x > right ? x - right : 0;
    if (away < nearest) {
      nearest = away;
      best = bar;
    }
  }
  return best;
}

function tell(bar) {
  chosen = bar;
  if (bar) {
    const row = rowOf(bar.request);
    const parts = row ? [...lineOf(row).children] : [];
    const name = parts.filter((one) => one.tagName === "B" || one.tagName === "EM").map((one) => one.textContent).join(" ");
    const id = parts.filter((one) => one.tagName === "I" && one.textContent.startsWith("id ")).at(-1)?.textContent;
    const took = bar.state === "answered" || bar.state === "errored" || bar.state === "input-required" ? duration(bar.took) : `after ${duration(bar.took)}`;
    $("told").textContent = `#${bar.request} ${name}${id ? `, ${id}` : ""}: ${bar.state} ${took}, at ${moment(bar.t)}${bar.byServer ? ", asked by the server" : ""}`;
  }
  draw();
}

function zoom(factor, around = (view[0] + view[1]) / 2) {
  const span = Math.min(Math.max((view[1] - view[0]) * factor, 20), total);
  const share = (around - view[0]) / (view[1] - view[0]);
  look(around - share * span, span);
}
function look(from, span) {
  const start = Math.min(Math.max(from, 0), total - span);
  view = [start, start + span];
  draw();
}
function step(by) {
  const at = chosen ? bars.indexOf(chosen) + by : by > 0 ? 0 : bars.length - 1;
  const bar = bars[Math.min(Math.max(at, 0), bars.length - 1)];
  if (bar.left < view[0] || bar.right > view[1]) look(bar.left - (view[1] - view[0]) / 2, view[1] - view[0]);
  tell(bar);
}

canvas.addEventListener("pointerdown", (event) => {
  drag = { from: event.offsetX, to: event.offsetX, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (drag) {
    drag.to = event.offsetX;
    drag.moved ||= Math.abs(drag.to - drag.from) > 5;
    if (drag.moved) draw();
    return;
  }
  const bar = barAt(event.offsetX, event.offsetY);
  canvas.style.cursor = bar ? "pointer" : "crosshair";
  if (bar !== chosen && bar) tell(bar);
});
canvas.addEventListener("pointerup", (event) => {
  const was = drag;
  drag = null;
  if (was && was.moved) {
    const [from, to] = [back(Math.min(was.from, was.to)), back(Math.max(was.from, was.to))];
    look(from, Math.max(to - from, 20));
    return;
  }
  const bar = barAt(event.offsetX, event.offsetY);
  if (bar) visit(rowOf(bar.request), { record: true });
});
canvas.addEventListener("pointercancel", () => (drag = null));
canvas.addEventListener("dblclick", () => look(0, total));
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, back(event.offsetX));
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  const act = {
    ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => tell(bars[0]), End: () => tell(bars.at(-1)),
    "+": () => zoom(0.5, chosen?.left), "-": () => zoom(2, chosen?.left), 0: () => look(0, total),
    Enter: () => chosen && visit(rowOf(chosen.request), { record: true }),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
});
for (const [i, act] of [() => zoom(0.5), () => zoom(2), () => look(view[0] - (view[1] - view[0]) / 2, view[1] - view[0]),
  () => look(view[0] + (view[1] - view[0]) / 2, view[1] - view[0]), () => look(0, total)].entries()) {
  $("zoom").children[i].addEventListener("click", act);
}

if (bars.length) {
  $("timeline").hidden = false;
  document.querySelector("#legend .silence").parentNode.hidden = silences.length === 0;
  for (const item of document.querySelectorAll("li.http")) webs.push(instant(lineOf(item).querySelector("i").textContent));
  document.querySelector("#legend .web").parentNode.hidden = webs.length === 0;
  for (const item of document.querySelectorAll("li.stderr")) noises.push(instant(item.querySelector("i").textContent));
  draw();
  new ResizeObserver(draw).observe(canvas.parentNode);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
