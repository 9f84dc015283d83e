"""The walk over the anchors in lxml's tree; see anchors.py."""

from libc.string cimport strcmp
from lxml.includes cimport etreepublic as public
from lxml.includes.tree cimport XML_ELEMENT_NODE, const_xmlChar, xmlAttr, xmlNode

public.import_lxml__etree()


def anchors(public._Element root not None):
    """The first ``base``, whether a ``meta`` says nofollow, and a dict of ``href`` to nofollow."""
    cdef xmlNode* top = root._c_node
    cdef xmlNode* node = top
    cdef const char* name
    cdef bint nofollow = False
    cdef dict hrefs = {}
    if node == NULL:
        raise ValueError("the element has no tree")
    base = None
    while True:
        if node.type == XML_ELEMENT_NODE and (node.ns == NULL or node.ns.href == NULL):
            name = <const char*>node.name
            if name[0] == b"a" and (name[1] == 0 or strcmp(name, b"area") == 0):
                href = None if is_within_page(node) else value(node, b"href")
                if href is not None:
                    rel = value(node, b"rel")
                    hrefs[href] = hrefs.get(href, True) and rel is not None and "nofollow" in rel.lower()
            elif strcmp(name, b"base") == 0:
                base = value(node, b"href") if base is None else base
            elif strcmp(name, b"meta") == 0 and (value(node, b"name") or "").lower() == "robots":
                nofollow = nofollow or "nofollow" in (value(node, b"content") or "").lower()
        if node.type == XML_ELEMENT_NODE and node.children != NULL:
            node = node.children
            continue
        while node != top and node.next == NULL:
            node = node.parent
        if node == top:
            return base, bool(nofollow), hrefs
        node = node.next


cdef bint is_within_page(const xmlNode* node) noexcept nogil:
    """Whether a link is a fragment alone; half of the links of a manual are."""
    cdef xmlAttr* attribute = node.properties
    while attribute != NULL:
        if attribute.ns == NULL and strcmp(<const char*>attribute.name, b"href") == 0:
            return (
                attribute.children != NULL
                and attribute.children.content != NULL
                and (<const char*>attribute.children.content)[0] == b"#"
            )
        attribute = attribute.next
    return False


cdef value(xmlNode* node, const char* name):
    """The value of an attribute without a namespace, or None."""
    if node.properties == NULL:
        return None
    return public.attributeValueFromNsName(node, NULL, <const_xmlChar*>name)
