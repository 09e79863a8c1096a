// SPDX-License-Identifier: Apache-2.0
//
// Functions that run in a page. They cannot call each other.

// focusables numbers the elements that the keyboard must reach.
export const focusables = () => {
  [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
    .filter((element) => element.checkVisibility() && !element.disabled)
    .forEach((element, i) => { element.dataset.focusable = i; });
};

// focusIsVisible reports whether the element with the focus has an outline.
export const focusIsVisible = () => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
};

// structureErrors returns what a screen reader misses.
export const structureErrors = () => {
  const errors = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const named = (element) => element.getAttribute("aria-label") || element.textContent.trim() ||
    (element.getAttribute("aria-labelledby") && document.getElementById(element.getAttribute("aria-labelledby")));
  if (!document.documentElement.lang) errors.push("the page has no language");
  if (!document.title) errors.push("the page has no title");
  for (const selector of ["main", "header", "header nav", "[role=search]", "h1"]) {
    if (all(selector).length !== 1) errors.push(`${all(selector).length} elements ${selector}`);
  }
  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) errors.push(`heading ${heading.textContent} of level ${next} follows level ${level}`);
    level = next;
  }
  for (const nav of all("nav")) if (!nav.getAttribute("aria-label")) errors.push("navigation without a label");
  for (const input of all("input, select, textarea")) {
    if (!input.labels.length && !input.getAttribute("aria-label")) errors.push(`input ${input.name} without a label`);
  }
  for (const element of all("a[href], button, summary")) if (!named(element)) errors.push(`${element.outerHTML} has no name`);
  for (const region of all("section, [role=region]")) {
    if (!region.getAttribute("aria-label") && !region.getAttribute("aria-labelledby")) errors.push("region without a label");
  }
  for (const table of all("table")) {
    const rows = [...table.querySelectorAll("tbody tr:not(.detail)")];
    if (!table.caption || !table.querySelector("thead th[scope=col]") || rows.some((row) => !row.querySelector("th[scope=row]"))) {
      errors.push(`table without a caption or headers: ${table.textContent.trim().slice(0, 40)}`);
    }
  }
  for (const image of all("img, svg")) {
    if (!image.getAttribute("alt") && image.getAttribute("aria-hidden") !== "true") errors.push("image without a text");
  }
  const ids = all("[id]").map((element) => element.id);
  for (const id of ids.filter((id, i) => ids.indexOf(id) !== i)) errors.push(`id ${id} is not unique`);
  return errors;
};

// contrastErrors returns the visible texts whose contrast to their background is below 4.5.
export const contrastErrors = () => {
  const parse = (color) => {
    const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (front, back) => ({
    r: front.r * front.a + back.r * (1 - front.a), g: front.g * front.a + back.g * (1 - front.a),
    b: front.b * front.a + back.b * (1 - front.a), a: 1,
  });
  const luminance = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((back, layer) => over(layer, back), { r: 255, g: 255, b: 255, a: 1 });
  };
  const errors = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest("script, .hidden")) continue;
    const back = background(element);
    const front = over(parse(getComputedStyle(element).color), back);
    const [light, dark] = [luminance(front), luminance(back)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) errors.set(element.className + element.tagName, `contrast ${ratio.toFixed(2)} of ${texts.currentNode.data.trim().slice(0, 40)}`);
  }
  return [...errors.values()];
};
