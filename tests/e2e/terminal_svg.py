"""terminal_svg.py - a screen of terminal.py as a picture."""

import html
import itertools

CELL_W, CELL_H, PAD, SIZE = 8.4, 18, 14, 14
NBSP = "\u00a0"  # blanks in a row are one blank to a browser
BACK, FORE = "#11161d", "#d5dbe3"
# SGR numbers that `burst` uses.
COLORS = {"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "36": "#56d4dd", "2": "#8b949e"}


def run(text: str, color: str, column: int, row: int) -> str:
    """One run of cells of one colour. textLength keeps columns in line whatever font there is."""
    fill = f' fill="{COLORS[color]}"' if color in COLORS else ""
    weight = ' font-weight="bold"' if color == "1" else ""
    return (f'<text x="{PAD + column * CELL_W:.1f}" y="{PAD + (row + 0.78) * CELL_H:.1f}" textLength="{len(text) * CELL_W:.1f}"'
            f'{fill}{weight}>{html.escape(text).replace(" ", NBSP)}</text>')


def svg(cells: list[list[tuple[str, str]]], columns: int, title: str) -> str:
    """Rows of (character, SGR number), as terminal.py keeps them; empty rows at the end are left out."""
    while cells and not "".join(c for c, _ in cells[-1]).strip():
        cells = cells[:-1]
    width, height = 2 * PAD + columns * CELL_W, 2 * PAD + len(cells) * CELL_H
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
           f' font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="{SIZE}">',
           f"<title>{html.escape(title)}</title>",
           f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>', f'<g fill="{FORE}">']
    for row, line in enumerate(cells):
        column = 0
        for color, group in itertools.groupby(line, key=lambda cell: cell[1]):
            text = "".join(c for c, _ in group)
            if text.strip():
                lead = len(text) - len(text.lstrip())
                out.append(run(text.strip(), color, column + lead, row))
            column += len(text)
    return "\n".join(out + ["</g>", "</svg>"]) + "\n"
