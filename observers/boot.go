package observers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
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
	account := `{"bundleDir":"` + dir + `","spec":{"ociVersion":"1.0.0","hooks":{"poststop":[{"path":"/nowhere"}]}}}`
	if err := os.WriteFile(filepath.Join(dir, "control.state"), []byte(account), 0o600); err != nil {
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

// Watch arms the observer; see [Boot] for the values.
func (b *Boot) Watch(_ context.Context, s Subject) (Watch, error) {
	tree, err := OpenCgroups(b.host)
	if err != nil {
		return nil, err
	}
	w := &bootWatch{host: b.host, tree: tree, subject: s, read: map[string]bool{}}
	w.obs = Observation{Observer: b.Name(), Place: s.Place, Values: map[string]Reading{}}
	if err := json.Unmarshal(s.Order.Config, &w.config); err != nil {
		return nil, fmt.Errorf("watch boot: read the ordered configuration: %w", err)
	}
	plainSources(w.config)
	for _, name := range []string{"processes", "flags", "containers", "container"} {
		w.most(name, 0)
	}
	return w, nil
}

type bootWatch struct {
	host    Host
	tree    *Cgroups
	subject Subject
	config  map[string]any
	read    map[string]bool // command lines that were looked at
	account string          // that was looked at
	obs     Observation
}

// Sample reads the command lines, and the container's account when it has
// changed.
func (w *bootWatch) Sample() {
	pids, err := w.tree.Procs(w.subject.Cgroup)
	if err != nil {
		return // not there yet, or no more
	}
	w.obs.Samples++
	var processes int64
	for _, pid := range pids {
		line, err := os.ReadFile(filepath.Join(w.host.Proc, strconv.Itoa(pid), "cmdline"))
		command, ok := bootCommand(string(line))
		if err != nil || !ok {
			continue
		}
		processes++
		if !w.read[string(line)] {
			w.read[string(line)] = true
			w.judge(command)
		}
	}
	w.most("processes", processes)
	w.readAccount()
}

func (w *bootWatch) judge(c command) {
	found := differentFlags(w.subject.Order.Flags, c.flags)
	if c.bundle != w.subject.Order.Bundle {
		found = append(found, "--bundle="+c.bundle+" instead of "+w.subject.Order.Bundle)
	}
	for _, f := range found {
		w.obs.Find(c.name + ": " + f)
	}
	w.most("flags", int64(len(found)))
}

// accountSize bounds an account; a real one has some 10 KiB.
const accountSize = 4 << 20

// readAccount looks at how the runtime remembers the container: a file of its
// state folder that names the container and ends in .state, in JSON.
func (w *bootWatch) readAccount() {
	files, _ := filepath.Glob(filepath.Join(w.subject.Order.State, "*.state"))
	for _, file := range files {
		data, err := readBounded(file, accountSize)
		if err != nil || string(data) == w.account {
			continue
		}
		var account struct {
			Bundle string         `json:"bundleDir"`
			Spec   map[string]any `json:"spec"`
		}
		if !strings.Contains(filepath.Base(file), w.subject.Container) || json.Unmarshal(data, &account) != nil || account.Spec == nil {
			continue // half written: the next look meets it whole
		}
		w.account = string(data)
		plainSources(account.Spec)
		plainLinux(account.Spec, w.subject.Container)
		found := differentFields("", w.config, account.Spec)
		if account.Bundle != w.subject.Order.Bundle {
			found = append(found, "the bundle: "+account.Bundle+" instead of "+w.subject.Order.Bundle)
		}
		for _, f := range found {
			w.obs.Find("container: " + f)
		}
		w.most("containers", 1)
		w.most("container", int64(len(found)))
	}
}

func (w *bootWatch) most(name string, n int64) {
	r := w.obs.Values[name]
	w.obs.Values[name] = Reading{Worst: max(r.Worst, n), After: n, Unit: "count"}
}

func (*bootWatch) Ended() {}

func (w *bootWatch) Stored() Observation { return w.obs }

func readBounded(file string, most int64) ([]byte, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fs.ErrInvalid
	}
	return os.ReadFile(file)
}

// The names that the runtime's lasting processes give themselves, with the
// command that each is.
const sandboxName = "runsc-sandbox"

var bootCommands = map[string]string{sandboxName: "boot", "runsc-gofer": "gofer"}

// command is a call of the runtime.
type command struct {
	name   string // of the process
	flags  []string
	bundle string
}

// bootCommand takes the command line of a process apart (proc_pid_cmdline(5));
// ok is false when it is not one of the runtime's lasting processes.
func bootCommand(line string) (c command, ok bool) {
	args := strings.Split(strings.TrimSuffix(line, "\x00"), "\x00")
	c.name = args[0]
	verb, ok := bootCommands[c.name]
	at := slices.Index(args, verb)
	if !ok || at < 0 {
		return c, false
	}
	for _, a := range args[1:at] {
		if strings.HasPrefix(a, "-") {
			c.flags = append(c.flags, a)
		}
	}
	for i := at + 1; i < len(args); i++ {
		name, value, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if name != "bundle" || !strings.HasPrefix(args[i], "-") {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		c.bundle = value
	}
	return c, true
}

// ownFlags are those that the runtime gives its own processes: descriptors of
// files that it opened by the flags that the runner did give.
var ownFlags = []string{"log-fd", "debug-log-fd", "panic-log-fd"}

// differentFlags lists what was not ordered, and what was and is not there or
// has another value. The runtime may leave out the platform where it is the
// default of its build.
func differentFlags(ordered, seen []string) []string {
	want, have := flagValues(ordered), flagValues(seen)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(have)) {
		value, ok := want[name]
		switch {
		case !ok && slices.Contains(ownFlags, name):
		case !ok:
			out = append(out, fmt.Sprintf("--%s=%s, which was not ordered", name, have[name]))
		case value != have[name]:
			out = append(out, fmt.Sprintf("--%s=%s instead of %s", name, have[name], value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := have[name]; !ok && name != "platform" {
			out = append(out, fmt.Sprintf("--%s=%s was ordered and is not there", name, want[name]))
		}
	}
	return out
}

func flagValues(flags []string) map[string]string {
	out := map[string]string{}
	for _, f := range flags {
		name, value, joined := strings.Cut(strings.TrimLeft(f, "-"), "=")
		if !joined {
			value = "true"
		}
		out[name] = value
	}
	return out
}

// plainSources takes the source away from mounts of the kernel's own file
// systems, which have none: the runtime makes a path below the bundle of it.
func plainSources(config map[string]any) {
	mounts, _ := config["mounts"].([]any)
	for _, m := range mounts {
		if mount, ok := m.(map[string]any); ok && mount["type"] != "bind" {
			delete(mount, "source")
		}
	}
}

// plainLinux takes away what the runtime adds in its own account of Linux: the
// name of the cgroup that it was told to leave alone, and the user namespace in
// which it puts its own processes, whose users are those of the host.
func plainLinux(config map[string]any, container string) {
	linux, _ := config["linux"].(map[string]any)
	if linux["cgroupsPath"] == "/"+container {
		delete(linux, "cgroupsPath")
	}
	identity := []any{map[string]any{"containerID": 0.0, "hostID": 0.0, "size": float64(1<<32 - 1)}}
	for _, name := range []string{"uidMappings", "gidMappings"} {
		if reflect.DeepEqual(linux[name], identity) {
			delete(linux, name)
		}
	}
	if namespaces, ok := linux["namespaces"].([]any); ok {
		linux["namespaces"] = slices.DeleteFunc(namespaces, func(n any) bool { return reflect.DeepEqual(n, map[string]any{"type": "user"}) })
	}
}

// differentFields lists the fields of a JSON object that differ, by their path.
func differentFields(path string, want, have any) []string {
	wants, ok := want.(map[string]any)
	haves, ok2 := have.(map[string]any)
	if !ok || !ok2 {
		if reflect.DeepEqual(want, have) {
			return nil
		}
		return []string{fmt.Sprintf("%s is %s instead of %s", path, inJSON(have), inJSON(want))}
	}
	all := maps.Clone(wants)
	maps.Copy(all, haves)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, differentFields(strings.TrimPrefix(path+"."+name, "."), wants[name], haves[name])...)
	}
	return out
}

// inJSON is a value in a message.
func inJSON(v any) string {
	if v == nil {
		return "not there"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(text) > 300 {
		text = append(text[:300], "..."...)
	}
	return string(text)
}
