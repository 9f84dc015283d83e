"""The matching of simple selectors in one walk from the top down; see selectors.py."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, strcmp, strlen

from lxml.includes cimport etreepublic as public
from lxml.includes cimport tree
from lxml.includes.tree cimport xmlAttr, xmlNode

from neardup.fingerprint._bits cimport trailing_zeros

public.import_lxml__etree()


cdef class Automaton:
    """Steps of selectors, each with a bit that follows on that of the step before."""

    def __cinit__(self, list included not None, list excluded not None, bint includes):
        cdef uint64_t bit
        cdef int place, test = 0
        steps = included + excluded
        if len(steps) > MOST_STEPS:
            raise ValueError(f"{len(steps)} steps are too many")
        self.kept = []  # what the pointers point to
        self.includes = includes
        self.size = len(steps)
        self.tests = <Test*>calloc(sum(len(step.conditions) for step in steps) + 1, sizeof(Test))
        if self.tests == NULL:
            raise MemoryError
        for place, step in enumerate(steps):
            bit = <uint64_t>1 << place
            if step.name is not None:
                self.names[place] = kept(self.kept, step.name)
            self.first_test[place] = test
            for attribute, operator, value in step.conditions:
                self.tests[test].attribute = kept(self.kept, attribute)
                if operator != "exists":
                    self.tests[test].value = kept(self.kept, value)
                    self.tests[test].size = strlen(self.tests[test].value)
                self.tests[test].is_word = operator == "~="
                test += 1
            if step.within == "":
                self.first |= bit
            elif step.within == ">":
                self.just_below |= bit
            else:
                self.below |= bit
            if step.conditions:
                self.with_tests |= bit
            if step.name is None:
                self.any_name |= bit
            if step.is_last and place < len(included):
                self.included |= bit
            elif step.is_last:
                self.excluded |= bit
        self.first_test[self.size] = test

    def __dealloc__(self):
        free(self.tests)

    cdef uint64_t steps_of_name(self, const char* name) noexcept:
        """Steps that elements of this name may match."""
        cdef uint64_t steps = 0
        cdef int place
        for place in range(self.size):
            if self.names[place] == NULL or strcmp(self.names[place], name) == 0:
                steps |= <uint64_t>1 << place
        return steps

    cdef int match(self, xmlNode* node, uint64_t steps, const Matched* parent, Matched* matched) except -1:
        """Which of the steps match an element below another."""
        cdef uint64_t found = 0
        cdef int place, test
        steps &= self.first | parent.above << 1 & self.below | parent.here << 1 & self.just_below
        if node.properties == NULL:
            steps &= ~self.with_tests
        while steps:
            place = trailing_zeros(steps)
            for test in range(self.first_test[place], self.first_test[place + 1]):
                if not passes(node, &self.tests[test]):
                    break
            else:
                found |= <uint64_t>1 << place
            steps &= steps - 1
        matched.here = found
        matched.above = parent.above | found
        return 0


cdef bint passes(xmlNode* node, const Test* test) except -1:
    """Whether an element has the attribute that a test asks for."""
    cdef xmlAttr* attribute = node.properties
    cdef const char* value = b""
    while attribute != NULL and (
        attribute.ns != NULL or strcmp(<const char*>attribute.name, test.attribute) != 0
    ):
        attribute = attribute.next
    if attribute == NULL or test.value == NULL:
        return attribute != NULL
    if attribute.children != NULL:
        if attribute.children.next != NULL or attribute.children.type != tree.XML_TEXT_NODE:
            # Not one text but several, and entities.
            encoded = public.attributeValue(node, attribute).encode("utf-8", "surrogatepass")
            return has(encoded, test)
        if attribute.children.content != NULL:
            value = <const char*>attribute.children.content
    return has(value, test)


cdef const char* kept(list texts, str text) except NULL:
    """The UTF-8 of a text, which is put to others that live as long."""
    data = text.encode("utf-8", "surrogatepass")
    texts.append(data)
    return data


cdef bint has(const char* value, const Test* test) noexcept:
    """Whether the value of an attribute is what a test asks for, or has it as a word."""
    cdef size_t size
    if not test.is_word:
        return strcmp(value, test.value) == 0
    while True:
        while is_blank(value[0]):
            value += 1
        size = 0
        while value[size] and not is_blank(value[size]):
            size += 1
        if size == 0:
            return False
        if size == test.size and memcmp(value, test.value, size) == 0:
            return True
        value += size


cdef inline bint is_blank(char character) noexcept:
    """White space of XML, which XPath's ``normalize-space`` goes by."""
    return character == c" " or character == c"\t" or character == c"\n" or character == c"\r"
