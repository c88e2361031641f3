#!/bin/sh
# end.sh - a sandbox ends when its first process exits. Precedes jobs/agent/start.sh.

vendor_switch() {
	report_switch 'ok exit'
}
