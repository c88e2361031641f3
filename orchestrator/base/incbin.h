/* incbin.h - a file's bytes as part of the program. INCBIN(name, "path") makes `name` their first
 * byte; a zero byte follows the last, so that a text file can be read as a string. INCBIN_TWO()
 * puts a second file's bytes behind those of the first. */
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

#define INCBIN_FILES(name, files)                                                                  \
	__asm__(INCBIN_BEGIN ".balign 16\n.globl " INCBIN_SYMBOL(name) "\n" INCBIN_SYMBOL(         \
		name) ":\n" files ".byte 0" INCBIN_END);                                           \
	extern const char name[]

#define INCBIN(name, path) INCBIN_FILES(name, ".incbin \"" path "\"\n")
#define INCBIN_TWO(name, first, second)                                                            \
	INCBIN_FILES(name, ".incbin \"" first "\"\n.incbin \"" second "\"\n")

#endif
