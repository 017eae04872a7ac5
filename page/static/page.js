// Fetches this same page again and again and puts what differs in place: nodes stay,
// and with them focus, scroll, selection and opened details. The document comes parsed
// (XMLHttpRequest), so no HTML is made from text here.
"use strict";
(() => {
  const every = 2000, patience = 15000;
  const live = document.getElementById("live"), word = document.getElementById("live-word"), lost = document.getElementById("lost");
  if ("still" in document.getElementById("main").dataset) return; // a question stays as it was asked
  let told = Number(live.dataset.age); // seconds, when the page came
  let came = performance.now();
  let trouble = live.dataset.live === "yes" ? "" : "The controller answers, and has no look at the fleet.";

  const keyOf = (n) => (n.nodeType === Node.ELEMENT_NODE ? n.id || n.dataset?.key || "" : "");
  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

  function attributes(from, to) {
    for (const { name } of [...from.attributes])
      if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
    for (const { name, value } of to.attributes)
      if (from.getAttribute(name) !== value && name !== "open") from.setAttribute(name, value);
  }

  // morph makes from what to is.
  function morph(from, to) {
    if (from.nodeType !== Node.ELEMENT_NODE) {
      if (from.data !== to.data) from.data = to.data;
      return;
    }
    attributes(from, to);
    let at = from.firstChild;
    for (const next of to.childNodes) {
      let old = at;
      const key = keyOf(next);
      if (key) while (old && !alike(old, next)) old = old.nextSibling;
      if (old && alike(old, next)) {
        if (old === at) at = at.nextSibling;
        else from.insertBefore(old, at);
        morph(old, next);
      } else {
        from.insertBefore(document.importNode(next, true), at);
      }
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  function length(s) {
    if (s < 60) return `${Math.floor(s)} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
    return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  }

  // say tells how old the figures are; they are old by what the controller says of its
  // look, and by how long ago that came.
  function say() {
    const age = told + (performance.now() - came) / 1000;
    const stale = !trouble && age > 20;
    const text = trouble || stale ? `not live: ${length(age)} old` : `live: ${length(age)} old`;
    if (word.textContent !== text) word.textContent = text;
    document.body.classList.toggle("stale", Boolean(trouble) || stale);
    let why = trouble;
    if (trouble) why += " What you see is from before.";
    if (stale) why = "The controller answers, and its last look at the fleet is old: its rounds take long, or have stopped.";
    if (lost.textContent !== why) lost.textContent = why;
    lost.hidden = !why;
  }

  function fetched(x) {
    const next = x.response;
    const main = next && next.getElementById("main");
    if (x.status === 404 || !main || !next.getElementById("live")) {
      trouble = x.status === 404 ? "This is not there any more." : `The controller answers ${x.status}, and not with this page.`;
      return;
    }
    if (x.status !== 200) {
      trouble = main.querySelector(".problem")?.textContent || `The controller answers ${x.status}.`;
      return;
    }
    trouble = "";
    told = Number(next.getElementById("live").dataset.age);
    came = performance.now();
    document.title = next.title;
    for (const tag of ["header nav", "main", "footer"]) morph(document.querySelector(tag), next.querySelector(tag));
  }

  let under = false;
  function look() {
    if (under || document.hidden) return;
    under = true;
    const x = new XMLHttpRequest();
    x.open("GET", location.pathname);
    x.responseType = "document";
    x.timeout = patience;
    x.onload = () => fetched(x);
    x.onerror = x.ontimeout = () => {
      const since = new Date().toLocaleTimeString();
      if (!trouble.startsWith("Connection lost")) trouble = `Connection lost at ${since}: the controller on this host does not answer. Trying again.`;
    };
    x.onloadend = () => {
      under = false;
      say();
    };
    x.send();
  }

  setInterval(look, every);
  setInterval(say, 1000);
  document.addEventListener("visibilitychange", look);
  say();
})();
