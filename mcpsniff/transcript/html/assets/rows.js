// The rows as the document has them, and which of them belong to one exchange.

const STATES = ["open", "answered", "errored", "input-required", "cancelled", "abandoned", "refused", "unseen"];
const KINDS = { q: "request", n: "notification", r: "response", e: "error", b: "batch", v: "invalid" };

/** Every exchange: request, start, microseconds, state, whether the server asked, and the event that ended it. */
const measured = JSON.parse($("bars").textContent);
/** Every event stream, as start and microseconds. */
const streams = measured.filter(([, , , state]) => state < 0).map(([, t, took]) => ({ t, took }));
const bars = measured.filter(([, , , state]) => state >= 0).map(([request, t, took, state, byServer, last]) => ({
  request, t, took, state: STATES[state], byServer: byServer === 1, last,
}));
const exchanges = new Map(bars.map((bar) => [bar.request, bar]));
const lists = [...document.querySelectorAll("#messages > ol")];

const numberOf = (item) => Number(item.id.slice(1));
const rowOf = (n) => {
  const found = $(`n${n}`);
  return found && found.closest("#messages li");
};

/** The request of the exchange that a row belongs to, 0 if it belongs to none. */
function exchangeOf(item) {
  const kind = item.className[1];
  if (kind === "q" && item.className[0] !== "u") return exchanges.has(numberOf(item)) ? numberOf(item) : 0;
  if (item.className.startsWith("report")) return 0;
  const tie = item.firstElementChild.tagName === "A" ? item.firstElementChild : null;
  const request = tie ? Number(tie.hash.slice(2)) : 0;
  return exchanges.has(request) ? request : 0;
}

/** The line of a row: what shows while it is folded. */
const lineOf = (item) => {
  const body = item.firstElementChild.tagName === "A" ? item.children[1] : item.firstElementChild;
  return body.tagName === "DETAILS" ? body.firstElementChild : body;
};

/** The rows as records to search in, and the same by exchange; built when first wanted. */
let index = null;
let groups = null;
let members = null;
function rows() {
  if (index) return index;
  index = [];
  groups = [];
  members = new Map();
  for (const list of lists) {
    for (const item of list.children) {
      const record = { item, list, exchange: exchangeOf(item), shown: true };
      index.push(record);
      let group = record.exchange ? members.get(record.exchange) : undefined;
      if (!group) {
        groups.push((group = []));
        if (record.exchange) members.set(record.exchange, group);
      }
      group.push(record);
    }
  }
  return index;
}

/** All rows of the exchange that `item` belongs to. */
function mates(item) {
  rows();
  const exchange = exchangeOf(item);
  return exchange ? members.get(exchange).map((record) => record.item) : [];
}

/** The other end of the exchange: from the request to what ended it, from anything else to the request. */
function partner(item) {
  const exchange = exchangeOf(item);
  if (!exchange) return null;
  return rowOf(numberOf(item) === exchange ? exchanges.get(exchange).last : exchange);
}

let marked = [];
function mark(item) {
  for (const one of marked) one.classList.remove("mate");
  marked = item ? mates(item) : [];
  for (const one of marked) one.classList.add("mate");
}

let here = null;
/** Make a row the current one: seen, focused, its exchange marked. */
function visit(item, { open = false, record = false } = {}) {
  if (!item) return;
  if (item.hidden || item.parentNode.hidden) showAll();
  if (here) here.classList.remove("here");
  here = item;
  here.classList.add("here");
  mark(here);
  const details = item.querySelector("details");
  if (open && details) details.open = true;
  const place = details ? details.firstElementChild : item;
  if (!details) item.tabIndex = -1;
  place.focus({ preventScroll: true });
  item.scrollIntoView({ block: "center" });
  // Not by location.hash, with which the browser would take the focus away again.
  if (record && item.id && location.hash !== `#${item.id}`) history.pushState(null, "", `#${item.id}`);
}

// What a list needs is done when it comes into view: payloads that are open are laid out, and requests get the link to
// their answer, which was not known when they were written.
function dress(list) {
  if (list.dataset.dressed) return;
  list.dataset.dressed = "1";
  for (const details of list.querySelectorAll("details[open]")) unfold(details);
  for (const item of list.children) {
    const bar = item.className[1] === "q" ? exchanges.get(numberOf(item)) : undefined;
    if (!bar) continue;
    const tie = element("a", "", `${bar.state} #${bar.last}`);
    tie.href = `#n${bar.last}`;
    item.prepend(tie);
  }
}

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    dress(target);
  }
}, { rootMargin: "100% 0px" });
for (const list of lists) seen.observe(list);

document.addEventListener("mouseover", (event) => {
  const item = event.target.closest?.("#messages li");
  if (item) mark(item);
});
document.addEventListener("focusin", (event) => {
  const item = event.target.closest?.("#messages li");
  if (!item || item === here) return;
  if (here) here.classList.remove("here");
  here = item;
  here.classList.add("here");
  mark(item);
});
document.addEventListener("click", (event) => {
  const tie = event.target.closest?.('a[href^="#n"]');
  if (!tie) return;
  const item = rowOf(tie.hash.slice(2));
  if (!item) return;
  event.preventDefault();
  visit(item, { record: true });
});
window.addEventListener("hashchange", () => {
  const item = /^#n\d+$/.test(location.hash) ? rowOf(location.hash.slice(2)) : null;
  if (item && item !== here) visit(item);
});
