"""A worksheet: the problem with empty matrices to fill in, and its key. As Markdown, LaTeX, HTML, or an answer file."""

from regard.worked.worksheet.sheet import FORMATS, PARTS, worksheet

__all__ = ["FORMATS", "PARTS", "worksheet"]
