"""The search for main headings in lxml's tree; see headline.py."""

from lxml.includes cimport etreepublic as public
from lxml.includes.tree cimport XML_ELEMENT_NODE, xmlNode

public.import_lxml__etree()


def heading_after(public._Element root not None, public._Element after):
    """The first ``h1`` of a tree in document order after an element of the tree; None: there is none."""
    cdef xmlNode* top = root._c_node
    cdef xmlNode* node = top if after is None else after._c_node
    if node == NULL or top == NULL:
        raise ValueError("the element has no tree")
    if after is None and is_heading(node):
        return root
    while True:
        if node.type == XML_ELEMENT_NODE and node.children != NULL:
            node = node.children
        else:
            while node != top and node.next == NULL:
                node = node.parent
            if node == top:
                return None
            node = node.next
        if is_heading(node):
            return public.elementFactory(root._doc, node)


cdef bint is_heading(const xmlNode* node) noexcept nogil:
    cdef const char* name
    if node.type != XML_ELEMENT_NODE:
        return False
    name = <const char*>node.name
    return name[0] == b"h" and name[1] == b"1" and name[2] == 0 and (node.ns == NULL or node.ns.href == NULL)
