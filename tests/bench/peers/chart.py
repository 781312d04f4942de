"""The peers table as a picture: how many times its roofline each side takes, line by line."""

import html

COLOURS = {"reprise": "#1f77b4", "onnxruntime": "#ff7f0e", "openvino-dynamic": "#9467bd",
           "openvino-static": "#2ca02c"}
BAR, GAP, LEFT, WIDTH, TOP = 12, 14, 90, 560, 64


def text(x, y, words, size=12, anchor="start", colour="#333"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}">{html.escape(words)}</text>')


def svg(run):
    """Returns the SVG text of the JSON that peers.py writes."""
    sides = [name for name in run["lines"][0]["median_ms"] if name in COLOURS]
    most = max(line["median_ms"][side] / line["floor_ms"] for line in run["lines"] for side in sides)
    scale = WIDTH / most
    parts, y = [], TOP
    for line in run["lines"]:
        group = len(sides) * BAR
        parts.append(text(LEFT - 8, y + group / 2 + 4, line["line"], anchor="end"))
        for side in sides:
            ms = line["median_ms"][side]
            length = ms / line["floor_ms"] * scale
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" '
                         f'fill="{COLOURS[side]}"/>')
            parts.append(text(LEFT + length + 4, y + BAR - 3, f"{ms:.2f} ms", size=10))
            y += BAR
        y += GAP
    floor_x = LEFT + scale
    parts.append(f'<line x1="{floor_x:.1f}" y1="{TOP - 6}" x2="{floor_x:.1f}" y2="{y - GAP + 4}" '
                 'stroke="#d62728" stroke-dasharray="4 3"/>')
    threads = f'{run["threads"]} thread' + ("s" if run["threads"] > 1 else "")
    head = [text(8, 18, f'{run["model"]}, rows x length, {threads}: times the roofline (dashed)', 14),
            text(8, 34, f'{run["cpu"]}, {run["date"]}; medians of {run["rounds"]} rounds', 11)]
    x = 8
    for side in sides:
        head.append(f'<rect x="{x}" y="42" width="10" height="10" fill="{COLOURS[side]}"/>')
        head.append(text(x + 14, 51, side, size=11))
        x += 24 + 7 * len(side)
    height = y + 4
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 80}" '
            f'height="{height}" font-family="sans-serif">'
            f'<rect width="100%" height="100%" fill="white"/>{"".join(head + parts)}</svg>\n')
