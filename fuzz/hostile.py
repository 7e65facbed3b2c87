"""Words that have broken programs: markup, formulas, control characters, and numbers that are none."""

MARKUP = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>',
    "</td></table><iframe src='http://example.org'>", "' onmouseover='alert(1)", "<!-- ", "]]>",
    "&lt;b&gt;", "`code` <b>", "<svg/onload=alert(1)>", "</title><script>1</script>",
    "</style><base href=//example.org>",
)  # fmt: skip

FORMULAS = (
    "=1+1", "=cmd|' /C calc'!A0", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1+1", "\r=1",
    "\uff1d1+1", '=HYPERLINK("http://example.org","x")', "-", "+", "=", "@", "-a", "+b",
)  # fmt: skip

ODD_NAMES = (
    "", " ", "  padded  ", "a\tb", "a\nb", "a\r\nb", "\xfcn\xefc\xf6d\xe9", "\u540d\u524d", "\U0001f642",
    "x" * 3000, "Unnamed: 0", "nan", "NaN", "None", "0", "1", "1.0", "-1", "True", "row", "id", "class",
    "fold", "actual", "predicted", "decision", "feature", "machine", "weight", "weight: a", "chosen",
    "target", "y", "X", "index", "column 1", "[red]rich[/red]", "[/]", "[link=x]", "a=b",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x07bell", "\x00", "a,b", 'quo"te', "semi;colon", "$x_1$",
    "$\\frac{$", "\\", "%s", "{0}", "{x}", "../../etc/passwd", "\u202eright to left", "\ufeffbom",
    "\u200b", "a=1", "--drop", "k>", ">", "\x85", "\u2028line", "e\u0301", "\ufdfd",
)  # fmt: skip

GAPS = (
    "", "NaN", "nan", "NA", "N/A", "null", "NULL", "None", "n/a", "-nan", "<NA>", "#N/A", "-", "?", ".",
    "missing", " ",
)  # fmt: skip

INFINITIES = (
    "inf", "-inf", "Infinity", "1e999", "-1e400", "INF", "+inf",
)  # fmt: skip

ODD_NUMBERS = (
    "1e308", "-1e308", "1.7976931348623157e308", "5e-324", "1e-320", "1e150", "-1e150",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "-9223372036854775809",
    "123456789012345678901234567890", "1" * 400, "0x10", "1_000", "1,5", "1.234,5", "12%", "$5", "1e",
    "1e5.5", "--1", "+1", "00012", "1.", ".5", "\u0663", "\uff11", "1e-400", "-0.0", "TRUE", "true",
    "False", "yes", "1+2j", "16777217", "9007199254740993",
)  # fmt: skip

DATES = (
    "2024-01-31", "31.01.2024", "1/2/03", "2024-01-31T12:00:00Z", "0000-00-00", "12:30",
    "1970-01-01 00:00:00",
)  # fmt: skip
