"use strict";
// What changes while a study runs, and keys that follow links. Every page works without it.
// A reader stays where he is: what is open stays open, and the link in focus keeps it.
const replace = (part, html) => {
  const open = [...part.querySelectorAll("details")].map((each) => each.open);
  const here = part.contains(document.activeElement) && document.activeElement.getAttribute("href");
  part.innerHTML = html;
  part.querySelectorAll("details").forEach((each, at) => (each.open = Boolean(open[at])));
  const link = here && [...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === here);
  if (link) link.focus();
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
