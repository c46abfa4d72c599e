"use strict";
// A page that may change looks again, and `u` goes up. Every page works without it.
// What has not changed is not touched: what is open, ticked, chosen or has the focus stays so.
const EVERY = 2000; // milliseconds between two looks
const morph = (now, made) => {
  if (now.isEqualNode(made)) return;
  if (now.nodeType !== made.nodeType || now.nodeName !== made.nodeName) {
    now.replaceWith(made.cloneNode(true));
    return;
  }
  if (now.nodeType !== Node.ELEMENT_NODE) {
    now.nodeValue = made.nodeValue;
    return;
  }
  for (const { name } of [...now.attributes])
    if (name !== "open" && !made.hasAttribute(name)) now.removeAttribute(name);
  for (const { name, value } of made.attributes)
    if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  const before = [...now.childNodes];
  [...made.childNodes].forEach((each, at) =>
    at < before.length ? morph(before[at], each) : now.append(each.cloneNode(true)),
  );
  before.slice(made.childNodes.length).forEach((each) => each.remove());
};
let tag = "";
const look = async () => {
  try {
    const answer = document.hidden
      ? null
      : await fetch(location.href, { headers: { "If-None-Match": tag || '"new"' } });
    if (answer && answer.status === 200) {
      tag = answer.headers.get("etag");
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      morph(document.querySelector("main"), made.querySelector("main"));
      if (!("live" in made.body.dataset)) return;
    }
  } catch {
    // the server is away for a moment, or for good
  }
  setTimeout(look, EVERY);
};
if ("live" in document.body.dataset) setTimeout(look, EVERY / 2);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  const link = event.key === "u" && document.querySelector('a[rel="up"]');
  if (link) link.click();
});
