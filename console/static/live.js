// Replaces the content of the page when it changes on the server. Without this script, the page shows the state at the
// time when it was loaded.
"use strict";
(() => {
  const content = document.getElementById("content");
  const state = document.getElementById("updates");
  const pause = document.getElementById("pause");
  let source = null;
  let paused = false;

  // A selection is kept: the user may be about to copy it.
  const selecting = () => {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && content.contains(selection.anchorNode);
  };

  // nth returns a function that finds the element again: the elements of a selector with the same key keep their order.
  const nth = (element, selector, key) => {
    const same = () => [...content.querySelectorAll(selector)].filter((e) => key(e) === wanted);
    const wanted = key(element);
    const i = same().indexOf(element);
    return () => same()[i];
  };
  const href = (a) => a?.getAttribute("href");

  const focused = () => {
    const element = document.activeElement;
    if (!content.contains(element)) return null;
    const details = element.closest("details");
    if (element.tagName === "SUMMARY" && details) return () => document.getElementById(details.id)?.querySelector("summary");
    if (element.matches(".scroll")) return nth(element, ".scroll", (e) => e.getAttribute("aria-label"));
    // Rows have links to the same page, for example of the controller. The first link of a row tells them apart.
    if (href(element)) return nth(element, "a[href]", (a) => `${href(a)} ${href(a.closest("tr, li")?.querySelector("a"))}`);
    return null;
  };

  const show = (html) => {
    if (selecting()) return;
    // A run that is open only because it was the first one closes when there is a newer one, unless it has the focus.
    const open = new Map([...content.querySelectorAll("details[id]")]
      .filter((d, i) => d.open !== (i === 0) || d.contains(document.activeElement)).map((d) => [d.id, d.open]));
    const scrolled = [...content.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
    const focus = focused();
    content.innerHTML = html; // made by the templates of the server, which escape values
    for (const d of content.querySelectorAll("details[id]")) {
      if (open.has(d.id)) d.open = open.get(d.id);
    }
    content.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
    focus?.()?.focus({ preventScroll: true });
  };

  const ago = (t) => {
    let d = (Date.now() - t) / 1000;
    const [before, after] = d < 0 ? ["in ", ""] : ["", " ago"];
    d = Math.abs(d);
    if (d < 1) return "now";
    if (d < 60) return before + Math.floor(d) + " s" + after;
    if (d < 3600) return before + Math.floor(d / 60) + " min" + after;
    if (d < 48 * 3600) return before + Math.floor(d / 3600) + " h" + after;
    return before + Math.floor(d / 86400) + " days" + after;
  };

  const disconnect = () => { source?.close(); source = null; };
  const connect = () => {
    if (source || paused || document.hidden) return;
    source = new EventSource(location.href);
    source.onopen = () => { state.textContent = "Updated live."; };
    source.onmessage = (event) => show(event.data);
    source.onerror = () => {
      state.textContent = "Connection lost. Trying again.";
      if (source.readyState === EventSource.CLOSED) { // an error status, for example of an expired token
        disconnect();
        setTimeout(connect, 5000);
      }
    };
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    if (paused) {
      disconnect();
      state.textContent = "Paused.";
    } else {
      connect();
    }
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  setInterval(() => {
    if (paused || selecting()) return;
    for (const e of content.querySelectorAll("time")) {
      const text = ago(Date.parse(e.dateTime));
      if (e.textContent !== text) e.textContent = text;
    }
  }, 1000);
  connect();
})();
