package observers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Routes is the observer "routes": the routes in the network namespaces of a
// job's processes, as the host's kernel has them (/proc/PID/net/route and
// ipv6_route, proc_pid_net(5)). Those over the loopback link do not count.
//
// Values: "routes" (count; Worst is the largest sample). Only processes that
// have locked themselves in are judged, as in [Mounts].
//
// What it does not prove: that the guest has no route. A runtime with a network
// stack of its own may hold another table inside; the payload reads that one.
type Routes struct {
	host    Host
	inPlace func(func() error) error
}

// NewRoutes returns the observer. inPlace runs its argument on a thread in the
// place's network namespace, which has a default route: it is the control.
func NewRoutes(h Host, inPlace func(func() error) error) *Routes {
	return &Routes{host: h, inPlace: inPlace}
}

// Name is "routes".
func (*Routes) Name() string { return "routes" }

// Control reads the routes of the place, where a default route stands.
func (o *Routes) Control(context.Context) Control {
	c := Control{Observer: o.Name(), Effect: "the routes of the place are read in the same way", Want: "its default route"}
	var seen []string
	err := o.inPlace(func() (err error) {
		seen, err = routesOf(o.host, "thread-self")
		return err
	})
	c.Seen = strings.Join(seen, ", ")
	switch {
	case err != nil:
		c.Reason = err.Error()
	case !slices.ContainsFunc(seen, func(r string) bool { return strings.HasPrefix(r, "0.0.0.0 ") }):
		c.Reason = "the default route was not seen"
	default:
		c.Passed = true
	}
	return c
}

// Watch arms the observer.
func (o *Routes) Watch(_ context.Context, s Subject) (Watch, error) {
	jail, err := newLockedIn(o.host, s)
	if err != nil {
		return nil, err
	}
	return &routesWatch{host: o.host, jail: jail, obs: Observation{
		Observer: o.Name(), Place: s.Place, Values: map[string]Reading{},
	}}, nil
}

type routesWatch struct {
	host Host
	jail *lockedIn
	obs  Observation
}

func (w *routesWatch) Sample() {
	pids, err := w.jail.pids()
	if err != nil {
		w.lose(err)
		return
	}
	most := int64(-1)
	for _, pid := range pids {
		routes, err := routesOf(w.host, strconv.Itoa(pid))
		if processGone(w.host, strconv.Itoa(pid), err) {
			continue
		}
		if err != nil {
			w.lose(err)
			return
		}
		if n := int64(len(routes)); n > most {
			most = n
			if n > w.obs.Values["routes"].Worst {
				w.obs.Find(fmt.Sprintf("process %d of the job has routes: %s", pid, strings.Join(routes, ", ")))
			}
		}
	}
	if most >= 0 {
		w.obs.Samples++
		w.obs.Values["routes"] = Reading{Worst: max(most, w.obs.Values["routes"].Worst), After: most, Unit: "count"}
	}
}

func (w *routesWatch) lose(err error) {
	if w.obs.Lost == "" {
		w.obs.Lost = err.Error()
	}
}

func (*routesWatch) Ended() {}

func (w *routesWatch) Stored() Observation {
	if w.obs.Lost == "" && w.obs.Samples == 0 {
		w.obs.Lost = "no process of the job was seen after it had locked itself in"
	}
	return w.obs
}

// routesOf reads both tables of one process's network namespace. A kernel
// without IPv6 has no second table.
func routesOf(h Host, proc string) ([]string, error) {
	v4, err := os.ReadFile(filepath.Join(h.Proc, proc, "net/route"))
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	out, err := parseRoutes4(v4)
	if err != nil {
		return nil, err
	}
	v6, err := os.ReadFile(filepath.Join(h.Proc, proc, "net/ipv6_route"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Stat(filepath.Join(h.Proc, proc, "net/route")); gone == nil {
			return out, nil // it is not the process that is missing
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	more, err := parseRoutes6(v6)
	return append(out, more...), err
}

// parseRoutes4 reads "Iface Destination Gateway Flags ... Mask ..." with
// addresses as eight hex digits in the machine's byte order.
func parseRoutes4(data []byte) (out []string, err error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for first := true; lines.Scan(); first = false {
		f := strings.Fields(lines.Text())
		if first || len(f) == 0 {
			continue
		}
		if len(f) < 8 || len(f[1]) != 8 {
			return nil, fmt.Errorf("read routes: unexpected line %q", lines.Text())
		}
		n, err := strconv.ParseUint(f[1], 16, 32)
		if err != nil {
			return nil, fmt.Errorf("read routes: %w", err)
		}
		if f[0] != "lo" {
			out = append(out, fmt.Sprintf("%d.%d.%d.%d over %s", byte(n), byte(n>>8), byte(n>>16), byte(n>>24), f[0]))
		}
	}
	return out, nil
}

// parseRoutes6 reads the ten columns of ipv6_route; the link's name is the last.
func parseRoutes6(data []byte) (out []string, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) != 10 || len(f[0]) != 32 {
			return nil, fmt.Errorf("read routes: unexpected line %q", lines.Text())
		}
		if f[9] != "lo" {
			out = append(out, fmt.Sprintf("%s/%s over %s", f[0], f[1], f[9]))
		}
	}
	return out, nil
}
