/* view_words.h - short texts of a view. */
#ifndef BURST_CMD_SHOW_VIEW_WORDS_H
#define BURST_CMD_SHOW_VIEW_WORDS_H

#include "view.h"

const char *view_plural(int64_t n);           /* "" or "s" */
bool view_pod_over(const struct view_pod *p); /* gone, or it never existed */
int64_t view_live(const struct view *v);      /* pods that are not over */
int64_t view_count(const struct view *v, enum pod_phase from,
		   enum pod_phase to);   /* pods in these phases */
bool view_settled(const struct view *v); /* every segment is done or has failed */
int view_percent(const struct view *v);
/* "41s", "3m05s". Returns `to`. */
char *view_seconds_show(char *to, size_t room, int64_t ms);
/* "ETA 1m40s" */
void view_eta_show(char *to, size_t room, const struct view *v);
/* "12m04s of audio" */
void view_sound_show(char *to, size_t room, double seconds);
/* "$0.03 of $1.00, about $0.06 in total"; brief: "$0.03/$1.00, ~$0.06" */
void view_cost_show(char *to, size_t room, const struct view *v, bool brief);

#endif
