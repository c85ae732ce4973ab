# SPDX-License-Identifier: Apache-2.0
"""What is painted on the page's heatmap? Read back from its pixels."""

LEFT, RIGHT, TOP, BOTTOM = 58, 8, 6, 20  # margins of a chart: its axes are there
CIVIDIS = ("00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838")


def palette():
    """Every colour that represents a count."""
    anchors = [tuple(int(one[i:i + 2], 16) for i in (0, 2, 4)) for one in CIVIDIS]
    return [tuple(a + (b - a) * step / 40 for a, b in zip(low, high)) for low, high in zip(anchors, anchors[1:])
            for step in range(41)]


def painted(chrome):
    """{(time, latency)} of the heatmap's pixels that represent I/Os."""
    begin, until, low, high = chrome.run(
        "const d = document.querySelector('#heatmap').dataset; return [d.from, d.until, d.low, d.high].map(Number)")
    width, height, data = chrome.pixels("#heatmap canvas")
    colours, known = palette(), {}
    rows = high - low + 3
    row_height = (height - TOP - BOTTOM) / rows
    result = []
    for y in range(TOP, height - BOTTOM):
        row = int((y + 0.5 - TOP) / row_height)
        if not 1 <= row <= high - low + 1:
            continue
        word = high + 1 - row
        seconds = 2 ** ((word - 2 - 159) / 8)
        for x in range(LEFT, width - RIGHT):
            at = 4 * (y * width + x)
            rgb = data[at:at + 3]
            if rgb not in known:
                known[rgb] = min(sum((a - b) ** 2 for a, b in zip(rgb, one)) for one in colours) < 60
            if known[rgb] and data[at + 3] > 250:
                result.append((begin + (x + 0.5 - LEFT) / (width - LEFT - RIGHT) * (until - begin), seconds))
    return result


def shares(chrome, begin, end, colour):
    """The share of the heatmap's pixels between two times that have this colour: "rgb" in hexadecimal."""
    from_, until = chrome.run("const d = document.querySelector('#heatmap').dataset; return [d.from, d.until].map(Number)")
    width, height, data = chrome.pixels("#heatmap canvas")
    wanted = tuple(int(colour[i:i + 2], 16) for i in (0, 2, 4))
    inside = [LEFT + round((moment - from_) / (until - from_) * (width - LEFT - RIGHT)) for moment in (begin, end)]
    seen = hits = 0
    for y in range(TOP + 12, height - BOTTOM):
        for x in range(max(LEFT, inside[0] + 2), min(width - RIGHT, inside[1] - 2)):
            at = 4 * (y * width + x)
            seen += 1
            hits += sum(abs(a - b) for a, b in zip(data[at:at + 3], wanted)) < 24 and data[at + 3] > 200
    return hits / max(1, seen)
