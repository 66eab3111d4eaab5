package observers

import (
	"context"
	"fmt"
	"time"

	"tenwalls.dev/harness/internal/cgroup"
)

// Processor is the observer "processor": the processor time that the kernel
// accounts to the job's cgroup, all its tasks together, ended ones included.
//
// Value "usage", ns. On cgroup version 1 starting the job's first process
// charges its group well under a millisecond of the harness's own.
type Processor struct {
	host   Host
	prefix string
	spawn  Spawner
}

// NewProcessor watches over h; prefix is the run's cgroup, below which the
// control makes a group of its own.
func NewProcessor(h Host, prefix string, spawn Spawner) *Processor {
	return &Processor{host: h, prefix: prefix, spawn: spawn}
}

// Name is "processor".
func (*Processor) Name() string { return "processor" }

// Control burns 20 ms in a throwaway group and wants to see 20 to 60 ms.
func (p *Processor) Control(ctx context.Context) Control {
	c := Control{
		Observer: p.Name(), Place: p.prefix,
		Effect: "a process in a throwaway cgroup burnt 20 ms of processor time",
		Want:   "20 ms to 60 ms accounted to that cgroup",
	}
	spent, err := p.burn(ctx)
	if err != nil {
		return failed(c, err)
	}
	c.Seen = fmt.Sprintf("%v accounted", spent)
	c.Passed = spent >= 20*time.Millisecond && spent <= 60*time.Millisecond
	if !c.Passed {
		c.Reason = "the cgroup's processor account is not what was spent: check that nothing else joins cgroups below " + p.prefix
	}
	return c
}

func (p *Processor) burn(ctx context.Context) (spent time.Duration, err error) {
	g, end, err := throwaway(ctx, p.host, p.prefix, p.Name(), cgroup.Limits{})
	if err != nil {
		return 0, err
	}
	defer end(&err)
	child, err := p.spawn.Spawn(ctx, Child{Cgroup: g.Path(), Act: ActSpin})
	if err != nil {
		return 0, err
	}
	if _, err := waitChild(ctx, child); err != nil {
		return 0, err
	}
	return g.ProcessorTime()
}

// Watch arms the observer; see [Processor] for the value.
func (p *Processor) Watch(_ context.Context, s Subject) (Watch, error) {
	return watchGauges(p.host, p.Name(), s, []gauge{{name: "usage", unit: "ns", read: func(g *cgroup.Group) (int64, error) {
		d, err := g.ProcessorTime()
		return int64(d), err
	}}})
}

// failed is a control that could not be made or read.
func failed(c Control, err error) Control {
	c.Passed = false
	if c.Seen == "" {
		c.Seen = "nothing"
	}
	c.Reason = err.Error()
	return c
}
