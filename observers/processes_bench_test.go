package observers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

const busy = 5000

// BenchmarkProcessScan scans a made /proc of 5,000 processes that were there
// before the job and ten that came after: the figure to reach is 50 ms.
func BenchmarkProcessScan(b *testing.B) {
	root := b.TempDir()
	for pid := 100000; pid < 100000+busy; pid++ {
		fixtureProcess(b, root, pid, 1, "/system/service-7")
	}
	s := scanner{proc: root}
	old := map[identity]bool{}
	list, err := s.list()
	if err != nil {
		b.Fatal(err)
	}
	for _, id := range list {
		old[id] = true
	}
	for pid := 200000; pid < 200010; pid++ {
		fixtureProcess(b, root, pid, 1, "/tenwalls/run/job")
	}
	for b.Loop() {
		found, err := s.scan("/tenwalls/run/job", func(id identity) bool { return old[id] })
		if err != nil || len(found) != 10 {
			b.Fatal(len(found), err)
		}
	}
}

// BenchmarkProcessScanAll reads every process, which no sample does.
func BenchmarkProcessScanAll(b *testing.B) {
	root := b.TempDir()
	for pid := 100000; pid < 100000+busy; pid++ {
		fixtureProcess(b, root, pid, 1, "/system/service-7")
	}
	s := scanner{proc: root}
	for b.Loop() {
		found, err := s.scan("/tenwalls/run/job", none)
		if err != nil || len(found) != busy {
			b.Fatal(len(found), err)
		}
	}
}

// BenchmarkProcessScanHere scans the machine's own /proc as a sample does.
func BenchmarkProcessScanHere(b *testing.B) {
	s := scanner{proc: "/proc"}
	list, err := s.list()
	if err != nil {
		b.Fatal(err)
	}
	old := map[identity]bool{}
	for _, id := range list {
		old[id] = true
	}
	for b.Loop() {
		if _, err := s.scan("/tenwalls/run/job", func(id identity) bool { return old[id] }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(list)), "processes")
}

func none(identity) bool { return false }

// fixtureProcess writes the two files that a scan reads.
func fixtureProcess(tb testing.TB, root string, pid, parent int, cgroup string) {
	tb.Helper()
	dir := filepath.Join(root, fmt.Sprint(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	for name, text := range map[string]string{
		"stat":   fmt.Sprintf("%d (a) b (c) S %d %d %d 0 -1 4194560 9000 80000 50 200 10 20 30 40 20 0 9 0 4242 1270833152\n", pid, parent, pid, pid),
		"cgroup": "9:name=systemd:/\n8:pids:" + cgroup + "\n4:memory:" + cgroup + "\n0::/\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}
