/* incbin.h - a file's bytes as part of the program. INCBIN(name, "path") makes `name` their first
 * byte; a zero byte follows the last, so that a text file can be read as a string. */
#ifndef BURST_INCBIN_H
#define BURST_INCBIN_H

#ifdef __APPLE__
#define INCBIN_BEGIN        ".const_data\n"
#define INCBIN_SYMBOL(name) "_" #name
#define INCBIN_END          "\n.text\n"
#else
#define INCBIN_BEGIN        ".pushsection .rodata\n"
#define INCBIN_SYMBOL(name) #name
#define INCBIN_END          "\n.popsection\n"
#endif

#define INCBIN(name, path)                                                                         \
	__asm__(INCBIN_BEGIN ".balign 16\n.globl " INCBIN_SYMBOL(name) "\n" INCBIN_SYMBOL(         \
		name) ":\n"                                                                        \
		      ".incbin \"" path "\"\n.byte 0" INCBIN_END);                                 \
	extern const char name[]

#endif
