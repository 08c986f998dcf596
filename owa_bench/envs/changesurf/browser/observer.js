// What a reader of the page sees, as one JSON string. Runs in an isolated world: the
// page cannot see it, and nothing is written into the page. An element's number comes
// from a WeakMap, counts from 1 in each document, and stays while the document stays.
(() => {
  "use strict";
  if (globalThis.owa) return;
  const refs = new WeakMap();
  const elements = new Map();
  let last = 0;
  let departures = [];
  let landed = null;

  // What no input made is told at once: the page may be gone at the next look.
  const tell = () => globalThis.owaUntrusted && owaUntrusted("");
  const hear = (type, listener) =>
    globalThis.addEventListener(type, listener, { capture: true, passive: true });
  hear("submit", (e) => {
    if (!e.isTrusted) tell();
    const form = e.target, by = e.submitter;
    const target = (by && by.getAttribute("formtarget")) || form.target;
    if (form.method !== "dialog" && (!target || target === "_self"))
      departures.push(() => !e.defaultPrevented);
  });
  hear("click", (e) => {
    if (e.isTrusted) landed = e.composedPath()[0];
    else tell();
  });
  // A frame hears it too when the whole page is left, and may then stay after all.
  if (globalThis === globalThis.top) hear("beforeunload", () => departures.push(() => true));
  if (globalThis.navigation)
    navigation.addEventListener("navigate", (e) => {
      const stays = e.destination.sameDocument || e.downloadRequest !== null;
      if (!stays) departures.push(() => !e.defaultPrevented);
    });
  const leaving = () => departures.some((left) => left());

  const tick = () =>
    new Promise((done) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        channel.port1.close();
        done();
      };
      channel.port2.postMessage(0);
    });
  const isBusy = () =>
    document.documentElement !== null &&
    document.documentElement.getAttribute("aria-busy") === "true";
  const idle = () =>
    new Promise((done) => {
      const watch = new MutationObserver(() => {
        if (!isBusy()) {
          watch.disconnect();
          done();
        }
      });
      watch.observe(document.documentElement, { attributeFilter: ["aria-busy"] });
    });
  const parsed = (doc) =>
    new Promise((done) =>
      doc.addEventListener("DOMContentLoaded", done, { once: true })
    );

  // --- frames of the same origin ---------------------------------------------------
  const inner = (frame) => {
    try {
      return frame.contentDocument;
    } catch {
      return null;
    }
  };
  const unsettled = (frame) => {
    const doc = inner(frame);
    if (doc === null) return false;
    // The blank document that a frame begins with counts as loaded; its own is to come.
    const wants = frame.hasAttribute("srcdoc") || (frame.src && frame.src !== "about:blank");
    if (wants && doc.URL === "about:blank") return true;
    const own = doc.defaultView && doc.defaultView.owa;
    return doc.readyState !== "complete" || Boolean(own && own.leaving());
  };
  const framesSettled = async () => {
    for (const frame of document.querySelectorAll("iframe"))
      if (unsettled(frame))
        await new Promise((done) =>
          frame.addEventListener("load", done, { once: true })
        );
  };

  // --- names and roles --------------------------------------------------------------
  const squeeze = (text) => text.replace(/\s+/g, " ").trim();
  const BUTTONS = new Set(["submit", "button", "reset", "image"]);
  const INPUT_ROLES = {
    checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton",
    search: "searchbox", submit: "button", button: "button", reset: "button",
    image: "button", file: "file",
  };
  const TAG_ROLES = { BUTTON: "button", TEXTAREA: "textbox", SUMMARY: "button" };
  const CONTROLS = new Set([
    "button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox",
    "listbox", "option", "slider", "spinbutton", "switch", "tab", "menuitem",
    "menuitemcheckbox", "menuitemradio", "file", "treeitem",
  ]);
  const roleOf = (el) => {
    const given = el.getAttribute("role");
    if (given) return given.trim().split(/\s+/)[0];
    const tag = el.tagName;
    if (tag === "A") return el.hasAttribute("href") ? "link" : "";
    if (tag === "INPUT") return INPUT_ROLES[el.type] || "textbox";
    if (tag === "SELECT") return el.multiple || el.size > 1 ? "listbox" : "combobox";
    if (el.isContentEditable && el.getAttribute("contenteditable") !== null)
      return "textbox";
    return TAG_ROLES[tag] || "";
  };
  const isControl = (el, role) => {
    if (el.tagName === "INPUT" && el.type === "hidden") return false;
    if (el.tagName === "SELECT") return true;
    if (role === "listbox") return false; // its options are the controls
    return CONTROLS.has(role);
  };
  const alternative = (el) =>
    el.getAttribute("aria-label") || el.getAttribute("alt") ||
    (el.tagName === "svg" && el.querySelector("title")?.textContent) || "";
  const wordsOf = (node, skip) => {
    if (node.nodeType === 3) return node.data;
    if (node.nodeType !== 1 && node.nodeType !== 11) return "";
    if (node === skip) return "";
    if (node.nodeType === 1) {
      if (node.getAttribute("aria-hidden") === "true") return "";
      if (/^(SCRIPT|STYLE|TEMPLATE|NOSCRIPT)$/.test(node.tagName)) return "";
      if (!node.checkVisibility()) return "";
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(node.tagName)) return "";
      const other = alternative(node);
      if (other) return " " + other + " ";
    }
    let text = "";
    for (const child of (node.shadowRoot || node).childNodes)
      text += wordsOf(child, skip);
    return INLINE.has(node.tagName) ? text : " " + text + " ";
  };
  const byIds = (el, ids) =>
    ids.split(/\s+/)
      .map((id) => el.getRootNode().getElementById?.(id))
      .filter(Boolean)
      .map((found) => squeeze(alternative(found) || found.textContent))
      .join(" ");
  const labelsOf = (el) =>
    el.labels && el.labels.length
      ? [...el.labels].map((label) => squeeze(wordsOf(label, el))).join(" ")
      : "";
  const ownWords = (el) =>
    el.tagName === "INPUT"
      ? BUTTONS.has(el.type) ? el.value || el.alt : ""
      : /^(SELECT|TEXTAREA)$/.test(el.tagName) ? "" : squeeze(wordsOf(el, null));
  const nameOf = (el) => {
    const pointed = el.getAttribute("aria-labelledby");
    const name =
      (pointed && byIds(el, pointed)) || el.getAttribute("aria-label") ||
      labelsOf(el) || ownWords(el) || el.getAttribute("title") ||
      el.getAttribute("placeholder") || "";
    return squeeze(name);
  };

  // --- geometry ---------------------------------------------------------------------
  const boxOf = (el, at) => {
    const box = el.getClientRects()[0];
    if (!box) return null;
    return { x: box.x + at.x, y: box.y + at.y, w: box.width, h: box.height };
  };
  const inView = (box) => {
    const x = box.x + box.w / 2, y = box.y + box.h / 2;
    return x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  };
  const owns = (el, hit) => {
    for (let node = hit; node; node = node.parentNode || node.host) {
      if (node === el) return true;
      if (node.tagName === "LABEL" && node.control === el) return true;
    }
    return false;
  };
  const coverOf = (el, box, at) => {
    const root = el.getRootNode();
    const x = box.x - at.x + box.w / 2, y = box.y - at.y + box.h / 2;
    const hit = (root.elementFromPoint ? root : el.ownerDocument).elementFromPoint(x, y);
    if (hit === null) return "something outside the window";
    if (owns(el, hit) || el.contains(hit)) return "";
    const near = hit.closest("dialog,[role=dialog],button,a,header,nav,form,[aria-label]");
    const by = near || hit;
    return squeeze(`${roleOf(by) || by.tagName.toLowerCase()} "${nameOf(by).slice(0, 40)}"`);
  };

  // --- one control ------------------------------------------------------------------
  const refOf = (el) => {
    let ref = refs.get(el);
    if (ref === undefined) {
      ref = ++last;
      refs.set(el, ref);
      elements.set(ref, new WeakRef(el));
    }
    return ref;
  };
  const valueOf = (el) => {
    if (el.tagName === "SELECT")
      return [...el.selectedOptions].map((o) => squeeze(o.label)).join(", ");
    if (el.tagName === "TEXTAREA") return el.value;
    if (el.tagName === "INPUT") {
      return /^(checkbox|radio|submit|button|reset|image)$/.test(el.type) ? "" : el.value;
    }
    if (el.isContentEditable) return squeeze(el.textContent);
    return el.getAttribute("aria-valuetext") || el.getAttribute("aria-valuenow") || "";
  };
  const on = (el, attribute) => {
    const value = el.getAttribute(attribute);
    return value !== null && value !== "false";
  };
  const stateOf = (el, proxied) => {
    const of = proxied || el;
    return (
      (of.matches(":disabled") || on(of, "aria-disabled") ? 1 : 0) |
      (of.checked === true || on(of, "aria-checked") ? 2 : 0) |
      (of.required === true || on(of, "aria-required") ? 4 : 0) |
      (on(of, "aria-invalid") || (of.willValidate && !of.validity.valid) ? 8 : 0) |
      (el.getRootNode().activeElement === of ? 16 : 0) |
      (of.readOnly === true || on(of, "aria-readonly") ? 64 : 0) |
      (on(of, "aria-expanded") ? 128 : 0) |
      (on(of, "aria-selected") || on(of, "aria-pressed") || on(of, "aria-current") ? 256 : 0)
    );
  };
  const optionsOf = (el) =>
    el.tagName === "SELECT"
      ? [...el.options].map((o) => [o.value, squeeze(o.label), o.disabled ? 0 : 1])
      : [];
  const describe = (el, role, at, group, modal, proxied) => {
    const box = boxOf(el, at);
    if (box === null || box.w <= 0 || box.h <= 0) return null;
    // Moved off the page for good; a box that scrolled out of its container is nearer.
    if (Math.min(box.x + scrollX + box.w, box.y + scrollY + box.h) < -4000) return null;
    const of = proxied || el;
    const seen = inView(box);
    const cover = seen ? coverOf(el, box, at) : "";
    const flags = stateOf(el, proxied) | (seen ? 32 : 0) | (modal ? 512 : 0);
    const round = (v) => Math.round(v * 10) / 10;
    return [
      refOf(el), role, nameOf(of), valueOf(of), flags,
      round(box.x), round(box.y), round(box.w), round(box.h), cover,
      of.tagName.toLowerCase(), of.type || "", of.id || "", of.getAttribute("name") || "",
      el.getAttribute("href") || "", group, optionsOf(of),
      flags & 8 && of.validationMessage ? of.validationMessage : "",
    ];
  };

  // --- the page in reading order ----------------------------------------------------
  const INLINE = new Set([
    "A", "ABBR", "B", "BDI", "CITE", "CODE", "DATA", "EM", "I", "KBD", "LABEL", "MARK",
    "OUTPUT", "Q", "S", "SAMP", "SMALL", "SPAN", "STRONG", "SUB", "SUP", "TIME", "U", "SLOT",
  ]);
  const SILENT = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "HEAD", "OPTION"]);
  const GROUPS = new Set(["group", "radiogroup", "region", "dialog", "alertdialog", "form",
    "search", "navigation", "listbox", "tablist", "menu"]);

  class Reading {
    constructor() {
      this.lines = [];
      this.controls = [];
      this.buffer = "";
      this.prefix = "";
      this.group = "";
      this.modal = false;
      this.at = { x: 0, y: 0 };
    }
    flush() {
      const text = squeeze(this.buffer);
      this.buffer = "";
      if (text) {
        this.lines.push(this.prefix + text);
        this.prefix = "";
      }
    }
    children(node) {
      if (node.tagName === "SLOT" && node.assignedNodes().length)
        for (const child of node.assignedNodes()) this.walk(child);
      else for (const child of (node.shadowRoot || node).childNodes) this.walk(child);
    }
    walk(node) {
      if (node.nodeType === 3) {
        if (node.parentElement === null || node.parentElement.checkVisibility({ visibilityProperty: true }))
          this.buffer += node.data;
        return;
      }
      if (node.nodeType !== 1 || SILENT.has(node.tagName)) return;
      if (node.getAttribute("aria-hidden") === "true") return;
      if (!node.checkVisibility() && node.tagName !== "SLOT") {
        if (getComputedStyle(node).display === "contents") this.children(node);
        return;
      }
      this.element(node);
    }
    element(el) {
      const role = roleOf(el);
      if (isControl(el, role)) return this.control(el, role, null);
      if (el.tagName === "LABEL") return this.label(el);
      if (el.tagName === "IFRAME") return this.frame(el);
      if (/^H[1-6]$/.test(el.tagName) || role === "heading") return this.heading(el);
      if (el.tagName === "TR" || role === "row") return this.row(el);
      if (el.tagName === "IMG" || el.tagName === "svg") {
        this.buffer += " " + alternative(el) + " ";
        return;
      }
      if (role === "alert" || role === "status") return this.notice(el);
      if (el.tagName === "FIELDSET" || el.tagName === "DIALOG" || GROUPS.has(role))
        return this.grouped(el, role);
      if (INLINE.has(el.tagName)) return this.children(el);
      this.flush();
      if (el.tagName === "LI" || role === "listitem") this.prefix = "- ";
      this.children(el);
      this.flush();
      this.prefix = "";
    }
    control(el, role, proxied) {
      const found = el.checkVisibility({ visibilityProperty: true })
        ? describe(el, role, this.at, this.group, this.modal, proxied)
        : null;
      if (found === null) return;
      this.flush();
      this.lines.push(found[0]);
      this.controls.push(found);
    }
    label(el) {
      const of = el.control;
      if (!of) return this.children(el);
      if (!of.checkVisibility() && /^(checkbox|radio)$/.test(of.type))
        return this.control(el, of.type, of); // a styled label stands for its input
      for (const child of el.querySelectorAll("input,select,textarea")) this.walk(child);
    }
    heading(el) {
      this.flush();
      const level = /^H[1-6]$/.test(el.tagName) ? Number(el.tagName[1])
        : Number(el.getAttribute("aria-level") || 2);
      const mark = "#".repeat(level) + " ";
      if (el.querySelector("a[href],button")) {
        this.prefix = mark;
        this.children(el);
      } else {
        const text = squeeze(wordsOf(el, null));
        if (text) this.lines.push(mark + text);
      }
      this.flush();
      this.prefix = "";
    }
    row(el) {
      this.flush();
      const cells = [...el.children].filter((c) => c.checkVisibility());
      const texts = cells.map((cell) => squeeze(plain(cell)));
      if (texts.some(Boolean)) this.lines.push("| " + texts.join(" | ") + " |");
      const outer = this.group;
      this.group = texts.find(Boolean) || outer;
      for (const cell of cells)
        for (const child of controlsIn(cell)) this.walk(child);
      this.group = outer;
    }
    notice(el) {
      this.flush();
      const text = squeeze(plain(el));
      if (text) this.lines.push("! " + text);
      for (const child of controlsIn(el)) this.walk(child);
    }
    grouped(el, role) {
      this.flush();
      const legend = el.tagName === "FIELDSET" ? el.querySelector(":scope > legend") : null;
      const pointed = el.getAttribute("aria-labelledby");
      const name = squeeze((legend && wordsOf(legend, null)) ||
        (pointed && byIds(el, pointed)) || el.getAttribute("aria-label") || "");
      const outer = this.group, modal = this.modal;
      const isDialog = el.tagName === "DIALOG" || /dialog$/.test(role);
      if (name) this.lines.push(`-- ${isDialog ? "dialog: " : ""}${name} --`);
      else if (isDialog) this.lines.push("-- dialog --");
      this.group = name || outer;
      this.modal = modal || isDialog;
      for (const child of (el.shadowRoot || el).childNodes)
        if (child !== legend) this.walk(child);
      this.flush();
      this.group = outer;
      this.modal = modal;
    }
    frame(el) {
      const doc = inner(el);
      if (doc === null || doc.body === null) return;
      this.flush();
      const box = el.getBoundingClientRect(), outer = this.at;
      this.at = { x: outer.x + box.x + el.clientLeft, y: outer.y + box.y + el.clientTop };
      this.children(doc.body);
      this.flush();
      this.at = outer;
    }
  }
  const OPERABLE = "a[href],button,input,select,textarea,summary,[role],[contenteditable],label";
  const controlsIn = (el) => {
    const found = [];
    for (const inside of el.querySelectorAll(OPERABLE)) {
      const role = roleOf(inside);
      if (isControl(inside, role) || (inside.tagName === "LABEL" && inside.control &&
          !inside.control.checkVisibility()))
        found.push(inside);
    }
    return found;
  };
  const plain = (node) => {
    if (node.nodeType === 3) return node.data;
    if (node.nodeType !== 1 || SILENT.has(node.tagName)) return "";
    if (node.getAttribute("aria-hidden") === "true" || !node.checkVisibility()) return "";
    if (isControl(node, roleOf(node)) || node.tagName === "LABEL") return "";
    const other = alternative(node);
    if (other) return " " + other + " ";
    let text = "";
    for (const child of (node.shadowRoot || node).childNodes) text += plain(child);
    return INLINE.has(node.tagName) ? text : " " + text + " ";
  };

  const collect = (intended) => {
    const reading = new Reading();
    if (document.body !== null) reading.children(document.body);
    reading.flush();
    const target = intended ? elements.get(intended)?.deref() : null;
    const own = target && target.ownerDocument.defaultView && target.ownerDocument.defaultView.owa;
    const hit = own ? own.landed() : null;
    // A frame that the click made load another document cannot be asked any more.
    const reached = own ? Boolean(hit && (owns(target, hit) || target.contains(hit))) : true;
    return JSON.stringify([
      location.href, document.title, reading.lines, reading.controls,
      [Math.round(scrollX), Math.round(scrollY), innerWidth, innerHeight,
        document.documentElement.scrollHeight],
      reached,
    ]);
  };

  globalThis.owa = {
    leaving,
    landed: () => landed,
    stay: () => {
      departures = [];
    },
    observe: async (intended) => {
      await tick();
      for (;;) {
        if (leaving()) return "";
        if (document.readyState === "loading") await parsed(document);
        else if (isBusy()) await idle();
        else break;
      }
      await framesSettled();
      if (leaving()) return "";
      const seen = collect(intended);
      landed = null;
      return seen;
    },
    // Bring an element into view and say where it is now: [x, y, w, h, cover], null if gone.
    reveal: (ref) => {
      const el = elements.get(ref)?.deref();
      if (!el || !el.isConnected) return "null";
      el.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      const at = { x: 0, y: 0 };
      for (let w = el.ownerDocument.defaultView; w && w.frameElement; w = w.parent) {
        const box = w.frameElement.getBoundingClientRect();
        at.x += box.x + w.frameElement.clientLeft;
        at.y += box.y + w.frameElement.clientTop;
      }
      const box = boxOf(el, at);
      if (box === null) return "null";
      const cover = inView(box) ? coverOf(el, box, at) : "something outside the window";
      return JSON.stringify([box.x, box.y, box.w, box.h, cover]);
    },
    // Choose an option of a select by its place; the events are those a reader makes.
    choose: (ref, place) => {
      const el = elements.get(ref)?.deref();
      if (!el || !el.isConnected) return "null";
      el.focus();
      el.selectedIndex = place;
      el.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
      el.dispatchEvent(new Event("change", { bubbles: true }));
      return "[]";
    },
    focus: (ref) => {
      const el = elements.get(ref)?.deref();
      if (!el || !el.isConnected) return "null";
      el.focus();
      return "[]";
    },
  };
})();
