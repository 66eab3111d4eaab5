package observers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tenwalls.dev/harness/internal/bounded"
)

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
		data, err := bounded.Read(file, accountSize)
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
