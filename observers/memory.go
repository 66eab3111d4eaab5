package observers

import (
	"context"
	"errors"
	"fmt"

	"tenwalls.dev/harness/internal/cgroup"
)

// Memory is the observer "memory": what the kernel charges to the job's cgroup.
//
// Values in bytes: "usage" as sampled, "peak" as the kernel kept it, "swap" as
// sampled, its worst raised by the kernel's own peak where there is one. A
// value that the kernel does not account is absent from the observation.
type Memory struct {
	host   Host
	prefix string
	spawn  Spawner
}

// NewMemory watches over h; prefix is the run's cgroup.
func NewMemory(h Host, prefix string, spawn Spawner) *Memory {
	return &Memory{host: h, prefix: prefix, spawn: spawn}
}

// Name is "memory".
func (*Memory) Name() string { return "memory" }

// Control holds 8 MiB in a throwaway group and wants to see them, and little
// more, in use and in the peak. Swap has no control of its own: pushing pages
// out would disturb the machine.
func (m *Memory) Control(ctx context.Context) Control {
	c := Control{
		Observer: m.Name(), Place: m.prefix,
		Effect: "a process in a throwaway cgroup touched 8 MiB and held them",
		Want:   "8 MiB to 128 MiB in use at once and in the peak",
	}
	usage, peak, swap, err := m.hold(ctx)
	if err != nil {
		return failed(c, err)
	}
	c.Seen = fmt.Sprintf("%d bytes in use, peak %d, %s", usage, peak, swap)
	// Beside the 8 MiB stand the program itself and its file's pages.
	c.Passed = usage >= 8<<20 && peak >= usage && peak <= 128<<20
	if !c.Passed {
		c.Reason = "the cgroup's memory account does not show what was held: check that the memory controller is enabled below " + m.prefix
	}
	return c
}

func (m *Memory) hold(ctx context.Context) (usage, peak int64, swap string, err error) {
	g, end, err := throwaway(ctx, m.host, m.prefix, m.Name(), cgroup.Limits{MemoryBytes: 128 << 20})
	if err != nil {
		return 0, 0, "", err
	}
	defer end(&err)
	child, err := m.spawn.Spawn(ctx, Child{Cgroup: g.Path(), Act: ActHold})
	if err != nil {
		return 0, 0, "", err
	}
	defer reap(child)
	until(ctx, func() bool {
		usage, err = g.MemoryUsage()
		return err != nil || usage >= 8<<20
	})
	if err != nil {
		return 0, 0, "", err
	}
	if peak, err = g.MemoryPeak(); err != nil {
		return 0, 0, "", err
	}
	switch n, e := g.SwapUsage(); {
	case errors.Is(e, ErrNotAccounted):
		swap = "swap is not accounted here (boot with swapaccount=1 to have it)"
	case e != nil:
		return 0, 0, "", e
	default:
		swap = fmt.Sprintf("swap %d", n)
	}
	return usage, peak, swap, nil
}

// Watch arms the observer; see [Memory] for the values.
func (m *Memory) Watch(_ context.Context, s Subject) (Watch, error) {
	return watchGauges(m.host, m.Name(), s, []gauge{
		{name: "usage", unit: "bytes", read: (*cgroup.Group).MemoryUsage},
		{name: "peak", unit: "bytes", read: (*cgroup.Group).MemoryPeak},
		{name: "swap", unit: "bytes", read: (*cgroup.Group).SwapUsage, peak: (*cgroup.Group).SwapPeak},
	})
}
