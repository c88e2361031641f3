/* xml_library.h - libxml2, which html.c loads when a script first needs it. Private to jobs/text/
 */
#ifndef BURST_JOBS_TTS_XML_LIBRARY_H
#define BURST_JOBS_TTS_XML_LIBRARY_H

#include <libxml/HTMLparser.h>
#include <libxml/tree.h>

#include "base/err.h"
#include "base/guard.h"

/* clang-format off */
#define XML_FUNCTIONS(X)                                                                            \
	X(htmlCtxtReadMemory) X(htmlEntityLookup) X(htmlFreeParserCtxt) X(htmlNewParserCtxt) X(xmlCtxtReadMemory)       \
	X(xmlFreeDoc) X(xmlFreeParserCtxt) X(xmlNewParserCtxt) X(xmlStopParser)
/* clang-format on */

struct xml_library {
#define MEMBER(name) LATE_MEMBER(, name)
	XML_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* ERR_LOCAL: libxml2 is missing. */
int xml_library_load(const struct xml_library **out, struct err *err);

/* No network, no DTD, no entities of a document: only those of HTML and XML themselves. */
#define XML_SAFE (XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING)

#endif
