package observers

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"
)

const jailJob = "/tenwalls/run/job"

// jail is a made host: a harness in namespaces of its own, without a filter, and
// a job's cgroup.
func jail(t *testing.T, pids ...int) Host {
	t.Helper()
	h := Host{Proc: t.TempDir(), Cgroup: t.TempDir()}
	plant(t, h.Proc, filesOf("self", 0, nil))
	members := ""
	for _, pid := range pids {
		members += fmt.Sprintln(pid)
	}
	plant(t, h.Cgroup, map[string]string{filepath.Join("pids", jailJob, "cgroup.procs"): members})
	return h
}

// filesOf are a process's seccomp state and namespaces: the harness's but for
// those that are named.
func filesOf(proc string, filters int, others map[string]string) map[string]string {
	files := map[string]string{proc + "/status": fmt.Sprintf("Name:\texe\nSeccomp:\t2\nSeccomp_filters:\t%d\n", filters)}
	ns := map[string]string{}
	for _, n := range fiveNamespaces {
		ns[n] = n + ":[1]"
	}
	maps.Copy(ns, others)
	for n, id := range ns {
		files[proc+"/ns/"+n] = "-> " + id
	}
	return files
}

// apart are five namespaces that the harness is not in.
func apart() map[string]string {
	out := map[string]string{}
	for _, n := range fiveNamespaces {
		out[n] = n + ":[2]"
	}
	return out
}
