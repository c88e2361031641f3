/* goal.h - what a plan makes small: the cost, the time, or both by what an hour of waiting costs.
 */
#ifndef BURST_PLAN_GOAL_H
#define BURST_PLAN_GOAL_H

enum plan_goal { PLAN_COST, PLAN_TIME, PLAN_BALANCED };

#endif
