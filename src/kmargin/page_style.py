"""How pages look: on screens wide and narrow, light and dark, and on paper."""

from kmargin.palette import MEANINGS


def colours(theme: str) -> str:
    """The colours of a theme, by meaning, for styles and figures."""
    return " ".join(f"--{name}: {getattr(shades, theme)};" for name, shades in MEANINGS.items())


def apart(table: str, columns: str) -> str:
    """A table whose rows are cards: the first cell on top, the others in columns with their labels."""
    return f"""
{table}, {table} tbody {{ display: block; width: 100%; max-width: 100%; }}
{table} thead {{ position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }}
{table} tr {{ display: grid; grid-template-columns: {columns}; grid-auto-flow: dense; gap: .3rem .8rem;
  padding: .6rem 0; border-bottom: 1px solid var(--line); }}
{table} td {{ display: block; border: 0; padding: 0; text-align: left; white-space: normal; min-width: 0;
  max-width: none; overflow-wrap: anywhere; }}
{table} td.shade {{ padding: .1rem .3rem; }} {table} td.empty {{ display: none; }}
{table} td:first-child {{ font-weight: 600; }}
{table} td:first-child, {table} td.long {{ grid-column: 1 / -1; }}
{table} td[data-label]::before {{ content: attr(data-label); display: block; color: var(--soft);
  font-size: .85rem; font-weight: 400; line-height: 1.2; }}
{table} td:first-child::before {{ display: none; }}
"""


THEMES = f"""
:root {{ color-scheme: light dark; {colours("light")} }}
@media (prefers-color-scheme: dark) {{ :root {{ {colours("dark")} }} }}
@media print {{ :root {{ color-scheme: light; {colours("light")} }} }}
"""

TEXT = """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1.5rem 4rem; max-width: 75rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .4rem 0 .6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 2.4rem 0 .6rem; padding-top: .9rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; overflow-wrap: break-word; }
a { color: inherit; text-underline-offset: .15em; }
code { background: var(--shade); border-radius: 3px; padding: .05em .3em; font-size: .92em;
  overflow-wrap: anywhere; }
nav { font-size: .92rem; color: var(--soft); } nav a { display: inline-block; margin: 0 1.1rem .3rem 0; }
.lead { font-size: 1.3rem; line-height: 1.4; margin: .2rem 0 1rem; max-width: 40rem;
  overflow-wrap: anywhere; }
.soft { color: var(--soft); } p.soft { font-size: .92rem; }
.aside { color: var(--soft); font-weight: 400; display: inline-block; min-width: 3.1em; margin-left: .3em;
  text-align: left; }
.note { background: var(--shade); border-left: 4px solid var(--soft); border-radius: 4px;
  padding: .5rem .9rem; margin: .7rem 0; max-width: none; }
.warning { border-left-color: var(--bad); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .7rem;
  margin: 1rem 0; }
.card { background: var(--shade); border-radius: 8px; padding: .6rem .8rem; font-size: .9rem;
  line-height: 1.35; overflow-wrap: anywhere; }
.card b { display: block; font-size: 1.35rem; line-height: 1.3; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 0 2.5rem; align-items: start; }
.columns > * { min-width: 0; } .columns h2 { border-top: 0; margin-top: 0; padding-top: 0; }
.terms { columns: 22rem 3; column-gap: 2.5rem; margin: .6rem 0; color: var(--soft); font-size: .88rem; }
.terms p { margin: 0 0 .4rem; break-inside: avoid; max-width: none; }
.answer { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); margin-top: 1rem; }
details { margin: .8rem 0; } summary { cursor: pointer; text-decoration: underline;
  text-decoration-color: var(--faint); text-underline-offset: .15em; }
"""

# a box that scrolls has a shadow on the side where there is more
TABLES = (
    """
.scroll { overflow-x: auto; margin: .7rem 0; background:
  linear-gradient(to right, var(--paper) 40%, transparent) 0 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--paper) 40%, transparent) 100% 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to right, color-mix(in srgb, var(--ink) 30%, transparent), transparent)
    0 0 / .8rem 100% no-repeat scroll,
  linear-gradient(to left, color-mix(in srgb, var(--ink) 30%, transparent), transparent)
    100% 0 / .8rem 100% no-repeat scroll; }
.swipe { display: none; color: var(--soft); font-size: .85rem; margin: .5rem 0 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; color: var(--soft); padding-bottom: .35rem; }
th, td { padding: .24rem .5rem; text-align: right; white-space: nowrap; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { white-space: normal; font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom; }
th:first-child, td:first-child, .text { text-align: left; }
td:first-child, th:first-child { padding-left: 0; }
td.good { color: var(--curve); font-weight: 600; }
td.bad { color: var(--bad); font-weight: 600; }
td.strong { font-weight: 700; }
tr.marked td { background: var(--shade); font-weight: 600; }
tr.first td { border-top: 2px solid var(--line); }
.name { white-space: normal; text-align: left; min-width: 4.5rem; max-width: 22rem;
  overflow-wrap: break-word; }
.anywhere { overflow-wrap: anywhere; }
.full { width: 100%; }
.two .aside { display: block; margin: 0; text-align: right; font-size: .85rem; }
.bars { text-align: left; white-space: nowrap; }
.track { display: inline-block; width: 6.5rem; height: .8rem; vertical-align: middle; margin-right: .5rem;
  background: var(--shade); position: relative; }
.track.middle::after { content: ""; position: absolute; left: 50%; top: -.15rem; bottom: -.15rem;
  border-left: 1px solid var(--soft); }
.bar { display: block; height: 100%; background: var(--soft); }
.bar.positive { background: var(--positive); } .bar.negative { background: var(--negative); }
.mark { display: inline-block; width: .65em; height: .65em; margin-right: .4em; border-radius: 50%; }
.mark.positive { background: var(--positive); }
.mark.negative { background: var(--negative); border-radius: 0; }
.shade { background: color-mix(in srgb, var(--tint) var(--share), transparent); }
.heat td { padding-left: .35rem; padding-right: .35rem; } .heat td:first-child { padding-left: 0; }
"""
    + apart(".always", "repeat(auto-fill, minmax(4rem, 1fr))")
    + ".always tr { gap: .3rem; }"
)

PLOTS = """
.strip { margin: .6rem 0 1rem; font-size: .85rem; }
.scale { position: relative; height: 1rem; background: var(--shade); border-radius: 3px; }
.scale span { position: absolute; top: -.25rem; bottom: -.25rem; }
.scale .interval { top: 0; bottom: 0; border-radius: 2px;
  background: color-mix(in srgb, var(--curve) 45%, transparent); }
.scale .at { border-left: 4px solid var(--curve); margin-left: -2px; }
.scale .guess { border-left: 3px dotted var(--soft); }
.ends { display: flex; justify-content: space-between; color: var(--soft); }
.card.reached { border-left: 4px solid var(--curve); } .card.guessed { border-left: 3px dotted var(--soft); }
.boxes { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  gap: 1.1rem 2.2rem; margin: 1.4rem 0 .9rem; }
.box h3 { font-size: .92rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
.box .line { display: grid; grid-template-columns: minmax(3rem, 30%) 1fr; gap: .6rem; align-items: center;
  font-size: .85rem; }
.box .of { overflow-wrap: anywhere; line-height: 1.2; text-align: right; }
.box .span { position: relative; height: 1.15rem; }
.box .span i { position: absolute; display: block; }
.box .whisker { top: 50%; border-top: 1.5px solid var(--mark); }
.box .half { top: .15rem; bottom: .15rem; background: color-mix(in srgb, var(--mark) 30%, transparent);
  border: 1.5px solid var(--mark); border-radius: 2px; }
.box .median { top: .05rem; bottom: .05rem; border-left: 3px solid var(--mark); margin-left: -1.5px; }
.box .ends { border-top: 1px solid var(--line); }
figure { margin: .6rem 0 1.2rem; min-width: 0; }
figure svg { width: 100%; height: auto; display: block; }
figure svg text { font-family: inherit !important; fill: var(--ink); }
figure .plate text { fill: #1f2933; }
figure .plate { background: #fff; border-radius: 6px; padding: .4rem; }
.narrow svg { max-width: 36rem; } .small svg { max-width: 26rem; }
figcaption { color: var(--soft); font-size: .92rem; max-width: 46rem; margin-top: .3rem; }
"""

NARROW = (
    """
@media screen and (max-width: 56rem) { .answer { grid-template-columns: minmax(0, 1fr); } }
@media screen and (max-width: 44rem) {
body { font-size: 15px; padding: .8rem 1rem 3rem; } h1 { font-size: 1.35rem; } .lead { font-size: 1.15rem; }
.cards { grid-template-columns: 1fr 1fr; } .name { min-width: 3rem; } .bars .track { width: 5rem; }
div.wide { overflow-x: auto; } .wide svg { width: 46rem; } .swipe { display: block; }
.two .aside { text-align: left; }
"""
    + apart(".stack", "1fr 1fr")
    + apart(".wrap", "repeat(auto-fill, minmax(6.5rem, 1fr))")
    + """.wrap tr { gap: .3rem; }
.stack td.text:first-child::before { display: inline; content: attr(data-label) " "; font-size: inherit; } }
"""
)

PRINT = """
@media print {
html { font-size: 12.5px; } body { padding: 0; max-width: none; font-size: 1rem; }
nav, .swipe { display: none; }
h1, h2, h3, summary { break-after: avoid; } h2 { margin-top: 1.4rem; }
figure, tr, .card, .box, .strip { break-inside: avoid; }
.columns { grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 0 1.5rem; }
.small svg { max-width: 20rem; }
.answer, .cards { grid-template-columns: 1fr 1fr; } .terms { columns: 2; }
.boxes { grid-template-columns: repeat(3, 1fr); gap: .8rem 1.5rem; } .name { min-width: 3rem; }
.scroll, div.wide { overflow: visible; background: none; }
summary { list-style: none; text-decoration: none; font-weight: 600; }
summary::-webkit-details-marker { display: none; }
details > * { display: block; } details::details-content { content-visibility: visible; display: block; }
p { break-inside: avoid; } th, td { padding: .15rem .3rem; } .track { width: 4rem; }
}
"""

STYLE = THEMES + TEXT + TABLES + PLOTS + NARROW + PRINT
