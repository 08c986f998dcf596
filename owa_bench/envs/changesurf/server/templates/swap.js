(() => {
const root = document.documentElement;
async function go(url, init) {
root.setAttribute("aria-busy", "true");
try {
const reply = await fetch(url, init);
const next = new DOMParser().parseFromString(await reply.text(), "text/html");
const to = new URL(reply.url || url, location.href);
if (to.origin !== location.origin) { location.href = to; return; }
document.title = next.title;
document.body.replaceWith(next.body);
history.pushState(null, "", to);
scrollTo(0, 0);
} finally { root.removeAttribute("aria-busy"); }
}
const local = (url) => new URL(url, location.href).origin === location.origin;
document.addEventListener("click", (event) => {
const link = event.target.closest("a[href]");
if (!link || !local(link.href)) return;
event.preventDefault();
go(link.href);
});
document.addEventListener("submit", (event) => {
const form = event.target;
if (!local(form.action)) return;
event.preventDefault();
const data = new URLSearchParams(new FormData(form, event.submitter));
if (form.method === "get") go(form.action + "?" + data);
else go(form.action, { method: "POST", body: data });
});
addEventListener("popstate", () => location.reload());
})();
