"""The walk over the anchors in lxml's tree, and the plain links of a page; see anchors.py.

The walk waits for memory more than for anything else: a page's text has been read when its links are, and
much of a large tree has left the cache by then. So of what is no anchor, the walk looks only at the first
two lines of memory: the name, and what comes next. A parser allocates nodes in the order of the page, mostly
one behind the other. So the walk asks for memory that lies ahead: on large pages that takes 40 % less time.
"""

from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memcpy, strchr, strcmp, strlen

from lxml.includes cimport etreepublic as public
from lxml.includes.tree cimport XML_ELEMENT_NODE, XML_TEXT_NODE, const_xmlChar, xmlAttr, xmlNode

from neardup.fingerprint._bits cimport prefetch

public.import_lxml__etree()

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(str text)
    str PyUnicode_New(Py_ssize_t size, Py_UCS4 highest)

cdef enum:
    AHEAD = 4096  # bytes: some 30 nodes, and fewer with their attributes and texts
    LINE = 64     # bytes that memory gives at once

cdef enum:
    HOST = 1     # may stand in a host
    BEGINS = 2   # may begin a part of a path
    PART = 4     # may stand in a part of a path
    QUERY = 8    # may stand in a query

cdef uint8_t kinds[256]


def _configure():
    for code in range(128):
        character = chr(code)
        is_word = character.isalnum() or character == "_"
        begins = is_word or character in "%~+(),!$'*@-"
        part = begins or character == "."
        kinds[code] = (
            HOST * (is_word or character in ".-") + BEGINS * begins + PART * part
            + QUERY * (part or character in "=&/:;?")
        )


_configure()


def anchors(public._Element root not None):
    """The first ``base``, whether a ``meta`` says nofollow, and a dict of links to nofollow."""
    cdef xmlNode* top = root._c_node
    cdef xmlNode* node = top
    cdef const char* name
    cdef bint nofollow = False
    cdef dict hrefs = {}
    if node == NULL:
        raise ValueError("the element has no tree")
    base = None
    while True:
        # An address at which nothing is does no harm here.
        prefetch(<const char*>node + AHEAD)
        prefetch(<const char*>node + AHEAD + LINE)
        if node.type == XML_ELEMENT_NODE:
            name = <const char*>node.name
            if name[0] == c"a":
                if (name[1] == 0 or strcmp(name, "area") == 0) and not has_namespace(node):
                    add_link(hrefs, node)
            elif name[0] == c"b" and strcmp(name, "base") == 0:
                base = value(node, "href") if base is None and not has_namespace(node) else base
            elif name[0] == c"m" and strcmp(name, "meta") == 0 and not has_namespace(node):
                if (value(node, "name") or "").lower() == "robots":
                    nofollow = nofollow or "nofollow" in (value(node, "content") or "").lower()
            if node.children != NULL:
                node = node.children
                continue
        while node != top and node.next == NULL:
            node = node.parent
        if node == top:
            return base, bool(nofollow), hrefs
        node = node.next


cdef inline bint has_namespace(const xmlNode* node) noexcept nogil:
    return node.ns != NULL and node.ns.href != NULL


cdef int add_link(dict hrefs, xmlNode* node) except -1:
    """Add where an anchor leads to, without the fragment."""
    cdef xmlAttr* attribute = node.properties
    cdef xmlAttr* href = NULL
    cdef bint marked = False
    while attribute != NULL:
        if attribute.ns == NULL:
            if strcmp(<const char*>attribute.name, "href") == 0:
                if begins_with_fragment(attribute):
                    return 0  # half of the links of a manual
                href = attribute
            elif strcmp(<const char*>attribute.name, "rel") == 0:
                marked = "nofollow" in value(node, "rel").lower()
        attribute = attribute.next
    if href == NULL:
        return 0
    link = without_fragment(node, href)
    if marked:
        hrefs.setdefault(link, True)
    else:
        hrefs[link] = False
    return 0


cdef inline bint begins_with_fragment(const xmlAttr* attribute) noexcept nogil:
    return (
        attribute.children != NULL
        and attribute.children.content != NULL
        and (<const char*>attribute.children.content)[0] == c"#"
    )


cdef str without_fragment(xmlNode* node, const xmlAttr* href):
    cdef const xmlNode* text = href.children
    cdef const char* data
    cdef const char* end
    if text == NULL or text.type != XML_TEXT_NODE or text.next != NULL or text.content == NULL:
        return value(node, "href").partition("#")[0]
    data = <const char*>text.content
    end = strchr(data, c"#")
    return PyUnicode_DecodeUTF8(data, strlen(data) if end == NULL else end - data, NULL)


cdef value(xmlNode* node, const char* name):
    """The value of an attribute without a namespace, or None."""
    if node.properties == NULL:
        return None
    return public.attributeValueFromNsName(node, NULL, <const_xmlChar*>name)


def led_to(dict hrefs not None, str folder not None, Py_ssize_t top, bint nofollow, joined):
    """The URLs that values of ``href`` lead to, and whether all of them say nofollow."""
    cdef dict found = {}
    cdef str whole, link
    cdef bint marked
    for whole, marked in hrefs.items():
        link = plain_link(folder, top, whole)
        if link is None:
            whole = whole.strip()
            link = plain_link(folder, top, whole)
            if link is None:
                link = joined(whole) if whole else ""
            if not link:
                continue
        if marked or nofollow:
            found.setdefault(link, True)
        else:
            found[link] = False
    return found


cdef str plain_link(str folder, Py_ssize_t top, str href):
    """Where a plain link leads to; None: it is not plain."""
    cdef const uint8_t* data
    cdef const uint8_t* base
    cdef Py_ssize_t size = len(href), start, base_size = len(folder)
    cdef int levels = 0
    if size == 0 or not PyUnicode_IS_COMPACT_ASCII(href) or not PyUnicode_IS_COMPACT_ASCII(folder):
        return None
    data, base = <const uint8_t*>PyUnicode_1BYTE_DATA(href), <const uint8_t*>PyUnicode_1BYTE_DATA(folder)
    if is_plain_url(data, size):
        return href
    if base_size == 0:
        return None
    start = data[0] == c"/"
    if start:
        base_size = min(top, base_size)
    if at_dots(data + start, size - start, 1):
        start += 2
    while at_dots(data + start, size - start, 2):
        start += 3
        levels += 1
    if not is_plain_path(data + start, size - start):
        return None
    while levels and base_size > top:
        levels -= 1
        base_size -= 1
        while base_size > top and base[base_size - 1] != c"/":
            base_size -= 1
    return together(base, base_size, data + start, size - start)


cdef str together(const uint8_t* first, Py_ssize_t size, const uint8_t* second, Py_ssize_t more):
    """Two pieces of ASCII as one text."""
    cdef str made = PyUnicode_New(size + more, 127)
    cdef uint8_t* data = <uint8_t*>PyUnicode_1BYTE_DATA(made)
    memcpy(data, first, size)
    memcpy(data + size, second, more)
    return made


cdef inline bint at_dots(const uint8_t* data, Py_ssize_t size, Py_ssize_t dots) noexcept nogil:
    """Whether so many dots and a slash come first."""
    return size > dots and data[dots] == c"/" and data[0] == c"." and data[dots - 1] == c"."


cdef inline Py_ssize_t run(const uint8_t* data, Py_ssize_t size, Py_ssize_t at, uint8_t kind) noexcept nogil:
    """Where the characters of a kind end that begin at a place."""
    while at < size and kinds[data[at]] & kind:
        at += 1
    return at


cdef inline bint ends_plainly(const uint8_t* data, Py_ssize_t size, Py_ssize_t at) noexcept nogil:
    """Whether nothing comes there, or a query of a character or more and nothing else."""
    if at == size:
        return True
    return data[at] == c"?" and at + 1 < size and run(data, size, at + 1, QUERY) == size


cdef bint is_plain_url(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    """As ``_PLAIN_URL`` of anchors.py."""
    cdef Py_ssize_t at, before
    if size < 8 or memcmp(data, <const char*>"http", 4) != 0:
        return False
    at = 5 if data[4] == c"s" else 4
    if memcmp(data + at, <const char*>"://", 3) != 0:
        return False
    before = at + 3
    at = run(data, size, before, HOST)
    if at == before:
        return False
    if at < size and data[at] == c":":
        before = at + 1
        at = before
        while at < size and c"0" <= data[at] <= c"9":
            at += 1
        if at == before:
            return False
    if at < size and data[at] != c"/":
        return False
    while at < size and (kinds[data[at]] & PART or data[at] == c"/"):
        at += 1
    return ends_plainly(data, size, at)


cdef bint is_plain_path(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    """As ``_PLAIN_PATH`` of anchors.py, behind the dots."""
    cdef Py_ssize_t at = 0
    while at < size and kinds[data[at]] & BEGINS:
        at = run(data, size, at, PART)
        if at == size or data[at] != c"/":
            return ends_plainly(data, size, at)
        at += 1
    # A part may end with a slash; two slashes, or a part that begins with a dot, are not plain.
    return at > 0 and ends_plainly(data, size, at)
