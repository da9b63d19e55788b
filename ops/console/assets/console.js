// What pages need beside htmx: they are whole without it, and then stand still.

// A page that cannot update itself says so until the console answers again.
document.addEventListener("htmx:afterRequest", (event) => {
  document.getElementById("stale").hidden = event.detail.successful === true;
});

// An update takes away nothing that somebody has selected or reads by the keyboard. A page that has become
// another one is loaded anew.
document.addEventListener("htmx:beforeSwap", (event) => {
  const update = event.detail;
  const focused = document.activeElement;
  const busy = !getSelection().isCollapsed || (update.target.contains(focused) && !focused.id);
  if (!update.shouldSwap) return;
  if (!update.serverResponse.includes('id="live"')) location.reload();
  else if (!busy) return;
  update.shouldSwap = false;
});

// A form is sent once: a second click would be refused, although the first did what it says.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
addEventListener("pageshow", (event) => event.persisted && location.reload());
