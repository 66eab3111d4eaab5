package observers

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestBoundsFollowTheMachine(t *testing.T) {
	g := NewWithT(t)
	for took, want := range map[time.Duration]time.Duration{
		0:                      2 * time.Second, // at rest the bounds are the written ones
		4 * time.Millisecond:   2 * time.Second,
		usualStart:             2 * time.Second,
		150 * time.Millisecond: 6 * time.Second,
		time.Hour:              24 * time.Second,
	} {
		g.Expect(stretched(2*time.Second, slowness(took))).To(Equal(want), took.String())
	}
}

func TestSlownessNeedsAChildThatAnswers(t *testing.T) {
	g := NewWithT(t)
	slow, err := Slowness(t.Context(), reexec{Local()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slow).To(And(BeNumerically(">=", 1), BeNumerically("<=", slowest)))
	_, err = Slowness(t.Context(), broken{})
	g.Expect(err).To(MatchError(ContainSubstring("no spawning")))
	_, err = Slowness(t.Context(), otherAct{reexec{Local()}, "no such act"})
	g.Expect(err).To(MatchError(ContainSubstring("exit status 2")))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = Slowness(ctx, otherAct{reexec{Local()}, ActSleep})
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
}

// otherAct starts a child that does something else than it was asked.
type otherAct struct {
	reexec
	act string
}

func (o otherAct) Spawn(ctx context.Context, c Child) (*os.Process, error) {
	c.Act = o.act
	return o.reexec.Spawn(ctx, c)
}

// A bystander that answers when the test says so.
func lateEchoer(t *testing.T, patience time.Duration) (*echoer, func()) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		t.Fatal(err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return &echoer{process: self, channel: ours, patience: patience}, func() {
		b := []byte{0}
		if _, err := theirs.Read(b); err != nil {
			t.Error(err)
		}
		if _, err := theirs.Write(b); err != nil {
			t.Error(err)
		}
	}
}

// A late answer is a long latency, of which no look waits longer than a glance;
// one that is too late is a stall, and its coming is seen after it.
func TestBystanderThatAnswersLate(t *testing.T) {
	g := NewWithT(t)
	e, answer := lateEchoer(t, time.Minute)
	first := e.pulse(Local())
	g.Expect(first.alive).To(BeEquivalentTo(1))
	g.Expect(first.pending).To(BeTrue())
	g.Expect(first.latency).To(BeNumerically(">=", glance))
	second := e.pulse(Local())
	g.Expect(second.latency).To(BeNumerically(">=", 2*glance), "it is still the first byte's")
	answer()
	third := e.pulse(Local())
	g.Expect(third.pending).To(BeFalse())
	g.Expect(third.alive).To(BeEquivalentTo(1))
	g.Expect(third.latency).To(BeNumerically(">=", second.latency))

	e, answer = lateEchoer(t, time.Nanosecond)
	stalled := e.pulse(Local())
	g.Expect(stalled.alive).To(BeZero())
	g.Expect(stalled.why).To(ContainSubstring("does not answer"))
	answer()
	g.Expect(e.pulse(Local()).alive).To(BeEquivalentTo(1))
}

func TestAwaitingTheBystanderEnds(t *testing.T) {
	g := NewWithT(t)
	e, _ := lateEchoer(t, 3*glance)
	g.Expect(e.await(t.Context(), Local()).why).To(ContainSubstring("does not answer"))
	e, _ = lateEchoer(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := e.await(ctx, Local())
	g.Expect(p.alive).To(BeZero())
	g.Expect(p.why).To(ContainSubstring("canceled"))
}
