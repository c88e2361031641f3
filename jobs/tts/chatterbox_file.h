/* chatterbox_file.h - jobs/workers/chatterbox_worker.py, carried inside the program. */
#ifndef BURST_JOBS_TTS_CHATTERBOX_FILE_H
#define BURST_JOBS_TTS_CHATTERBOX_FILE_H

#include "job.h"

const struct job_file *chatterbox_worker_file(void);

#endif
