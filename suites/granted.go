package suites

import (
	"context"
	"fmt"
	"strings"

	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
)

type want = reports.Want

// grantedControl runs a throwaway sandbox that is granted the neighbour's
// folder, and passes when the mount table's observer reports that folder.
func (r *run) grantedControl(ctx context.Context) observers.Control {
	c := observers.Control{
		Observer: "mounts", Place: grantedCell.Name, Effect: "a throwaway sandbox is granted the neighbour's folder",
		Want: "that folder reported as beyond the grants",
	}
	ev := r.sitting(grantedCell).run(ctx)
	if ev.trouble != "" {
		c.Reason = ev.trouble
		return c
	}
	o := ev.observations["mounts"]
	n := o.Values["foreign_mounts"].Worst + o.Values["foreign_folders"].Worst
	c.Seen = fmt.Sprintf("%d beyond the grants: %s", n, strings.Join(o.Found, "; "))
	c.Passed = o.Lost == "" && n > 0 && strings.Contains(c.Seen, r.scene.neighbour.Folder)
	if !c.Passed {
		c.Reason = "the granted folder was not reported " + o.Lost
	}
	return c
}
