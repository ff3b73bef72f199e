// Keys, the theme, and print.

const isShown = (record) => record.shown;
const hasFinding = (record) => record.shown && record.item.querySelector(":scope > p[class]");

/** The next row of some kind after the current one, or before it; the first in view where there is none. */
function goOn(by, wanted) {
  const all = rows();
  let at = here ? all.findIndex((record) => record.item === here) : -1;
  if (at < 0 && by < 0) at = all.length;
  for (at += by; at >= 0 && at < all.length; at += by) {
    if (wanted(all[at])) return visit(all[at].item);
  }
}

const KEYS = {
  "/": () => {
    box.focus();
    box.select();
  },
  n: () => goOn(1, isShown),
  p: () => goOn(-1, isShown),
  f: () => goOn(1, hasFinding),
  F: () => goOn(-1, hasFinding),
  x: () => here && visit(partner(here), { record: true }),
  Enter: () => {
    const details = here?.querySelector("details");
    if (details) details.open = !details.open;
  },
  Escape: () => {
    if (!here) return;
    here.classList.remove("here");
    here = null;
    mark(null);
    document.activeElement.blur();
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === box) {
    if (event.key === "Escape") {
      if (box.value) showAll();
      else box.blur();
      event.preventDefault();
    } else if (event.key === "Enter") {
      clearTimeout(waiting);
      apply(box.value);
      here = here && !here.hidden ? here : null;
      goOn(1, isShown);
      event.preventDefault();
    }
    return;
  }
  const act = KEYS[event.key];
  // A control that has the focus keeps its own Enter.
  if (!act || (event.key === "Enter" && event.target.closest("summary, a, button"))) return;
  event.preventDefault();
  act();
});

const root = document.documentElement;
const isDark = () => root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
function nameTheme() {
  $("theme").textContent = isDark() ? "light" : "dark";
  $("theme").setAttribute("aria-label", `Change to ${isDark() ? "light" : "dark"} colours`);
}
$("theme").addEventListener("click", () => {
  const next = isDark() ? "light" : "dark";
  root.classList.remove("light", "dark");
  root.classList.add(next);
  nameTheme();
  if (bars.length) draw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);

// On paper a fold cannot be opened: a short page opens them all, a long one prints what is open.
let opened = [];
window.addEventListener("beforeprint", () => {
  const visible = rows().filter(isShown);
  opened = visible.length <= 300 ? visible.map(({ item }) => item.querySelector("details:not([open])")).filter(Boolean) : [];
  for (const list of lists) dress(list);
  for (const details of opened) {
    details.open = true;
    unfold(details);
  }
});
window.addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
});

$("bar").hidden = $("keys").hidden = false;
nameTheme();
$("shown").textContent = counted(lists.reduce((sum, list) => sum + list.childElementCount, 0), "row");
for (const fault of document.querySelectorAll("#findings li")) {
  const head = fault.querySelector("h3");
  if (!head.textContent.includes("×")) continue;
  const all = element("button", "", "show all");
  all.type = "button";
  all.addEventListener("click", () => {
    box.value = `code:${head.querySelector("b").textContent}`;
    apply(box.value);
    $("messages").scrollIntoView();
    box.focus({ preventScroll: true });
  });
  head.append(all);
}
(window.requestIdleCallback ?? setTimeout)(() => rows());
if (/^#n\d+$/.test(location.hash)) visit(rowOf(location.hash.slice(2)));
