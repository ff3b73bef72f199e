// Small helpers. Nothing here or anywhere in this script makes markup: text goes in as text.

const $ = (id) => document.getElementById(id);
const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** An element with a class and a text; both may be empty. */
function element(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  return made;
}

/** Microseconds as `85 µs`, `1.2 ms`, `3.4 s` or `2 min 5 s`, as the rows have them. */
function duration(us) {
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 99950) return `${(us / 1000).toFixed(1)} ms`;
  if (us < 999500) return `${(us / 1000).toFixed(0)} ms`;
  if (us < 59950000) return `${(us / 1e6).toFixed(1)} s`;
  const seconds = Math.round(us / 1e6);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** Microseconds since the start as `12.345` or `1:02.345`. */
function moment(us) {
  const all = Math.floor(us / 1000);
  const seconds = (all % 60000) / 1000;
  const minutes = Math.floor(all / 60000);
  if (!minutes) return seconds.toFixed(3);
  const rest = seconds.toFixed(3).padStart(6, "0");
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}

/** The microseconds of such a moment. */
const instant = (text) => Math.round(text.split(":").reduce((sum, part) => sum * 60 + Number(part), 0) * 1e6);

const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]/gu;

/** JSON text with everything that does not show as itself spelt as an escape, as `visible_json` in safe.py does. */
function visible(text) {
  return text.replace(UNSEEN, (found, at, whole) => {
    if ((found === "\u200d" || found === "\ufe0f") && /\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]?$/u.test(whole.slice(Math.max(at - 4, 0), at))) return found;
    const short = { "\t": "\\t", "\n": "\\n", "\r": "\\r" }[found];
    return short ?? [...Array(found.length).keys()].map((i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
  });
}
