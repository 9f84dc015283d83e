"""What is content: the visible text of a page's body (Khan & Ali, section III.F).

Kept are the words a reader sees between the body tags, anchor words included. Left out are scripts, styles,
images, comments, all other attributes than ``alt``, and URLs. The details are decisions:

- ``alt`` texts of ``img``, ``area`` and ``input type=image`` are words beside the others, unless
  ``alt_texts`` is off. Khan & Ali leave ``alt`` texts out. But of 200 different galleries of one template, 20
  images each, 199 are duplicates without ``alt`` texts and 0 to 3 with them. On 2,044 pages of three manuals,
  829 of them with such texts, no verdict differs (``python -m benchmarks.bench_images``).

- The walk starts at the root and skips ``head``, so that framesets and content that the parser put beside the
  body count. A title is no content, wherever it stands.
- ``iframe``, ``object``, ``canvas``, ``audio``, ``video``: what they contain is shown only where they fail.
  ``noframes`` is kept, being all that a frameset page has to say.
- ``math``, ``textarea``, ``option``: kept, a reader sees them. The sources in a ``math`` annotation are not
  seen.
- Styles are not evaluated: text hidden by CSS or ``hidden`` counts.
- Inline elements join what they touch, as in a browser; every other element, known or not, separates.
- Characters that show nothing are removed here and not among the features, because a URL must be recognised
  with or without them. These are soft hyphens, zero-width spaces and joiners, direction marks and variation
  selectors.
- White space of any kind and length is one space.

The tree is the one Scrapy has parsed, and the tree is only read. The native core walks the tree as libxml2
has it. Without the native core, an XSLT stylesheet walks, in C as well. The library of the stylesheet,
libxslt, recurses, though: a page 2,040 elements deep crashed Python in a thread with 1 MB of stack. So the
stylesheet leaves trees deeper than ``_DEEPEST`` to a loop in Python. All three ways give the same text.

``python -m benchmarks.bench_text`` measured the mean ms of processor time a page as parsed by parsel. The
pages were clang-16 (92), kafka 3.9 (500) and apache2-doc (500); the machine was busy:

- the native walk, and what :func:`cleaned` does besides: 0.15, 0.04, 0.06;
- the stylesheet: 0.67, 0.16, 0.19;
- the loop: 2.76, 0.50, 0.67; ``iterwalk`` is slower still;
- finding out how deep a tree is: 0.16, 0.04, 0.03.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import regex
from lxml import etree

from neardup import native
from neardup.text.characters import INVISIBLE_CHARACTERS, UNSPACED
from neardup.text.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

logger = logging.getLogger(__name__)


ALT_TEXTS = True
"""Whether the ``alt`` texts of images count, unless something else is said."""

# fmt: off
SKIPPED = frozenset({
    "head", "title", "script", "style", "noscript", "template", "img", "svg",
    "iframe", "object", "applet", "canvas", "audio", "video", "noembed", "datalist", "annotation",
    "annotation-xml",
})
"""Elements left out with all they contain."""

INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "ins",
    "kbd", "label", "mark", "nobr", "output", "ruby", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup",
    "time", "tt", "u", "var", "wbr",
    # Not displayed at all, so they take no room between two letters either.
    "script", "style", "noscript", "template", "datalist", "noembed",
})
"""Elements that do not end a word."""
# fmt: on

# Comments and processing instructions have these functions for a tag.
_JOINING = INLINE | {etree.Comment, etree.ProcessingInstruction, etree.Entity}
_IMAGES = frozenset({"img", "area", "input"})
_NOT_ENTERED = SKIPPED | {etree.Comment, etree.ProcessingInstruction, etree.Entity}


_IS_IMAGE = "translate(@type, 'IMAGE', 'image') = 'image'"


def _stylesheet(*, alt_texts: bool) -> etree.XSLT:
    alternatives = f"""<xsl:template match="img|area|input[{_IS_IMAGE}]">
    <xsl:text> </xsl:text><xsl:value-of select="@alt"/><xsl:text> </xsl:text>
  </xsl:template>"""
    skipped = SKIPPED - INLINE - ({"img"} if alt_texts else set())
    return etree.XSLT(
        etree.XML(f"""
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text"/>
  <xsl:template match="/"><xsl:apply-templates select="*[1]"/></xsl:template>
  <xsl:template match="*"><xsl:text> </xsl:text><xsl:apply-templates/><xsl:text> </xsl:text></xsl:template>
  <xsl:template match="{"|".join(sorted(INLINE - SKIPPED))}"><xsl:apply-templates/></xsl:template>
  <xsl:template match="{"|".join(sorted(skipped))}"><xsl:text> </xsl:text></xsl:template>
  <xsl:template match="{"|".join(sorted(SKIPPED & INLINE))}"/>
  {alternatives if alt_texts else ""}
</xsl:stylesheet>""")
    )


_STYLESHEETS = (_stylesheet(alt_texts=False), _stylesheet(alt_texts=True))
"""Without and with ``alt`` texts: what ``_pieces`` does, to the first root of a document: libxml2 allows
several. Comments and processing instructions are left out by XSLT's own rules.
"""

_DEEPEST = 128
"""Elements inside each other; 64 kB of stack for libxslt. The deepest of 5,533 pages of three manuals is
under 30.
"""

_IS_DEEP = etree.XPath("boolean(" + "/".join("*" * _DEEPEST) + ")")

_MANY_PARTS = 16

_INVISIBLE = regex.compile(rf"{INVISIBLE_CHARACTERS}+", regex.V1)

_NO_CHARSETS = ("idna", "punycode")
"""Codecs of Python that no browser takes for the encoding of a page. One long label of 256 kB took 6 s, and
the time grows with the square.
"""

_SCHEME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
_URL_CHARACTER = rf'[[!-~--["<>]]||[\w--[\x00-\x7F]--{UNSPACED}]]'
"""ASCII up to a space, quote or angle bracket, and letters of other scripts (``/wiki/Käse``). Left out are
scripts whose sentences may go on without a space, and the punctuation of such scripts.
"""
_URL_REST = regex.compile(rf"\A{_URL_CHARACTER}*+", regex.V1)
_WWW = regex.compile(rf"(?<![\w--{UNSPACED}])(?i:www)\.(?=\w){_URL_CHARACTER}*+", regex.V1)


def text_of_tree(root: etree._Element, *, alt_texts: bool = ALT_TEXTS) -> str:
    """Visible text of the page, or of the part of it, whose parsed tree has this root; words apart by single
    spaces.

    ``alt_texts``: those of images count, too.

    >>> text_of_tree(etree.HTML("<h1>A <i>p</i>age</h1><p>See <a href='/x'>more</a><br>at www.a.example"))
    'A page See more at'
    """
    return utf8_of_tree(root, alt_texts=alt_texts).decode("utf-8", "surrogatepass")


def utf8_of_tree(root: etree._Element, *, alt_texts: bool = ALT_TEXTS) -> bytes:
    """:func:`text_of_tree` in UTF-8, as its words are read and hashed."""
    return utf8_of_parts(tops(root), alt_texts=alt_texts)


def utf8_of_parts(
    parts: Iterable[etree._Element],
    left_out: frozenset[etree._Element] = frozenset(),
    *,
    alt_texts: bool = ALT_TEXTS,
) -> bytes:
    """Visible text of parts of a page, one after the other, without some elements and all they contain; in
    UTF-8.

    Where there is no native core, and elements are left out or parts are many, the parts are walked by the
    loop. The stylesheet takes 17 µs to begin, so 60,000 roots after ``</html>`` took a second.
    """
    parts = list(parts)
    if _native is not None:
        read: bytes = _native.utf8_of_parts(parts, left_out, alt_texts)
        return read
    by_loop = bool(left_out) or len(parts) > _MANY_PARTS
    text = " ".join(_text(part, left_out, alt_texts=alt_texts, by_loop=by_loop) for part in parts)
    return cleaned(text).encode("utf-8", "surrogatepass")


def utf8_of_chosen(parts: list[etree._Element], automaton: object, *, alt_texts: bool) -> bytes:
    """:func:`utf8_of_parts` of what simple selectors choose in parts of a page; only the native core can
    tell. ``automaton`` is a ``neardup.text._selectors.Automaton``.
    """
    assert _native is not None
    read: bytes = _native.utf8_of_chosen(parts, automaton, alt_texts)
    return read


def cleaned(text: str) -> str:
    """A text taken from a page by other means, without URLs and invisible characters; words apart by single
    spaces.
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    return " ".join(_without_urls(text).split())


def utf8_of_text(text: str) -> bytes:
    """:func:`cleaned` in UTF-8, as its words are read and hashed."""
    if _native is None:
        return cleaned(text).encode("utf-8", "surrogatepass")
    made: bytes = _native.utf8_of_text(text.encode("utf-8", "surrogatepass"))
    return made


def text_of_html(html: str) -> str:
    """:func:`text_of_tree` of a page in a string, parsed as Scrapy does (parsel's ``create_root_node``).

    Raises PageTooLarge if it is over the default limits; so do the next two.

    >>> text_of_html("<title>Not this</title>but <b>t</b>his")
    'but this'
    """
    limits = Limits()
    limits.check_size(html)
    limits.check_html(html)
    root = parse(html)
    return "" if root is None else text_of_tree(root)


def text_of_bytes(data: bytes, encoding: str | None = None) -> str:
    """:func:`text_of_html` of a page in bytes; ``encoding`` is tried first, then what
    ``UnicodeDammit`` finds.
    """
    Limits().check_size(data)
    return text_of_html(decode(data, encoding))


def tops(root: etree._Element) -> Iterator[etree._Element]:
    """The root, and what libxml2 makes of what stands after ``</html>``: a second root, where a browser
    appends it to the body.
    """
    yield root
    if root.getparent() is None:
        yield from root.itersiblings("*")


def is_deep(root: etree._Element) -> bool:
    """Whether a tree is deeper than that of any real page."""
    return bool(_IS_DEEP(root))


def parse(html: str) -> etree._Element | None:
    """Root of the page's tree, as Scrapy has it; None if there is nothing."""
    # A lone surrogate has no UTF-8; the question mark it turns into separates words, as the surrogate would.
    data = html.strip().replace("\x00", "").encode("utf-8", "replace")
    if not data:
        return None
    root: etree._Element | None = etree.fromstring(data, _parser())
    return root


def decode(data: bytes, encoding: str | None = None) -> str:
    """A page in bytes as a string; see :func:`text_of_bytes`."""
    if not data:
        return ""
    # A crawl never comes here, and the import would be a sixth of what the add-on adds to its start.
    from bs4.dammit import UnicodeDammit  # noqa: PLC0415

    known = [encoding] if encoding else []
    dammit = UnicodeDammit(
        data, known_definite_encodings=known, is_html=True, exclude_encodings=list(_NO_CHARSETS)
    )
    return dammit.unicode_markup or data.decode("utf-8", "replace")


def _parser() -> etree.HTMLParser:
    return etree.HTMLParser(recover=True, encoding="utf-8", huge_tree=True)


def _text(
    root: etree._Element, left_out: frozenset[etree._Element], *, alt_texts: bool, by_loop: bool
) -> str:
    """Text in document order, with a space where an element separates; skipped subtrees are not entered."""
    if by_loop or _IS_DEEP(root):
        return "".join(_pieces(root, left_out, alt_texts=alt_texts))
    return str(_STYLESHEETS[alt_texts](root))


def _pieces(
    root: etree._Element,
    left_out: frozenset[etree._Element] = frozenset(),
    *,
    alt_texts: bool = ALT_TEXTS,
) -> list[str]:
    """:func:`_text` of a tree of any depth, by a loop."""
    pieces: list[str] = []
    add = pieces.append
    images = _IMAGES if alt_texts else frozenset()
    if root in left_out:
        return pieces
    if root.tag in images or root.tag in _NOT_ENTERED:
        return [_alternative(root)] if root.tag in images else pieces
    add(root.text or "")
    # Children still to come, and the element that they are children of, for each open element.
    open_elements: list[tuple[Iterator[etree._Element], etree._Element]] = [(iter(root), root)]
    while open_elements:
        children, parent = open_elements[-1]
        for element in children:
            tag = element.tag
            if tag not in _JOINING:
                add(_alternative(element) if tag in images and element not in left_out else " ")
            if tag not in _NOT_ENTERED and element not in left_out:
                add(element.text or "")
                if len(element):
                    open_elements.append((iter(element), element))
                    break
                if tag not in _JOINING:
                    add(" ")
            add(element.tail or "")
        else:
            open_elements.pop()
            if parent is not root:
                if parent.tag not in _JOINING:
                    add(" ")
                add(parent.tail or "")
    return pieces


def _alternative(element: etree._Element) -> str:
    """The ``alt`` text of an image between spaces; a space if it has none, or is an ``input`` of another
    type.
    """
    is_image = element.tag != "input" or element.get("type", "").lower() == "image"
    return f" {element.get('alt', '')} " if is_image else " "


def _without_urls(text: str) -> str:
    """Text with a space in the place of every URL written out in it; linear in the length of any text."""
    if "://" in text:
        # Not one expression: looking for a scheme at each letter would cost more than the whole walk.
        before, *pieces = text.split("://")
        kept = [before]
        for piece in pieces:
            kept[-1] = kept[-1].rstrip(_SCHEME)
            kept.append(_URL_REST.sub("", piece, count=1))
        text = " ".join(kept)
    if "ww." in text or "WW." in text or "wW." in text or "Ww." in text:
        text = _WWW.sub(" ", text)
    return text


def _checked_native() -> ModuleType | None:
    """The walk in C; None where the native core is not used, or lxml lays its trees out in another way."""
    try:
        module = native.load("neardup.text._visible_text")
        if module is None:
            return None
        module.configure(INLINE, SKIPPED, _IMAGES, _SCHEME)
        root = etree.HTML(
            "<p>a<!-- b --><b>b</b><script>c</script><img alt='d e'><br>f\u00adg\u00a0h<i>i</i>"
        )
        if module.utf8_of_parts([root], frozenset(), True) == cleaned("".join(_pieces(root))).encode():
            return module
        problem = "its trees give another text"
    except (ImportError, TypeError) as exc:  # Cython compares functions and types of lxml as it imports them
        problem = str(exc)
    logger.warning(
        "neardup was built for another lxml than %(version)s (%(problem)s); pages are read without the native"
        " core of that step. Install neardup again.",
        {"version": etree.__version__, "problem": problem},
    )
    return None


_native = _checked_native()

is_native = _native is not None
"""Whether the native core walks."""
