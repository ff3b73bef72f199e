// Payloads are laid out from their own text when they are opened: every number and string keeps its spelling.

const WIDE = 92;
const COLOURED = 200000;
const LONGEST = 500000;
const DEEPEST = 32;

/** The token at `at`: its kind (one of `{ } , : " a`, or `?` for what is no token), start and end; null at the end. */
function token(text, at) {
  while (at < text.length && " \t\r\n".includes(text[at])) at++;
  if (at >= text.length) return null;
  const first = text[at];
  if (first === "{" || first === "[") return { kind: "{", start: at, end: at + 1 };
  if (first === "}" || first === "]") return { kind: "}", start: at, end: at + 1 };
  if (first === "," || first === ":") return { kind: first, start: at, end: at + 1 };
  if (first === '"') {
    for (let close = text.indexOf('"', at + 1); close >= 0; close = text.indexOf('"', close + 1)) {
      let slashes = close;
      while (text[slashes - 1] === "\\") slashes--;
      if ((close - slashes) % 2 === 0) return { kind: '"', start: at, end: close + 1 };
    }
    return { kind: "?", start: at, end: text.length };
  }
  const scalar = /[-+.\w]+/y;
  scalar.lastIndex = at;
  return scalar.test(text) ? { kind: "a", start: at, end: scalar.lastIndex } : { kind: "?", start: at, end: text.length };
}

/** The text that a string token holds, if that is a JSON object or array; else null. */
function inner(word) {
  if (!/^"(?:\\[nrt]|\s)*[{[]/.test(word) || word.length > 1000000) return null;
  try {
    const text = JSON.parse(word);
    JSON.parse(text);
    return text;
  } catch {
    return null;
  }
}

/** Lays out a JSON text; `out(role, piece)` takes the pieces, a line break is a piece of its own. Never recurses. */
class Layout {
  constructor(text, out) {
    this.out = out;
    this.sources = [{ text, at: 0, stack: [] }];
    this.used = this.depth = 0;
    this.name = "";
  }

  run() {
    while (this.sources.length) {
      const source = this.sources[this.sources.length - 1];
      const found = token(source.text, source.at);
      if (!found) {
        this.sources.pop();
        continue;
      }
      source.at = found.end;
      this.take(source, found, source.text.slice(found.start, found.end));
    }
  }

  take(source, { kind, start }, word) {
    if (kind === "{") {
      if (this.inline(source, start)) return;
      source.stack.push(word);
      this.depth++;
      this.piece("", word);
      const next = token(source.text, source.at);
      if (next && next.kind !== "}") this.line();
    } else if (kind === "}") {
      if (source.stack.pop()) this.depth--;
      this.line();
      this.piece("", word);
    } else if (kind === ",") {
      this.piece("", word);
      this.line();
    } else if (kind === ":") {
      this.piece("", ": ");
    } else if (kind === '"') {
      this.string(source, word);
    } else {
      this.piece(kind === "a" ? "n" : "", word);
    }
  }

  string(source, word) {
    const next = token(source.text, source.at);
    if (next && next.kind === ":" && source.stack.at(-1) === "{") {
      this.name = word;
      this.piece("k", word);
      return;
    }
    const text = this.name === '"text"' && this.sources.length === 1 ? inner(word) : null;
    this.name = "";
    if (text === null) {
      this.piece("s", word);
    } else {
      this.piece("f", "(JSON in a string) ");
      this.sources.push({ text, at: 0, stack: [] });
    }
  }

  /** Add the container that starts there on this line if it fits, or if it is nested too deep for lines of its own. */
  inline(source, start) {
    const room = this.depth >= DEEPEST ? Infinity : WIDE - this.used;
    const pieces = [];
    let depth = 0, used = 0, name = "";
    for (let at = start, found; (found = token(source.text, at)); at = found.end) {
      const word = source.text.slice(found.start, found.end);
      used += word.length + (found.kind === "," || found.kind === ":");
      if (used > room) return false;
      const next = found.kind === '"' ? token(source.text, found.end) : null;
      const named = next !== null && next.kind === ":";
      if (found.kind === '"' && !named && name === '"text"' && this.sources.length === 1 && inner(word) !== null) return false;
      if (found.kind === '"') name = named ? word : "";
      const role = found.kind === '"' ? (named ? "k" : "s") : found.kind === "a" ? "n" : "";
      pieces.push([role, found.kind === "," || found.kind === ":" ? `${word} ` : word]);
      depth += (found.kind === "{") - (found.kind === "}");
      if (depth === 0) {
        for (const [part, text] of pieces) this.piece(part, text);
        source.at = found.end;
        return true;
      }
    }
    return false;
  }

  piece(role, text) {
    this.out(role, text);
    this.used += text.length;
  }

  line() {
    this.used = 2 * Math.min(this.depth, DEEPEST);
    this.out("", `\n${" ".repeat(this.used)}`);
  }
}

/** Fill `into` with a JSON text laid out: short ones in colours, all but the first part of a huge one on demand. */
function layOut(text, into) {
  const coloured = text.length <= COLOURED;
  let plain = "";
  const flush = () => {
    if (plain) into.append(plain);
    plain = "";
  };
  new Layout(text, (role, piece) => {
    const shown = piece[0] === "\n" ? piece : visible(piece);
    if (!coloured || !role) {
      plain += shown;
    } else {
      flush();
      into.append(element("span", role, shown));
    }
  }).run();
  if (plain.length <= LONGEST) return flush();
  const rest = plain.slice(LONGEST);
  plain = plain.slice(0, LONGEST);
  flush();
  const more = element("button", "", `… ${counted(rest.length, "more character")}`);
  more.type = "button";
  more.addEventListener("click", () => more.replaceWith(rest));
  into.append(more);
}

/** Lay out the payload of an opened row, once. What was captured stays beside it, for the filter. */
function unfold(details) {
  const raw = details.querySelector("pre");
  if (!raw || raw.hidden || raw.dataset.laid) return;
  raw.dataset.laid = "1";
  const text = raw.textContent;
  if (!/^\s*[{["]/.test(text) || details.parentNode.className.startsWith("stderr")) return;
  const pretty = element("pre");
  layOut(text, pretty);
  raw.hidden = true;
  raw.after(pretty);
}

// At the click, before it opens, so that nobody sees it change; the event covers what opens in any other way.
document.addEventListener("click", (event) => {
  const summary = event.target.closest?.("summary");
  if (summary) unfold(summary.parentNode);
});
document.addEventListener("toggle", (event) => event.target.open && unfold(event.target), true);
