"use strict";
// What changes while a study runs, and keys that follow links. Every page works without it.
// A reader stays where he is: what is open stays open, and what has the focus keeps it.
const FOCUSED = "a, summary, [tabindex]";
const replace = (part, html) => {
  const made = part.cloneNode(false);
  made.innerHTML = html;
  if (made.innerHTML === part.innerHTML) return; // as the page was made with it
  const open = [...part.querySelectorAll("details")].map((each) => each.open);
  const before = document.activeElement;
  const at = [...part.querySelectorAll(FOCUSED)].indexOf(before);
  part.replaceChildren(...made.childNodes);
  part.querySelectorAll("details").forEach((each, nth) => (each.open = Boolean(open[nth])));
  if (at < 0) return;
  const now = [...part.querySelectorAll(FOCUSED)];
  const here = before.getAttribute("href");
  const same = here ? now.find((each) => each.getAttribute("href") === here) : now[at];
  if (same && same.tagName === before.tagName) same.focus({ preventScroll: true });
};
const address = document.body.dataset.live;
if (address) {
  const source = new EventSource(address);
  source.onmessage = (event) => {
    const told = JSON.parse(event.data);
    if (told.reload) {
      source.close();
      location.reload();
      return;
    }
    for (const [id, [state, text, label]] of Object.entries(told.marks || {})) {
      const mark = document.getElementById(id);
      if (mark) {
        mark.className = "mark-" + state;
        mark.textContent = text;
        mark.title = label;
      }
    }
    for (const [id, html] of Object.entries(told.parts || {})) {
      const part = document.getElementById(id);
      if (part) replace(part, html);
    }
  };
  addEventListener("pagehide", () => source.close());
}
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  const rel = { j: "next", ArrowRight: "next", k: "prev", ArrowLeft: "prev", u: "up" }[event.key];
  const link = rel && document.querySelector(`a[rel="${rel}"]`);
  if (link) link.click();
});
