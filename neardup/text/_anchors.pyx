"""The walk over the anchors in lxml's tree; see anchors.py.

The walk waits for memory more than for anything else: a page's text has been read when its links are, and
much of a large tree has left the cache by then. So of what is no anchor, the walk looks only at the first
line of memory: what comes next, and the name.
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport strchr, strcmp, strlen

from lxml.includes cimport etreepublic as public
from lxml.includes.tree cimport XML_ELEMENT_NODE, XML_TEXT_NODE, const_xmlChar, xmlAttr, xmlNode

public.import_lxml__etree()


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
