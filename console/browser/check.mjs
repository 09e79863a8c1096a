// SPDX-License-Identifier: Apache-2.0
//
// Checks the pages of the console in Chromium. Each line of the output is a check with its errors, as JSON. Arguments: the
// URL of the console, a URL whose requests cause reconciles, and optionally the directory of the screenshots. The variable
// CHROMIUM is the path of the browser, and HIDDEN a text that no page may contain.
import { chromium } from "playwright-core";
import { contrastErrors, focusables, focusIsVisible, structureErrors } from "./page.mjs";

const [base, control, screenshots] = process.argv.slice(2);
const pages = {
  objects: "",
  search: "?q=database",
  controllers: "controllers",
  controller: "controllers/Database",
  permissions: "permissions",
  failing: "objects/Database/default/orders",
  looping: "objects/Database/default/analytics",
  waiting: "objects/Database/default/reports",
  healthy: "objects/Database/default/shop",
  missing: "objects/Database/default/none",
};

const desktop = { width: 1100, height: 720 };
const phone = { width: 390, height: 800 };

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

const report = (name, errors, started) => console.log(JSON.stringify({ name, errors, seconds: (performance.now() - started) / 1000 }));

// check runs a function with a new page. The function returns nothing, or calls fail for each error.
const check = async (name, run) => {
  const errors = [];
  const started = performance.now();
  const context = await browser.newContext({ viewport: desktop });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  try {
    await run(page, (error) => errors.push(error));
  } catch (error) {
    errors.push(String(error.stack));
  }
  await context.close();
  report(name, errors, started);
};

// listen collects what the browser reports as an error.
const listen = (page) => {
  const errors = [];
  page.on("pageerror", (error) => errors.push(`script: ${error}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(`${message.type()}: ${message.text()}`);
  });
  page.on("requestfailed", (request) => {
    // A page that is left closes its stream.
    if (request.resourceType() !== "eventsource") errors.push(`${request.url()}: ${request.failure().errorText}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400 && response.request().resourceType() !== "document") errors.push(`${response.url()}: status ${response.status()}`);
  });
  return errors;
};

const isLive = (page) => page.getByText("Updated live.").waitFor();

// The inspections of each page. The function inspect runs on every page, and verify on the last one: it fails if inspect
// does not find an error.
const inspections = {
  "pages have no errors and keep the content security policy": {
    inspect: async (page, fail, { name, response, errors }) => {
      const policy = response.headers()["content-security-policy"] ?? "";
      if (!policy.startsWith("default-src 'none'") || policy.includes("unsafe")) fail(`policy ${policy}`);
      errors.splice(0).filter((e) => name !== "missing" || !e.includes("404")).forEach(fail);
    },
    verify: async (page, fail, errors) => {
      const reported = page.waitForEvent("console");
      await page.evaluate(() => { document.body.insertAdjacentHTML("beforeend", "<p style='color:red'></p>"); });
      await reported;
      if (!errors.some((e) => e.includes("Content Security Policy"))) fail("an inline style is not reported: the check does not work");
    },
  },
  "screen readers find landmarks, headings, labels and tables": {
    inspect: async (page, fail) => (await page.evaluate(structureErrors)).forEach(fail),
    verify: async (page, fail) => {
      // Updates replace the content of main only.
      await page.evaluate(() => { document.body.insertAdjacentHTML("beforeend", "<h5>x</h5><input><table><tr><td>x</td></tr></table>"); });
      if ((await page.evaluate(structureErrors)).length !== 3) fail("errors are not reported: the check does not work");
    },
  },
  "pages do not contain the values of Secrets": {
    inspect: async (page, fail) => {
      const hidden = process.env.HIDDEN;
      if (!hidden) fail("HIDDEN is not set");
      for (const text of [hidden, btoa(hidden)]) if ((await page.content()).includes(text)) fail(`the page contains ${text}`);
    },
  },
  "text has enough contrast in the light theme": contrast("light"),
  "text has enough contrast in the dark theme": contrast("dark"),
  "pages fit the screen of a phone": {
    inspect: async (page, fail) => {
      await page.setViewportSize(phone);
      const [content, screen, wide] = await page.evaluate(() => [
        document.scrollingElement.scrollWidth, innerWidth,
        [...document.querySelectorAll("main *, header *")].filter((e) => e.getBoundingClientRect().right > innerWidth)
          .map((e) => `${e.tagName.toLowerCase()}.${e.className} ${e.textContent.trim().slice(0, 60)}`).slice(-3).join("; "),
      ]);
      if (screen !== phone.width) fail(`the screen is ${screen} pixels wide: the check does not work`);
      if (content > screen) fail(`${content} pixels wide on a screen of ${screen}: ${wide}`);
      await page.setViewportSize(desktop);
    },
  },
};

function contrast(colorScheme) {
  return {
    inspect: async (page, fail) => {
      await page.emulateMedia({ colorScheme });
      await page.evaluate(() => { for (const d of document.querySelectorAll("details")) d.open = true; });
      (await page.evaluate(contrastErrors)).forEach(fail);
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const isDark = background.match(/\d+/g).slice(0, 3).every((channel) => channel < 64);
      if (isDark !== (colorScheme === "dark")) fail(`the background is ${background}`);
    },
    verify: async (page, fail) => {
      await page.emulateMedia({ colorScheme });
      await page.evaluate(() => {
        const text = document.body.appendChild(document.createElement("p"));
        text.textContent = "gray on gray";
        text.style.setProperty("color", "#888");
        text.style.setProperty("background-color", "#777");
      });
      if ((await page.evaluate(contrastErrors)).length === 0) fail("gray on gray is not reported: the check does not work");
    },
  };
}

// Each page is loaded once for all inspections.
const found = Object.fromEntries(Object.keys(inspections).map((name) => [name, []]));
await check("pages can be inspected", async (page) => {
  const errors = listen(page);
  for (const [name, path] of Object.entries(pages)) {
    const response = await page.goto(base + path);
    await isLive(page);
    for (const [title, { inspect }] of Object.entries(inspections)) {
      await inspect(page, (error) => found[title].push(`${name}: ${error}`), { name, response, errors });
    }
  }
  for (const [title, { verify }] of Object.entries(inspections)) {
    await verify?.(page, (error) => found[title].push(error), errors);
  }
});
for (const [title, errors] of Object.entries(found)) report(title, errors, performance.now());

// Before the checks that change objects.
if (screenshots) {
  await check("screenshots", async (page) => {
    for (const [name, height] of [["objects", 620], ["failing", 700], ["controller", 980], ["permissions", 560]]) {
      await page.setViewportSize({ width: 960, height });
      await page.goto(base + pages[name]);
      await isLive(page);
      await page.screenshot({ path: `${screenshots}/console-${name}.png` });
    }
  });
}

await check("the worst objects are first", async (page, fail) => {
  await page.goto(base);
  const states = await page.locator("td[data-label=State]").allInnerTexts();
  const order = ["Panicked", "Looping", "Failing", "Stuck", "Halted", "Waiting", "Running", "Succeeded"];
  const ranks = states.map((state) => order.findIndex((name) => state.includes(name)));
  if (states.length !== 100 || ranks.includes(-1) || ranks.some((rank, i) => i > 0 && rank < ranks[i - 1])) fail(`states: ${states}`);
  if (ranks[0] !== 1 || !ranks.includes(2) || !ranks.includes(4)) fail(`the faults are not first: ${states.slice(0, 5)}`);
  const lead = await page.locator("main .lead").innerText();
  if (!/2 in trouble/.test(lead)) fail(`the page starts with ${lead}`);
});

await check("search finds objects by name, state, step and error", async (page, fail) => {
  const searches = {
    "tenant-04711": ["tenants/tenant-04711"], "exceeded quota": ["default/orders"], "PodsService": ["default/orders"],
    "looping": ["default/analytics"], "no such object": [],
  };
  await page.goto(base);
  for (const [text, want] of Object.entries(searches)) {
    await page.getByRole("searchbox", { name: "Search objects" }).fill(text);
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.searchParams.get("q") === text);
    const found = await page.locator("th[data-label=Object] > a").allInnerTexts();
    if (found.map((name) => name.split(" ").pop()).join() !== want.join()) fail(`${text}: found ${found}`);
  }
  await page.goto(base + "?q=tenant-0");
  await page.getByRole("link", { name: "Next" }).click();
  await page.getByText("101 to 200 of 10000").waitFor();
});

await check("the cause of each fault is at most two clicks away", async (page, fail) => {
  const faults = {
    "default/orders": ["Failed in step", "Database.WithFinalizer.4.PodsService", "exceeded quota"],
    "default/analytics": ["spec.replicas", "autoscaler", "Database.WithFinalizer.6.StatefulSet"],
    "default/reports": ["Database.WithFinalizer.1.Certificate", "SecretNotFound", "reports-tls"],
  };
  for (const [name, wants] of Object.entries(faults)) {
    await page.goto(base);
    await page.getByRole("link", { name: `Database ${name}`, exact: true }).click();
    await page.waitForURL("**/objects/**");
    const first = await page.evaluate(() => document.body.innerText.slice(0, 1500));
    for (const want of wants) if (!first.includes(want)) fail(`${name}: ${want} is not at the top of the page:\n${first}`);
  }
});

await check("the tree of a controller shows which reconciler fails, and its queue", async (page, fail) => {
  await page.goto(base + pages.controller);
  const row = page.getByRole("row").filter({ has: page.locator(".name", { hasText: /^PodsService$/ }) });
  const text = await row.innerText();
  for (const want of ["owns Service", /\d+ of \d+/, "Database default/orders", "exceeded quota"]) {
    if (!text.match(want)) fail(`${want} is not in ${text}`);
  }
  if (!(await row.locator(".dot").getAttribute("class")).match(/bad|warn/)) fail("the reconciler that fails is not colored");
  const facts = await page.locator("main").innerText();
  for (const want of [/Busy workers\s+\d of 4/, /Time in the queue, mean\s+[\d.]+ m?s/, /Longest time behind/]) {
    if (!facts.match(want)) fail(`${want} is not in ${facts}`);
  }
});

await check("missing permissions are first, in words, and one key press away from any page", async (page, fail) => {
  await page.goto(base + pages.failing);
  await page.getByRole("link", { name: "Permissions", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/permissions");
  await isLive(page);
  const rows = await page.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText.replace(/\s+/g, " ").trim()).join(" | ")));
  const wants = {
    0: "Missing | statefulsets apps update | yes | yes | no",
    1: "Unused | leases coordination.k8s.io create, get, update | no | no | yes",
    2: "Unused | ingresses networking.k8s.io list, watch | no | no | yes",
  };
  for (const [i, want] of Object.entries(wants)) if (rows[i] !== want) fail(`row ${i} is ${rows[i]}, want ${want}`);
  if (!rows.includes("Granted | databases database.trueup.dev list, patch, watch | yes | yes | yes")) fail(`no row of a used permission: ${rows}`);
  const lead = await page.locator("main .lead").innerText();
  if (lead !== "1 missing, 5 unused.") fail(`the page starts with ${lead}`);
  const text = await page.locator("main").innerText();
  for (const want of ["trueup-memory", "autoscaler", "default", "tenants"]) if (!text.includes(want)) fail(`${want} is not in ${text}`);
});

await check("the keyboard reaches everything, in order", async (page, fail) => {
  for (const name of ["search", "controller", "permissions", "failing", "looping"]) {
    await page.goto(base + pages[name]);
    await isLive(page);
    // Updates replace elements. A click of a mouse would be where Tab continues; the first Tab has to reach element 0.
    await page.evaluate(() => document.getElementById("pause").click());
    await page.evaluate(focusables);
    const count = await page.evaluate(() => document.querySelectorAll("[data-focusable]").length);
    const order = [];
    for (let i = 0; i < count; i++) {
      await page.keyboard.press("Tab");
      order.push(await page.evaluate(() => document.activeElement.dataset.focusable ?? document.activeElement.outerHTML));
      if (!(await page.evaluate(focusIsVisible))) fail(`${name}: the focus is not visible on element ${i}`);
    }
    if (order.some((position, i) => position !== String(i))) fail(`${name}: order ${order} of ${count}`);
    // Then the focus leaves the page. Whether the browser or the first element has it then depends on the browser.
    await page.keyboard.press("Tab");
    await page.waitForFunction((last) => document.activeElement.dataset.focusable !== last, String(count - 1));
    const next = await page.evaluate(() => (document.activeElement === document.body ? "0" : document.activeElement.dataset.focusable));
    if (next !== "0") fail(`${name}: element ${next} follows the last one`);
  }
});

await check("Enter opens objects and runs, and skips to the content", async (page, fail) => {
  await page.goto(base);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  if (!page.url().endsWith("#content")) fail(`the first element does not skip to the content: ${page.url()}`);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/objects/Database/default/analytics");
  await page.goto(base + pages.failing);
  await isLive(page);
  await page.getByRole("button", { name: "Pause" }).click();
  const second = page.locator(".runs details").nth(1);
  if (await second.evaluate((element) => element.open)) fail("the second run is open before it is opened");
  await second.locator("summary").focus();
  await page.keyboard.press("Enter");
  if (!(await second.evaluate((element) => element.open))) fail("Enter does not open a run");
});

await check("a new reconcile appears without a reload", async (page, fail) => {
  await page.goto(base + "?q=new-tenant");
  await isLive(page);
  await page.evaluate(() => { window.notReloaded = true; });
  await page.getByText("No object matches.").waitFor();
  await fetch(control);
  await page.getByRole("link", { name: "new-tenant-1" }).waitFor();
  if (!(await page.evaluate(() => window.notReloaded))) fail("the page was reloaded");
  await page.getByRole("button", { name: "Pause" }).click();
  // The updates of a page are at least one interval apart: after two of them, the paused page would have had one.
  const other = await page.context().newPage();
  await other.goto(base + "?q=new-tenant");
  await isLive(other);
  for (const name of ["new-tenant-2", "new-tenant-3"]) {
    await fetch(control);
    await other.getByRole("link", { name }).waitFor();
  }
  if (await page.getByRole("link", { name: "new-tenant-2" }).count()) fail("a paused page changes");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("link", { name: "new-tenant-2" }).waitFor();
});

// update waits until the page was replaced after a new run of the object that fails.
const update = async (page) => {
  await page.evaluate(() => { document.querySelector("h1").dataset.before = "yes"; });
  await fetch(`${control}/failing`);
  await page.waitForFunction(() => !document.querySelector("h1").dataset.before);
};

await check("an update keeps open runs and the focus", async (page, fail) => {
  await page.goto(base + pages.failing);
  await isLive(page);
  const last = page.locator(".runs details").last(); // the first failed run is always kept
  const id = await last.getAttribute("id");
  await last.locator("summary").focus();
  await page.keyboard.press("Enter");
  await update(page);
  const after = await page.evaluate((id) => [document.getElementById(id).open, document.activeElement.parentElement.id], id);
  if (after[0] !== true || after[1] !== id) fail(`open and focus: ${after}, want ${id}`);
});

await check("an update closes the run that was the first one, unless it has the focus", async (page, fail) => {
  await page.goto(base + pages.failing);
  await isLive(page);
  const runs = page.locator(".runs details");
  const openRuns = () => runs.evaluateAll((all) => all.map((run, i) => (run.open ? i : -1)).filter((i) => i >= 0));
  const replaced = async () => {
    const first = await runs.first().getAttribute("id");
    await update(page);
    await page.waitForFunction((id) => document.querySelector(".runs details").id !== id, first);
    return first;
  };
  await replaced();
  if ((await openRuns()).join() !== "0") fail(`open runs: ${await openRuns()}, want the first one only`);
  await runs.first().locator("summary").focus();
  const focused = await page.evaluate(() => document.activeElement.parentElement.id);
  await replaced();
  const after = await page.evaluate((id) => [document.getElementById(id).open, document.activeElement.parentElement.id], focused);
  if (after[0] !== true || after[1] !== focused) fail(`open and focus: ${after}, want ${focused}`);
});

await check("an update keeps the focus on the same link and table", async (page, fail) => {
  const elements = {
    search: "tbody tr:has(a[href$='/shop']) a[href$='/controllers/Database']", // each row has this link
    controller: ".scroll",
  };
  for (const [name, selector] of Object.entries(elements)) {
    await page.goto(base + pages[name]);
    await isLive(page);
    await page.keyboard.press("Tab"); // the focus is visible for users of the keyboard
    await page.locator(selector).focus();
    await update(page);
    const has = await page.evaluate((selector) => document.activeElement === document.querySelector(selector), selector);
    if (!has) fail(`${name}: ${selector} lost the focus to ${await page.evaluate(() => document.activeElement.outerHTML.slice(0, 200))}`);
    if (!(await page.evaluate(focusIsVisible))) fail(`${name}: the focus is not visible`);
  }
});

await browser.close();
