#!/usr/bin/env python3
"""Opens a page of `kiln report` in Chromium and says what is wrong with it: messages of the console,
requests, contrast of every text, charts whose texts overlap or are cut, order of headings, tables,
what the keyboard does not reach.  Speaks DevTools' protocol over a pipe; needs no package.

usage: page.py PAGE [WIDTH:SCHEME ...]      prints a line for each fault; exits with 1 if there are any
"""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions",
         "--hide-scrollbars", "--remote-debugging-pipe", "--host-resolver-rules=MAP * ~NOTFOUND"]


class Browser:
    """One page.  Chromium reads commands from file 3 and answers on file 4, each ends with a NUL."""

    def __init__(self):
        to, self.out = os.pipe()
        self.into, back = os.pipe()
        to, back = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (to, back))

        def place():
            os.dup2(to, 3)
            os.dup2(back, 4)

        self.profile = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            ["chromium", *FLAGS, "--user-data-dir=" + self.profile, "about:blank"], preexec_fn=place,
            close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to)
        os.close(back)
        self.rest, self.events, self.number, self.session = b"", [], 0, None
        pages = [t for t in self.do("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self.do("Target.attachToTarget", targetId=pages[0]["targetId"],
                               flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(domain + ".enable")

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.into, 1 << 20)
            if not more:
                sys.exit("chromium ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def do(self, method, **params):
        self.number += 1
        text = {"id": self.number, "method": method, "params": params}
        if self.session:
            text["sessionId"] = self.session
        os.write(self.out, json.dumps(text).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.read())

    def open(self, path):
        self.do("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait("Page.loadEventFired")

    def js(self, text):
        answer = self.do("Runtime.evaluate", expression=text, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def look(self, width, scheme):
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                mobile=False)
        self.do("Emulation.setEmulatedMedia",
                features=[{"name": "prefers-color-scheme", "value": scheme}])

    def key(self, name):
        code = {"Tab": 9, "Enter": 13}[name]
        text = {"text": "\r"} if name == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                    windowsVirtualKeyCode=code, **(text if kind == "keyDown" else {}))

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


STRUCTURE = r"""(() => {
const bad = [], ids = new Set(), all = s => [...document.querySelectorAll(s)];
const name = e => (e.id ? '#' + e.id : e.tagName.toLowerCase()) + ' ' + e.textContent.trim().replace(/\s+/g, ' ').slice(0, 30);
if (!document.documentElement.lang) bad.push('no lang');
if (!document.title) bad.push('no title');
for (const e of all('[id]')) ids.has(e.id) ? bad.push('id twice: ' + e.id) : ids.add(e.id);
for (const e of all('a[href^="#"]'))
  if (!ids.has(e.getAttribute('href').slice(1))) bad.push('leads nowhere: ' + e.getAttribute('href'));
let level = 0;
for (const e of all('h1, h2, h3, h4, h5, h6')) {
  const n = +e.tagName[1];
  if (n > level + 1 || (n === 1 && level)) bad.push('order of headings: ' + name(e));
  level = n;
}
for (const t of all('table')) {
  if (!t.caption || !t.caption.textContent.trim()) bad.push('no caption: ' + name(t));
  const cols = [...t.tHead.rows[0].cells];
  if (cols.some(c => c.tagName !== 'TH' || c.scope !== 'col')) bad.push('columns: ' + name(t));
  for (const r of t.tBodies[0].rows) {
    const n = [...r.cells].reduce((s, c) => s + c.colSpan, 0);
    if (n !== cols.length) bad.push('row of ' + n + ' cells, ' + cols.length + ' columns: ' + name(r));
    if (!r.matches('.note') && ![...r.cells].some(c => c.tagName === 'TH' && c.scope === 'row'))
      bad.push('row without a head: ' + name(r));
  }
}
for (const s of all('svg')) {
  const ok = k => (s.getAttribute('aria-labelledby') || '').split(' ').some(
    i => document.getElementById(i) && document.getElementById(i).tagName === k);
  if (!ok('title') || !ok('desc')) bad.push('no title or description: ' + name(s));
}
return bad; })()"""

LOOK = r"""(() => {
const bad = [], all = s => [...document.querySelectorAll(s)];
for (const d of all('details')) d.open = true;
const wide = document.documentElement.scrollWidth;
if (wide > innerWidth) bad.push('wider than the window: ' + wide);
const parts = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
const light = c => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
const contrast = (a, b) => { const x = light(a), y = light(b);
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
const style = new Map(), css = e => { if (!style.has(e)) style.set(e, getComputedStyle(e)); return style.get(e); };
const below = e => { for (; e; e = e.parentElement) { const c = parts(css(e).backgroundColor);
  if (c[3] > 0.99) return c; if (c[3] > 0) bad.push('half transparent'); } return [255, 255, 255, 1]; };
const fills = new Map();
const cells = s => { if (!fills.has(s)) fills.set(s, [...s.querySelectorAll('.on, .own, .bar')].map(
  p => [p.getBBox(), parts(css(p).fill)])); return fills.get(s); };
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = new Set();
let texts = 0;
for (let t; (t = walk.nextNode());) {
  const e = t.parentElement, s = e.closest('svg');
  if (!t.data.trim() || e.closest('script, style, title, desc, caption, .skip')) continue;
  texts++;
  let fg = parts(s ? css(e).fill : css(e).color), bg = below(s || e);
  if (s && e.closest('text')) {
    const b = e.closest('text').getBBox(), x = b.x + b.width / 2, y = b.y + b.height / 2;
    for (const [r, c] of cells(s))
      if (!e.closest('text').hasAttribute('transform') && x > r.x && x < r.x + r.width && y > r.y && y < r.y + r.height) bg = c;
  }
  const c = contrast(fg, bg), k = fg + '|' + bg;
  if (c < 4.5 && !seen.has(k)) bad.push('contrast ' + c.toFixed(2) + ': ' + t.data.trim().slice(0, 30));
  seen.add(k);
}
if (!texts) bad.push('no text');
for (const s of all('svg.chart, svg.tile')) {
  const w = s.viewBox.baseVal.width, h = s.viewBox.baseVal.height, box = [];
  for (const t of s.querySelectorAll('text')) {
    let b = t.getBBox();
    if (t.hasAttribute('transform')) {          /* turned: its ends */
      const m = t.transform.baseVal.consolidate().matrix, k = new DOMMatrix([m.a, m.b, m.c, m.d, m.e, m.f]);
      const at = (x, y) => new DOMPoint(x, y).matrixTransform(k);
      const p = [at(b.x, b.y), at(b.x + b.width, b.y), at(b.x, b.y + b.height), at(b.x + b.width, b.y + b.height)];
      const x0 = Math.min(...p.map(q => q.x)), y0 = Math.min(...p.map(q => q.y));
      b = {x: x0, y: y0, width: Math.max(...p.map(q => q.x)) - x0, height: Math.max(...p.map(q => q.y)) - y0};
      if (b.x < -1 || b.y < -1 || b.x + b.width > w + 1 || b.y + b.height > h + 1) bad.push('cut: ' + t.textContent);
      continue;
    }
    if (b.x < -1 || b.y < -2 || b.x + b.width > w + 1 || b.y + b.height > h + 2) bad.push('cut: ' + t.textContent);
    if (s.matches('.chart'))
      for (const [r, u] of box)
        if (b.x + 1 < r.x + r.width && b.x + b.width > r.x + 1 && b.y + 4 < r.y + r.height && b.y + b.height > r.y + 4)
          bad.push('overlap: ' + u + ' / ' + t.textContent);
    box.push([b, t.textContent]);
  }
}
return bad; })()"""

# What a press of Tab led to: where it stands among all that can be reached, and whether that is seen.
FOCUS = r"""(() => { const e = document.activeElement, c = getComputedStyle(e);
const r = e.getBoundingClientRect();
return [reach.indexOf(e), e.tagName + ' ' + e.textContent.trim().slice(0, 30),
        e === document.body || (c.outlineStyle !== 'none' && parseFloat(c.outlineWidth) >= 1),
        r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth]; })()"""


def keyboard(b):
    """Tab comes to every link, every folded part and every box that scrolls, and each shows it."""
    bad = []
    n = b.js("""document.querySelectorAll('details').forEach(d => d.open = false); scrollTo(0, 0);
document.activeElement.blur();
var reach = [...document.querySelectorAll('a[href], summary, [tabindex="0"]')].filter(
  e => e.tagName === 'SUMMARY' || !e.closest('details')); reach.length""")
    seen = set()
    for _ in range(n + 5):
        b.key("Tab")
        at, what, outlined, inside = b.js(FOCUS)
        if at in seen:
            break
        if at >= 0:
            seen.add(at)
        if not outlined:
            bad.append("focus is not seen: " + what)
        if not inside:
            bad.append("focus is off the screen: " + what)
    if len(seen) < n:
        bad.append(f"the keyboard reaches {len(seen)} of {n}")
    if b.js("!!document.querySelector('summary')"):
        b.js("document.querySelector('summary').focus()")
        b.key("Enter")
        if not b.js("document.querySelector('details').open"):
            bad.append("Enter does not unfold")
    return bad


def main():
    views = sys.argv[2:] or ["1400:light", "1400:dark", "800:light", "390:light", "390:dark"]
    b = Browser()
    try:
        b.open(sys.argv[1])
        bad = b.js(STRUCTURE) + keyboard(b)
        for view in views:
            width, scheme = view.split(":")
            b.look(int(width), scheme)
            bad += [f"{view}: {x}" for x in b.js(LOOK)]
        for e in b.events:
            p = e.get("params", {})
            url = p.get("request", {}).get("url", "")
            if e["method"] == "Network.requestWillBeSent" and not url.startswith(("file:", "data:")):
                bad.append("request: " + url)
            entry = p.get("entry", {})   # of a request that failed: it is told above
            if e["method"] in ("Runtime.consoleAPICalled", "Log.entryAdded", "Runtime.exceptionThrown") \
                    and entry.get("source") != "network":
                bad.append("console: " + str(entry.get("text") or p.get("type")))
    finally:
        b.close()
    for line in dict.fromkeys(bad):
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
