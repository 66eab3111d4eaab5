package observers

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const busy = 5000

// BenchmarkProcessScan scans a made /proc of 5,000 processes that were there
// before the job and ten that came after.
func BenchmarkProcessScan(b *testing.B) {
	m := newMadeHost(b)
	for pid := 100000; pid < 100000+busy; pid++ {
		m.process(pid, 1, "/system/service-7")
	}
	w := m.arm()
	for pid := 200000; pid < 200010; pid++ {
		m.process(pid, 1, scanJob)
	}
	sample(b, w, func() {})
	if w.o.Values["in_cgroup"].After != 10 {
		b.Fatalf("%+v", w.o)
	}
}

// sample measures a sample, also in the processor time that it takes, which a
// machine that is busy otherwise does not lengthen as much.
func sample(b *testing.B, w *processesWatch, before func()) {
	b.Helper()
	spent := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began := spent()
	for b.Loop() {
		before()
		w.Sample()
	}
	b.ReportMetric(float64(spent()-began)/float64(b.N), "cpu-ns/op")
	if w.o.Lost != "" {
		b.Fatal(w.o.Lost)
	}
}

// sleepers starts that many real processes that sleep, and ends them with the
// benchmark. Each ends by itself when that does not come to it.
func sleepers(b *testing.B, n int) {
	b.Helper()
	for range n {
		cmd := exec.Command("sleep", "300")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = cmd.Process.Kill() // it may have ended by itself
			_ = cmd.Wait()
		})
	}
}

// realScan is armed before 5,000 real processes come that are not the job's.
func realScan(b *testing.B) *processesWatch {
	b.Helper()
	m := newMadeHost(b)
	m.proc = "/proc"
	w := m.arm()
	sleepers(b, busy)
	return w
}

// BenchmarkProcessScanOfNewOnes sees each of them for the first time in every
// scan, the worst that a sample can meet: the figure to reach is 50 ms.
func BenchmarkProcessScanOfNewOnes(b *testing.B) {
	w := realScan(b)
	sample(b, w, func() { w.last = nil })
	if len(w.last) < busy {
		b.Fatal(len(w.last))
	}
}

// BenchmarkProcessScanAgain is every sample but the first after they came.
func BenchmarkProcessScanAgain(b *testing.B) {
	w := realScan(b)
	w.Sample()
	sample(b, w, func() {})
	if len(w.last) < busy {
		b.Fatal(len(w.last))
	}
}
