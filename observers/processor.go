package observers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tenwalls.dev/harness/internal/cgroup"
)

// Processor is the observer "processor": the processor time that the kernel
// accounts to the job's cgroup, all its tasks together, ended ones included.
//
// Value "usage", ns. On cgroup version 1 starting the job's first process
// charges its group well under a millisecond of the harness's own.
//
// Value "idle", ns: the time that all processors of the host together had nothing
// to do, waiting for disks included (proc_stat(5), in steps of 10 ms). It tells a
// job that did not want more from one that got no more.
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

// accountsApart is how far the cgroup's account may stand from what the kernel
// told of the process itself: less than the 20 ms that are burnt.
const accountsApart = 10 * time.Millisecond

// Control burns 20 ms or more in a throwaway group, however slow the machine
// is, and wants to see what the kernel told of the process when it ended.
func (p *Processor) Control(ctx context.Context) Control {
	c := Control{
		Observer: p.Name(), Place: p.prefix,
		Effect: "a process in a throwaway cgroup burnt 20 ms of processor time or a little more",
		Want:   "what the process is said to have burnt, within " + accountsApart.String(),
	}
	spent, burnt, err := p.burn(ctx)
	if err != nil {
		return failed(c, err)
	}
	c.Seen = fmt.Sprintf("%v accounted, %v burnt", spent, burnt)
	c.Passed = burnt >= 20*time.Millisecond && (spent-burnt).Abs() <= accountsApart
	if !c.Passed {
		c.Reason = "the cgroup's processor account is not what was spent: check that nothing else joins cgroups below " + p.prefix
	}
	return c
}

// burn returns what the cgroup's account and what wait4(2) say.
func (p *Processor) burn(ctx context.Context) (spent, burnt time.Duration, err error) {
	g, end, err := throwaway(ctx, p.host, p.prefix, p.Name(), cgroup.Limits{})
	if err != nil {
		return 0, 0, err
	}
	defer end(&err)
	child, err := p.spawn.Spawn(ctx, Child{Cgroup: g.Path(), Act: ActSpin})
	if err != nil {
		return 0, 0, err
	}
	ended, err := waitChild(ctx, child)
	if err != nil {
		return 0, 0, err
	}
	spent, err = g.ProcessorTime()
	return spent, ended.UserTime() + ended.SystemTime(), err
}

// Watch arms the observer; see [Processor] for the value.
func (p *Processor) Watch(_ context.Context, s Subject) (Watch, error) {
	return watchGauges(p.host, p.Name(), s, []gauge{
		{name: "usage", unit: "ns", read: func(g *cgroup.Group) (int64, error) {
			d, err := g.ProcessorTime()
			return int64(d), err
		}},
		{name: "idle", unit: "ns", ends: true, read: func(*cgroup.Group) (int64, error) {
			n, err := idle(p.host)
			if err != nil { // then a busy host is not told from a wall
				err = fmt.Errorf("%w: %w", ErrNotAccounted, err)
			}
			return n, err
		}},
	})
}

// userHZ is the unit of proc_stat(5) on every architecture that runsc runs on.
const userHZ = 100

func idle(h Host) (int64, error) {
	f, err := os.Open(filepath.Join(h.Proc, "stat"))
	if err != nil {
		return 0, fmt.Errorf("idle time: %w", err)
	}
	defer f.Close() // read only
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("idle time: %s: %w", f.Name(), err)
	}
	fields := strings.Fields(line) // cpu user nice system idle iowait ...
	if len(fields) < 6 || fields[0] != "cpu" {
		return 0, fmt.Errorf("idle time: %s begins with %.80q", f.Name(), line)
	}
	var ticks int64
	for _, field := range fields[4:6] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("idle time: %s: %w", f.Name(), err)
		}
		ticks += n
	}
	return ticks * int64(time.Second/userHZ), nil
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
