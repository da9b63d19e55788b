// A page that cannot update itself says so until the console answers again.
document.addEventListener("htmx:afterRequest", (event) => {
  document.getElementById("stale").hidden = event.detail.successful === true;
});
