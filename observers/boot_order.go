package observers

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

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
