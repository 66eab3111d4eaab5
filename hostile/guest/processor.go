package main

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// Parameters: "cpu_ms", the granted processor time over the job (2000 when
// missing), and "bound". All spinning is done by children, and a child that the
// guest kernel's limit on one process ends is replaced: only what ends the whole
// job ends the attempt. The count of every claim is processor time in ms.
var (
	_ = route("processor", "spinner", func(p *Probe) { burn(p, "spin", 1, spinner{}) })
	_ = route("processor", "threads", burnThreads)
	_ = route("processor", "forks", func(p *Probe) { burn(p, "spin in four children", 4, spinner{}) })
	_ = route("processor", "relay", burnRelay)
	_ = route("processor", "ignore-sigxcpu", func(p *Probe) { burn(p, "spin, SIGXCPU ignored", 1, spinner{way: spinDeaf}) })
	_ = route("processor", "system-calls", func(p *Probe) { burn(p, "getpid for ever", 1, spinner{way: spinInCalls}) })
	_ = route("processor", "limit-behind", burnOne)
)

// idle is how long a route stays, doing nothing, once it has spun as far as it
// may: long enough to be ended by the wall clock, which is meant to come last.
const idle = 30 * time.Second

// burn keeps n children spinning, to the bound over all of them.
func burn(p *Probe, call string, n int, s spinner) {
	granted := numberOr(p, "cpu_ms", 2000)
	meters, err := newMeters(n)
	if err != nil {
		p.Failed(err.Error())
		return
	}
	threads := 1
	if s.beside[0] != nil {
		threads += len(s.beside)
	}
	s.share = time.Duration(bound(p, granted)) * time.Millisecond / time.Duration(n*threads)
	p.Reached(call, fmt.Sprintf("%d children of %d threads; RLIMIT_CPU %s", n, threads, limitOf(unix.RLIMIT_CPU)))
	who := make(map[int]int, n) // pid to the meter it works for
	for i := range n {
		if pid, errno := launch(&s, &meters[i]); errno == 0 {
			who[pid] = i
		}
	}
	var used, clocked int64
	for {
		pid, ms, ended, err := awaitSpinner()
		if err != nil {
			break // no child is left
		}
		clocked += ms
		i := who[pid]
		delete(who, pid)
		used = total(meters)
		p.Progress(used)
		if used > granted+granted/2 && (n > 1 || s.relay) {
			p.Happened(call, used, fmt.Sprintf("%d ms of processor time by the work that was done; %d granted to the job", used, granted))
			stop(meters)
			return
		}
		// The guest's clock bounds the attempt as well, for the case that the
		// threads beside a child starve it: it says too much, never too little.
		if ended != 0 && meters[i].used < int64(s.share) && clocked < 2*bound(p, granted) {
			if pid, errno := launch(&s, &meters[i]); errno == 0 {
				who[pid] = i
			}
		}
	}
	// One process spun far beyond the cap. It stops there so as to harm nobody,
	// and the payload stays to be ended by what is meant to end it last.
	time.Sleep(idle)
	p.Happened(call, used, "no cap on processor time and no wall clock ended the job")
}

// stop has all children end, those of a relay that are yet to come as well.
func stop(meters []meter) {
	for i := range meters {
		meters[i].stop = 1
	}
	for err := error(nil); err == nil; {
		_, _, _, err = awaitSpinner()
	}
}

// burnThreads spins in four threads of one child.
func burnThreads(p *Probe) {
	c, err := newCrew()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	var s spinner
	for i := range s.beside {
		order, err := c.newOrder()
		if err != nil {
			p.Failed(err.Error())
			return
		}
		order.spin, s.beside[i] = 1, order
	}
	burn(p, "spin in four threads of one child", 1, s)
}

// burnRelay spins in one child after the other, each ending short of the limit
// of one process, so that this limit never comes.
func burnRelay(p *Probe) {
	one := time.Duration(numberOr(p, "cpu_ms", 2000)) * time.Millisecond
	if limit, limited := softLimit(unix.RLIMIT_CPU); limited {
		one = time.Duration(limit) * time.Second
	}
	one = one * 95 / 100
	burn(p, fmt.Sprintf("spin %v, fork, exit", one), 1, spinner{until: one, relay: true})
}

// burnOne spins in one child and tells how that one ended.
func burnOne(p *Probe) {
	const call = "spin"
	granted := numberOr(p, "cpu_ms", 2000)
	meters, err := newMeters(1)
	if err != nil {
		p.Failed(err.Error())
		return
	}
	s := spinner{share: time.Duration(bound(p, granted)) * time.Millisecond}
	p.Reached(call, "RLIMIT_CPU "+limitOf(unix.RLIMIT_CPU))
	if _, errno := launch(&s, &meters[0]); errno != 0 {
		p.Failed("make a spinning child: " + errno.Error())
		return
	}
	_, used, ended, err := awaitSpinner()
	switch {
	case err != nil:
		p.Failed("wait for the spinning child: " + err.Error())
	case ended != 0:
		limit, limited := softLimit(unix.RLIMIT_CPU)
		p.Refused(hostile.CPULimit, limitPlace(used, limit, limited), call, used, fmt.Sprintf(
			"the child ended by %s when wait4's rusage said %d ms; RLIMIT_CPU %s", unix.SignalName(ended), used, limitOf(unix.RLIMIT_CPU)))
	default:
		p.Progress(total(meters))
		time.Sleep(idle)
		p.Happened(call, used, "neither the limit of one process nor the wall clock ended it")
	}
}

func launch(s *spinner, m *meter) (pid int, errno syscall.Errno) {
	defer blockSignals()()
	s.meter = m
	child, errno := s.launch()
	return int(child), errno
}

// awaitSpinner waits for the end of any child, also of one that a child of the
// payload left behind, and returns its processor time in ms by the guest's
// clocks and the signal that ended it, or 0.
func awaitSpinner() (pid int, used int64, ended unix.Signal, err error) {
	var status unix.WaitStatus
	var usage unix.Rusage
	for {
		if pid, err = unix.Wait4(-1, &status, 0, &usage); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return 0, 0, 0, err
	}
	if status.Signaled() {
		ended = status.Signal()
	}
	return pid, (usage.Utime.Nano() + usage.Stime.Nano()) / int64(time.Millisecond), ended, nil
}

func total(meters []meter) (ms int64) {
	for i := range meters {
		ms += meters[i].used / int64(time.Millisecond)
	}
	return ms
}

// limitPlace names the process limit only when the child came as far as its
// RLIMIT_CPU: SIGKILL comes from elsewhere as well.
func limitPlace(used int64, limit uint64, limited bool) hostile.Place {
	ms := int64(limit) * 1000
	if limited && used >= ms-100 && used <= ms+1000 {
		return hostile.ProcessLimit
	}
	return hostile.Unknown
}
