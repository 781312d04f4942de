"""A page that draws a dashboard's panels from the answers of a Prometheus: titles, places, queries, legends and units
are the file's. It is no Grafana, and looks like none.

    range_of = ranges("http://localhost:9090", seconds=300, variables={"$model": ".*", ...})
    empty = draw(json.loads(path.read_text()), range_of, "dashboard.png")
"""

import html
import json
import math
import pathlib
import re
import time
import urllib.parse
import urllib.request

from testing.web.browser import Browser

COLUMNS, ROW = 24, 30  # of Grafana's grid: columns of the width, and pixels of a row
COLOURS = ["#2b6cb0", "#c05621", "#2f855a", "#b83280", "#6b46c1", "#975a16", "#2c7a7b", "#c53030"]
STYLE = """
body { margin: 16px; background: #f4f5f7; font: 12px sans-serif; color: #1a202c; position: relative }
h1 { font-size: 17px; margin: 0 0 10px } h1 small { color: #4a5568; font-weight: normal }
.board { position: relative } .board > * { position: absolute; box-sizing: border-box }
h2 { font-size: 14px; margin: 0; padding: 7px 4px } figure { margin: 0; padding: 4px }
figure > div { background: #fff; border: 1px solid #cbd5e0; border-radius: 4px; height: 100%; padding: 6px 8px;
  box-sizing: border-box; overflow: hidden }
figcaption { font-weight: bold; white-space: nowrap; overflow: hidden }
ul { margin: 2px 0 0; padding: 0; list-style: none; line-height: 15px }
li { display: inline-block; margin-right: 10px; color: #2d3748; white-space: nowrap } li b { font-weight: bold; margin-right: 3px }
text { font-size: 10px; fill: #4a5568 }
"""


def number(value, unit):
    """Writes a value as people read it, by Grafana's name of its unit."""
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "s":
        return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms" if value >= 0.001 else f"{1e6 * value:.3g} µs"
    if unit in ("bytes", "decbytes"):
        for name in ("B", "KiB", "MiB", "GiB"):
            if value < 1024 or name == "GiB":
                return f"{value:.3g} {name}"
            value /= 1024
    if unit == "µs":
        return number(value / 1e6, "s")
    suffix = {"ops": " /s", "reqps": " /s"}.get(unit, "")
    return f"{value:.3g}{suffix}"


def legend(form, labels):
    if not form:
        return ", ".join(f"{name}={value}" for name, value in labels.items() if name != "__name__") or "value"
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match.group(1), ""), form)


def lines_of(panel, range_of):
    """(legend, [(time, value)]) of each series of the panel."""
    lines = []
    for target in panel["targets"]:
        for series in range_of(target["expr"]):
            points = [(time, float(value)) for time, value in series["values"]]
            lines.append((legend(target.get("legendFormat", ""), series["metric"]),
                          [point for point in points if math.isfinite(point[1])]))
    return lines


def chart(lines, unit, width, height):
    """Draws the lines as a picture, with the largest and the smallest value at its side."""
    left, top, bottom = 54, 6, 6
    times = [time for _, points in lines for time, _ in points]
    values = [value for _, points in lines for _, value in points]
    first, last = min(times), max(times)
    low, high = min(0, min(values)), max(values)
    high = high if high > low else low + 1

    def at(time, value):
        x = left + (width - left - 4) * (time - first) / ((last - first) or 1)
        return f"{x:.1f},{top + (height - top - bottom) * (high - value) / (high - low):.1f}"

    parts = []
    for share in (0, 0.5, 1):
        y = top + (height - top - bottom) * (1 - share)
        parts.append(f'<line x1="{left}" x2="{width - 4}" y1="{y}" y2="{y}" stroke="#e2e8f0"/>'
                     f'<text x="{left - 5}" y="{y + 3}" text-anchor="end">{number(low + share * (high - low), unit)}</text>')
    for index, (_, points) in enumerate(lines):
        parts.append(f'<polyline points="{" ".join(at(*point) for point in points)}" fill="none" stroke-width="1.5" '
                     f'stroke="{COLOURS[index % len(COLOURS)]}"/>')
    return f'<svg width="{width}" height="{height}">{"".join(parts)}</svg>'


def page(dashboard, range_of, note="", width=1440):
    """Draws the page; returns it and the titles of panels whose queries find no series."""
    cell, parts, empty, end = width / COLUMNS, [], [], 0
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        box = (f'left:{place["x"] * cell:.0f}px;top:{place["y"] * ROW}px;width:{place["w"] * cell:.0f}px;'
               f'height:{place["h"] * ROW}px')
        end = max(end, place["y"] + place["h"])
        title = html.escape(panel["title"])
        if panel["type"] == "row":
            parts.append(f'<h2 style="{box}">{title}</h2>')
            continue
        lines = lines_of(panel, range_of)
        if not lines:
            empty.append(panel["title"])
        # A mean of nothing, as of captures while there are none, is no number.
        lines = [line for line in lines if line[1]]
        unit = panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "none")
        drawn = chart(lines, unit, int(place["w"] * cell) - 28, place["h"] * ROW - 80) if lines else "no value in this time"
        names = "".join(f'<li><b style="color:{COLOURS[index % len(COLOURS)]}">—</b>{html.escape(name)}</li>'
                        for index, (name, _) in enumerate(lines[:8]))
        more = f"<li>and {len(lines) - 8} more</li>" if len(lines) > 8 else ""
        parts.append(f'<figure style="{box}"><div><figcaption>{title}</figcaption>{drawn}<ul>{names}{more}</ul>'
                     "</div></figure>")
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(dashboard["title"])}</title>'
            f'<style>{STYLE}</style></head><body><h1>{html.escape(dashboard["title"])} <small>{html.escape(note)}</small></h1>'
            f'<div class="board" style="width:{width}px;height:{end * ROW}px">{"".join(parts)}</div></body></html>'), empty


def ranges(prometheus_url, seconds, variables):
    """range_of of a Prometheus: the last `seconds`, with values for the variables that only Grafana knows."""
    def range_of(expression):
        for name, value in variables.items():
            expression = expression.replace(name, value)
        end = time.time()
        query = urllib.parse.urlencode({"query": expression, "start": end - seconds, "end": end, "step": seconds / 120})
        with urllib.request.urlopen(f"{prometheus_url}/api/v1/query_range?{query}", timeout=30) as answer:
            return json.load(answer)["data"]["result"]
    return range_of


def draw(dashboard, range_of, picture, note="", rows=1000):
    """Draws a PNG file of the panels in the first `rows` of the grid; returns the titles of those without a series."""
    panels = [panel for panel in dashboard["panels"] if panel["gridPos"]["y"] < rows]
    text, empty = page({**dashboard, "panels": panels}, range_of, note)
    source = pathlib.Path(picture).with_suffix(".html")
    source.write_text(text)
    with Browser() as browser:
        browser.open(source.as_uri(), width=1480, height=900).screenshot(picture)
    source.unlink()
    return empty
