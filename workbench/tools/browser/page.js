// What a page says: its text as Markdown, and where its controls are. Runs inside the page, which may lie about itself.
([maxChars, maxControls]) => {
  const SKIP = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "SVG", "HEAD", "IFRAME", "CANVAS"]);
  const BLOCK = new Set(["P", "DIV", "SECTION", "ARTICLE", "HEADER", "FOOTER", "MAIN", "NAV", "ASIDE", "UL", "OL",
    "TABLE", "FORM", "FIELDSET", "BLOCKQUOTE", "FIGURE", "DL", "DETAILS"]);
  let left = maxChars;
  const hidden = (e) => { const s = getComputedStyle(e); return s.display === "none" || s.visibility === "hidden"; };
  const inside = (e) => Array.from(e.childNodes, text).join("");
  const flat = (s) => String(s || "").replace(/\s+/g, " ").trim();
  const text = (n) => {
    if (left <= 0) return "";
    if (n.nodeType === 3) { const s = n.data.replace(/\s+/g, " "); left -= s.length; return s; }
    if (n.nodeType !== 1 || SKIP.has(n.tagName.toUpperCase()) || hidden(n)) return "";
    const tag = n.tagName.toUpperCase();
    if (/^H[1-6]$/.test(tag)) return "\n\n" + "#".repeat(+tag[1]) + " " + flat(inside(n)) + "\n\n";
    if (tag === "BR") return "\n";
    if (tag === "HR") return "\n\n---\n\n";
    if (tag === "PRE") { const s = n.textContent.slice(0, Math.max(0, left)); left -= s.length; return "\n\n```\n" + s + "\n```\n\n"; }
    if (tag === "CODE") return "`" + inside(n) + "`";
    if (tag === "STRONG" || tag === "B") return "**" + inside(n) + "**";
    if (tag === "LI") return "\n- " + inside(n).trim();
    if (tag === "A") return "[" + flat(inside(n)) + "](" + String(n.getAttribute("href") || "").slice(0, 300) + ")";
    if (tag === "IMG") return "![" + flat(n.alt).slice(0, 200) + "]";
    if (tag === "BUTTON") return "[button: " + flat(inside(n)) + "]";
    if (tag === "SELECT" || tag === "TEXTAREA" || tag === "INPUT") {
      const kind = tag === "INPUT" ? n.type : tag.toLowerCase();
      const value = kind === "password" || kind === "hidden" ? "" : flat(n.value).slice(0, 200);
      return kind === "hidden" ? "" : "[" + kind + " " + flat(n.name || n.id || n.placeholder) + (value ? " = " + value : "") + "]";
    }
    if (tag === "TR") return "\n| " + Array.from(n.children, (c) => flat(inside(c))).join(" | ") + " |";
    return BLOCK.has(tag) ? "\n\n" + inside(n) + "\n\n" : inside(n);
  };
  const markdown = document.body ? text(document.body).replace(/[ \t]+\n/g, "\n").replace(/\n{3,}/g, "\n\n").trim() : "";
  const controls = [];
  for (const e of document.querySelectorAll("a[href], button, input, select, textarea, [role=button], [onclick]")) {
    if (controls.length >= maxControls) break;
    const r = e.getBoundingClientRect();
    if (hidden(e) || r.width < 1 || r.height < 1 || r.bottom < 0 || r.right < 0 || r.top > innerHeight || r.left > innerWidth) continue;
    const label = flat(e.innerText || e.getAttribute("aria-label") || e.placeholder || e.name || e.title || e.id).slice(0, 80);
    controls.push([e.tagName.toLowerCase() + (e.type ? ":" + e.type : ""), label, Math.round(r.x + r.width / 2), Math.round(r.y + r.height / 2)]);
  }
  return { markdown, cut: left <= 0, controls };
}
