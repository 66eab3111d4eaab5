package observers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tenwalls.dev/harness/internal/cgroup"
)

// Boot is the observer "boot": whether the runtime that runs is the one that the
// runner ordered. A program in the runtime's place can call the real one with a
// flag or a bundle of its own, and then the runner's configuration says one
// thing and the sandbox is another.
//
// Values, all counts and Worst the most at one look: "processes", the sandbox
// and gofer processes whose command line was read; "flags", what stands in those
// otherwise than ordered; "containers", the container that the runtime keeps
// account of; "container", the fields of its OCI runtime configuration
// (config.md of the OCI runtime specification) that are otherwise than ordered.
//
// What it does not prove: that the program is the runtime it says it is (the
// report has its digest), nor that it heeds what it was given. The attempts
// show that.
type Boot struct {
	host   Host
	prefix string
	spawn  Spawner
}

// NewBoot watches over h; prefix is the run's cgroup.
func NewBoot(h Host, prefix string, spawn Spawner) *Boot { return &Boot{h, prefix, spawn} }

// Order is what the runner told the runtime.
type Order struct {
	Flags  []string // before the command, "--name=value" or "--name"
	Bundle string   // folder of the bundle
	Config []byte   // the bundle's config.json
	State  string   // the runtime's state folder (--root)
}

// Name is "boot".
func (*Boot) Name() string { return "boot" }

// Control starts a process under the sandbox's name with another flag than
// ordered, beside the account of a container with a hook that nobody ordered.
func (b *Boot) Control(ctx context.Context) Control {
	c := Control{
		Observer: b.Name(), Place: b.prefix,
		Effect: "a process of the sandbox's name with another flag than ordered, and a container's account with a hook",
		Want:   "1 flag and 1 field otherwise than ordered",
	}
	o, err := b.misordered(ctx)
	if err != nil {
		return failed(c, err)
	}
	flags, fields := o.Values["flags"].Worst, o.Values["container"].Worst
	c.Seen = fmt.Sprintf("%d and %d: %s", flags, fields, strings.Join(o.Found, "; "))
	if c.Passed = o.Lost == "" && flags == 1 && fields == 1; !c.Passed {
		c.Reason = strings.TrimSpace("the difference was not read back as made " + o.Lost)
	}
	return c
}

func (b *Boot) misordered(ctx context.Context) (_ Observation, err error) {
	g, end, err := throwaway(ctx, b.host, b.prefix, b.Name(), cgroup.Limits{})
	if err != nil {
		return Observation{}, err
	}
	defer end(&err)
	dir, err := os.MkdirTemp(b.host.Temp, "boot-")
	if err != nil {
		return Observation{}, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	const ordered = `{"ociVersion":"1.0.0"}`
	account, err := json.Marshal(map[string]any{"bundleDir": dir, "spec": json.RawMessage(`{"ociVersion":"1.0.0","hooks":{"poststop":[{"path":"/nowhere"}]}}`)})
	if err != nil {
		return Observation{}, fmt.Errorf("write account: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "control.state"), account, 0o600); err != nil {
		return Observation{}, fmt.Errorf("write account: %w", err)
	}
	p, err := b.spawn.Spawn(ctx, Child{Cgroup: g.Path(), Act: ActSleep, Name: sandboxName, Args: []string{"--network=host", "boot", "--bundle=" + dir}})
	if err != nil {
		return Observation{}, err
	}
	defer reap(p)
	w, err := b.Watch(ctx, Subject{
		Place: "control", Cgroup: g.Path(), Container: "control",
		Order: Order{Flags: []string{"--network=none"}, Bundle: dir, Config: []byte(ordered), State: dir},
	})
	if err != nil {
		return Observation{}, err
	}
	w.Sample()
	w.Ended()
	return w.Stored(), nil
}
