#include "chatterbox_file.h"

static const char program[] =
#include "chatterbox_worker.py.h"
	;

const struct job_file *chatterbox_worker_file(void)
{
	static const struct job_file file = {"chatterbox_worker.py", program, sizeof(program) - 1, 0644};

	return &file;
}
