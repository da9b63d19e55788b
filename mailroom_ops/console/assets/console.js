// Behaviour of pages besides htmx. Without this script pages are complete, but do not update themselves.

// A page that cannot update itself shows a notice until the console responds again.
document.addEventListener("htmx:afterRequest", (event) => {
  document.getElementById("stale").hidden = event.detail.successful === true;
});

// An update does not replace content that the user has selected, opened or reached by the keyboard. If the page has
// become another page, without a live part, it is reloaded.
document.addEventListener("htmx:beforeSwap", (event) => {
  const update = event.detail;
  if (!update.shouldSwap || update.target.id !== "live") return;
  const selection = getSelection();
  const reading = update.target.querySelector(":focus-visible:not([id]), details[open]:not([hx-preserve]), :checked");
  const busy = reading || (!selection.isCollapsed && selection.containsNode(update.target, true));
  if (!update.serverResponse.includes('id="live"')) location.reload();
  else if (!busy) return;
  update.shouldSwap = false;
});

// A double click sends a form only once: the second request would be refused, although the first has succeeded.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.submitter?.value === "csv") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => delete form.dataset.sent, 5000);
});
addEventListener("pageshow", (event) => event.persisted && location.reload());

// A page in a hidden tab makes no requests: nobody sees it, and its metrics would cost money.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.target.id === "live") event.preventDefault();
});

// Times are shown in UTC. A switch shows them in the time zone of this computer, on every page. Texts by others, such
// as the content of messages, do not change.
const UTC = /\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC/g;
const OTHERS = "pre, .letter, textarea, .stream a, .bubble, dd.id";
const CLOCK = { month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const written = new WeakMap();
const local = (text) => {
  const time = new Date(text.replace(" ", "T").replace(" UTC", "Z"));
  const parts = { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" };
  const [day, clock] = [time.toLocaleDateString("sv"), time.toLocaleTimeString("sv", parts)];
  return `${day} ${text.length > 20 ? clock : clock.replace(/:\d\d /, " ")}`;
};
const writeTimes = () => {
  const here = localStorage.zone === "here";
  const zone = document.getElementById("zone");
  zone.textContent = here ? "My time" : "UTC";
  zone.setAttribute("aria-pressed", here);
  for (const time of document.querySelectorAll(".clock")) {
    time.textContent = new Date(time.dateTime).toLocaleString("en-US", here ? CLOCK : { ...CLOCK, timeZone: "UTC" });
  }
  const texts = document.createTreeWalker(document.getElementById("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (node.parentElement.closest(OTHERS)) continue;
    if (!written.has(node) && node.data.match(UTC)) written.set(node, node.data);
    if (written.has(node)) node.data = here ? written.get(node).replace(UTC, local) : written.get(node);
  }
};
document.documentElement.classList.add("script");
writeTimes();
document.addEventListener("htmx:afterSwap", writeTimes);

document.addEventListener("click", async ({ target }) => {
  if (target.id === "zone") {
    localStorage.zone = localStorage.zone === "here" ? "utc" : "here";
    writeTimes();
  }
  if (!target.dataset.copy) return;
  await navigator.clipboard.writeText(target.dataset.copy);
  const label = target.textContent;
  target.textContent = "Copied";
  setTimeout(() => (target.textContent = label), 2000);
});

// The frame of a mail is as high as the mail. No script runs in the frame, so this page measures the mail: again if the
// frame has another width, because lines then wrap elsewhere.
const fit = (frame) => {
  const mail = frame.contentDocument?.documentElement;
  if (!mail || frame.dataset.width === `${frame.clientWidth}`) return;
  frame.dataset.width = frame.clientWidth;
  frame.style.height = 0;
  frame.style.height = `${mail.scrollHeight + 2}px`;
};
const widths = new ResizeObserver((entries) => entries.forEach(({ target }) => fit(target)));
const loaded = ({ target }) => {
  if (!target.contentDocument) return;
  delete target.dataset.width;
  fit(target);
  widths.observe(target);
};
document.addEventListener("load", loaded, true);
for (const target of document.querySelectorAll("iframe")) loaded({ target });

// The first checkbox of a bar selects all messages of its list, and a file is read into its text field.
document.addEventListener("change", async ({ target }) => {
  if ("all" in target.dataset) for (const box of target.form.querySelectorAll("[name=m]")) box.checked = target.checked;
  if (target.dataset.into) document.getElementById(target.dataset.into).value = await target.files[0].text();
});

// On a phone the filters of a list are folded.
const narrow = matchMedia("(max-width: 40rem)");
const fold = () => document.querySelectorAll(".filters").forEach((filters) => (filters.open = !narrow.matches));
narrow.addEventListener("change", fold);
fold();

// Keys are for the page, except while somebody types. Enter opens the row that has the focus, because that is a link.
const ROWS = "main :is(.stream li, tbody tr)";
document.addEventListener("keydown", (event) => {
  const [{ key, target }, step] = [event, { j: 1, k: -1 }[event.key]];
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === "Escape") {
    for (const part of document.querySelectorAll("details[open]")) part.open = part.matches(".filters") && !narrow.matches;
    document.activeElement.blur();
  }
  if (target.closest("input:not([type=checkbox], [type=radio]), textarea, select")) return;
  if (key === "/") {
    event.preventDefault();
    document.getElementById("find").select();
  } else if (step) {
    const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.querySelector("a"));
    const row = rows[Math.max(0, rows.indexOf(target.closest(ROWS)) + step)];
    row?.querySelector("a").focus();
  }
});

// On a phone the menu is a row that scrolls, so the entry of the current page is scrolled into view. With
// scrollIntoView, the first Tab would start there, behind the link that skips to the content.
const entry = document.querySelector("header nav [aria-current]");
if (entry) {
  const [menu, box] = [entry.closest("ul"), entry.getBoundingClientRect()];
  menu.scrollLeft += box.left - (menu.clientWidth - box.width) / 2;
}
