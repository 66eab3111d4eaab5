package observers

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// A sandbox's command line as a runsc of 2026 writes it, shortened.
const bootLine = "runsc-sandbox\x00--root=/j/root\x00--network=none\x00--platform=systrap\x00--oci-seccomp=true\x00--ignore-cgroups=true\x00--log-fd=3\x00--debug-log-fd=4\x00boot\x00--bundle=/j/bundle\x00--gofer-mount-confs=lisafs:none\x00--attached\x00job\x00"

var bootOrdered = []string{"--root=/j/root", "--platform=systrap", "--network=none", "--ignore-cgroups", "--oci-seccomp"}

func TestBootCommand(t *testing.T) {
	for line, want := range map[string]string{
		bootLine: "/j/bundle",
		"runsc-gofer\x00--root=/j/root\x00gofer\x00--bundle\x00/j/other\x00job\x00": "/j/other",
	} {
		c, ok := bootCommand(line)
		if !ok || c.bundle != want || c.flags[0] != "--root=/j/root" {
			t.Errorf("%q: %+v, %v", line, c, ok)
		}
	}
	for _, line := range []string{"", "\x00", "runsc\x00run\x00", "runsc-sandbox\x00wait\x00", "/bin/runsc-sandbox\x00boot\x00", "sh\x00-c\x00boot\x00"} {
		if c, ok := bootCommand(line); ok {
			t.Errorf("%q: %+v", line, c)
		}
	}
}

func TestDifferentFlags(t *testing.T) {
	c, _ := bootCommand(bootLine)
	if got := differentFlags(bootOrdered, c.flags); got != nil {
		t.Errorf("as ordered: %q", got)
	}
	for _, tt := range []struct {
		change func([]string) []string
		want   string
	}{
		{func(f []string) []string { return append(f, "--host-uds=all") }, "--host-uds=all, which was not ordered"},
		{func(f []string) []string { return append(f, "-strace") }, "--strace=true, which was not ordered"},
		{func(f []string) []string { return append(f, "--host-fd=3") }, "--host-fd=3, which was not ordered"},
		{func(f []string) []string { return append(f, "--network=host") }, "--network=host instead of none"},
		{func(f []string) []string { return without(f, "--oci-seccomp=true") }, "--oci-seccomp=true was ordered and is not there"},
	} {
		if got := differentFlags(bootOrdered, tt.change(slices.Clone(c.flags))); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if got := differentFlags(bootOrdered, without(c.flags, "--platform=systrap")); got != nil {
		t.Errorf("a build whose default platform it is: %q", got)
	}
}

func without(flags []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f == one })
}

const orderedConfig = `{"ociVersion":"1.0.0","linux":{"namespaces":[{"type":"pid"}]},
	"mounts":[{"destination":"/proc","type":"proc","source":"proc"},{"destination":"/scratch","type":"bind","source":"/j/scratch","options":["nosuid","nodev"]}]}`

// As the runtime keeps it: the source of the kernel's file systems made a path,
// the cgroup's name and the identity of a user namespace added.
const keptAccount = `{"bundleDir":"/j/bundle","spec":{"ociVersion":"1.0.0","linux":{"cgroupsPath":"/job","namespaces":[{"type":"pid"},{"type":"user"}],
	"uidMappings":[{"containerID":0,"hostID":0,"size":4294967295}],"gidMappings":[{"containerID":0,"hostID":0,"size":4294967295}]},
	"mounts":[{"destination":"/proc","type":"proc","source":"/j/bundle/proc"},{"destination":"/scratch","type":"bind","source":"/j/scratch","options":["nosuid","nodev"]}]}}`

func TestBootWatch(t *testing.T) {
	for name, tt := range map[string]struct {
		account            string
		line               string
		containers, fields int64
		processes, flags   int64
		found              string
		otherState         string
	}{
		"as ordered":         {account: keptAccount, line: bootLine, containers: 1, processes: 1},
		"a hook":             {account: strings.Replace(keptAccount, `"linux"`, `"hooks":{"poststop":[{"path":"/x"}]},"linux"`, 1), line: bootLine, containers: 1, processes: 1, fields: 1, found: "container: hooks is"},
		"options dropped":    {account: strings.Replace(keptAccount, `"nosuid",`, ``, 1), line: bootLine, containers: 1, processes: 1, fields: 1, found: "container: mounts is"},
		"another bind":       {account: strings.Replace(keptAccount, `/j/scratch`, `/`, 1), line: bootLine, containers: 1, processes: 1, fields: 1, found: "container: mounts is"},
		"another cgroup":     {account: strings.Replace(keptAccount, `"/job"`, `"/other"`, 1), line: bootLine, containers: 1, processes: 1, fields: 1, found: "container: linux.cgroupsPath is"},
		"users mapped":       {account: strings.Replace(keptAccount, `"hostID":0`, `"hostID":1000`, 1), line: bootLine, containers: 1, processes: 1, fields: 1, found: "container: linux.uidMappings is"},
		"a joined namespace": {account: strings.Replace(keptAccount, `{"type":"user"}`, `{"type":"user","path":"/proc/1/ns/user"}`, 1), line: bootLine, containers: 1, processes: 1, fields: 1, found: "container: linux.namespaces is"},
		"another bundle":     {account: strings.Replace(keptAccount, "/j/bundle", "/k", 1), line: strings.Replace(bootLine, "/j/bundle", "/k", 1), containers: 1, processes: 1, fields: 1, flags: 1, found: "--bundle=/k instead of /j/bundle"},
		"half written":       {account: keptAccount[:100], line: bootLine, processes: 1},
		"no account":         {line: bootLine, processes: 1},
		"another container":  {otherState: keptAccount, line: bootLine, processes: 1},
		"nobody":             {account: keptAccount, line: "sleep\x001\x00", containers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := recordedHost(t)
			state := t.TempDir()
			plant(t, h.Cgroup, map[string]string{"cgroup.controllers": "memory pids\n", "t/job/cgroup.procs": "100\n"})
			plant(t, h.Proc, map[string]string{"100/cmdline": tt.line})
			for file, text := range map[string]string{"job_sandbox:job.state": tt.account, "other.state": tt.otherState} {
				if text != "" {
					plant(t, state, map[string]string{file: text})
				}
			}
			w, err := NewBoot(h, "/t", nil).Watch(context.Background(), Subject{Cgroup: "/t/job", Container: "job", Order: Order{
				Flags: bootOrdered, Bundle: "/j/bundle", Config: []byte(orderedConfig), State: state,
			}})
			if err != nil {
				t.Fatal(err)
			}
			w.Sample()
			w.Sample() // what was seen once is not counted twice
			w.Ended()
			o := w.Stored()
			for value, want := range map[string]int64{"processes": tt.processes, "flags": tt.flags, "containers": tt.containers, "container": tt.fields} {
				if got := o.Values[value].Worst; got != want {
					t.Errorf("%s: got %d, want %d", value, got, want)
				}
			}
			if n := int64(len(o.Found)); n != tt.flags+tt.fields {
				t.Errorf("found %d things: %q", n, o.Found)
			}
			if found := strings.Join(o.Found, "; "); !strings.Contains(found, tt.found) || tt.found == "" && found != "" {
				t.Errorf("found %q", found)
			}
		})
	}
}

func TestBootWatchOfNoOrder(t *testing.T) {
	h, _ := recordedHost(t)
	plant(t, h.Cgroup, map[string]string{"cgroup.controllers": "memory pids\n"})
	if _, err := NewBoot(h, "/t", nil).Watch(context.Background(), Subject{Cgroup: "/t/job"}); err == nil {
		t.Error("nothing to compare with, and no error")
	}
}
