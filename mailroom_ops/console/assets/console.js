// What pages need beside htmx: they are whole without it, and then stand still.

// A page that cannot update itself says so until the console answers again.
document.addEventListener("htmx:afterRequest", (event) => {
  document.getElementById("stale").hidden = event.detail.successful === true;
});

// An update takes away nothing that somebody has selected, opened or reads by the keyboard. A page that has become
// another one is loaded anew.
document.addEventListener("htmx:beforeSwap", (event) => {
  const update = event.detail;
  if (!update.shouldSwap || update.target.id !== "live") return;
  const selection = getSelection();
  const reading = update.target.querySelector(":focus-visible:not([id]), details[open]:not([hx-preserve])");
  const busy = reading || (!selection.isCollapsed && selection.containsNode(update.target, true));
  if (!update.serverResponse.includes('id="live"')) location.reload();
  else if (!busy) return;
  update.shouldSwap = false;
});

// A double click sends a form once: the second would be refused, although the first did what it says.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => delete form.dataset.sent, 5000);
});
addEventListener("pageshow", (event) => event.persisted && location.reload());
