// The filter: words and NAME:VALUE terms, all of which must hold. An exchange is judged, and shown, as a whole: a term
// holds for it when it holds for its request, its progress or its answer.

const box = $("filter");
const TERM = /(-?)(?:(method|tool|state|severity|code|dir|kind|id|status|text):)?("(?:[^"\\]|\\.)*"?|\S+)/gi;
const SEVERITIES = ["info", "note", "warning", "error"];
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[-+]?\d+)?$/i;

/** The terms of a filter, each {not, name, value, quoted}. `-` or `not` stands before what must not hold. */
function terms(text) {
  const found = [];
  let not = false;
  for (const [, minus, name, word] of text.matchAll(TERM)) {
    if (!name && word === "not") {
      not = true;
      continue;
    }
    const quoted = word.startsWith('"');
    const value = quoted ? word.replace(/^"|"$/g, "").replace(/\\(.)/g, "$1") : word;
    if (value) found.push({ not: not || minus === "-", name: (name ?? "").toLowerCase(), value, quoted });
    not = false;
  }
  return found;
}

/** What a row says of itself, read from it when it is first asked. */
function facts(record) {
  if (record.facts) return record.facts;
  const { item, exchange } = record;
  const [kind] = item.className.split(" ", 1);
  const isMessage = kind.length === 2;
  const known = { kind: isMessage ? KINDS[kind[1]] : kind, dir: "", method: "", tool: "", id: "", state: "", status: "", found: [] };
  for (const part of item.children) {
    if (part.tagName === "P" && part.className) known.found.push(part);
  }
  for (const part of lineOf(item).children) {
    if (part.tagName === "B") known.method = part.textContent;
    else if (part.tagName === "EM") known.tool = part.textContent;
    else if (part.tagName === "I" && part.textContent.startsWith("id ")) known.id = part.textContent.slice(3);
    else if (part.tagName === "I" && part.textContent.startsWith("HTTP ")) known.status = part.textContent.slice(5);
  }
  if (kind === "http") known.status = known.method;
  if (known.method !== "tools/call") known.tool = "";
  if (!isMessage && kind !== "unanswered") known.method = "";
  const bar = exchanges.get(exchange);
  if (bar) [known.state, known.dir] = [bar.state, bar.byServer ? "s2c" : "c2s"];
  else if (isMessage) known.dir = kind[0] === "c" ? "c2s" : "s2c";
  return (record.facts = known);
}

/** A JSON text as a reader of its strings sees it, as far as a search for words needs it. */
const unescaped = (text) => text.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (_, code, one) =>
  code ? String.fromCharCode(parseInt(code, 16)) : { n: "\n", r: "\r", t: "\t" }[one] ?? one);

function holds(pattern, text) {
  return pattern.test(text) || (text.includes("\\") && pattern.test(unescaped(text)));
}

/** The test of one term, for a record. */
function test({ name, value, quoted }) {
  const literal = value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const anywhere = new RegExp(literal, "iu");
  const whole = new RegExp(`^${quoted ? literal : literal.replaceAll("\\*", ".*")}$`, "su");
  if (name === "") return ({ item }) => holds(anywhere, item.textContent);
  if (name === "text") {
    return (record) => holds(anywhere, record.item.querySelector("pre, samp")?.textContent ?? "")
      || facts(record).found.some((one) => anywhere.test(one.querySelector("span")?.textContent ?? ""));
  }
  if (name === "severity") {
    const [, sign, word] = /^(>=|<=|>|<|)(.*)$/.exec(value.toLowerCase());
    const wanted = SEVERITIES.indexOf(word);
    const fits = { "": (rank) => rank === wanted, ">=": (rank) => rank >= wanted, "<=": (rank) => rank <= wanted,
      ">": (rank) => rank > wanted, "<": (rank) => rank < wanted }[sign];
    return (record) => wanted >= 0 && facts(record).found.some((one) => fits(SEVERITIES.indexOf(one.className)));
  }
  if (name === "code") {
    return (record) => facts(record).found.some((one) => {
      const code = one.querySelector("b");
      return code.textContent.startsWith(value.toUpperCase()) || whole.test(code.nextSibling.textContent.trim().split(",", 1)[0]);
    });
  }
  if (name === "id") {
    const isNumber = !quoted && NUMBER.test(value);
    return (record) => isNumber ? NUMBER.test(facts(record).id) && Number(facts(record).id) === Number(value) : facts(record).id === `"${value}"`;
  }
  if (name === "dir") {
    const wanted = { client: "c2s", server: "s2c" }[value] ?? value;
    return (record) => facts(record).dir === wanted;
  }
  return (record) => facts(record)[name] !== "" && whole.test(facts(record)[name]);
}

/** Show the rows that match, and what belongs to their exchanges; returns how many. */
function apply(text) {
  const wanted = terms(text).map((term) => ({ not: term.not, test: test(term) }));
  const all = rows();
  let count = 0;
  const perList = new Map(lists.map((list) => [list, 0]));
  for (const group of groups) {
    const shown = wanted.every((term) => group.some(term.test) !== term.not);
    for (const record of group) {
      if (record.shown !== shown) record.item.hidden = !shown;
      record.shown = shown;
      if (!shown) continue;
      count++;
      perList.set(record.list, perList.get(record.list) + 1);
    }
  }
  for (const [list, number] of perList) {
    list.hidden = number === 0;
    list.style.containIntrinsicSize = wanted.length ? `auto none ${number * 29}px` : "";
  }
  $("none").hidden = count > 0 || all.length === 0;
  $("shown").textContent = wanted.length ? `${count.toLocaleString("en")} of ${counted(all.length, "row")}` : counted(all.length, "row");
  return count;
}

function showAll() {
  box.value = "";
  apply("");
}

let waiting = 0;
box.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => apply(box.value), lists.length > 60 ? 180 : 40);
});
