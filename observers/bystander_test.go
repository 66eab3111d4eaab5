package observers

import (
	"context"
	"errors"
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBystanderIsAliveUntilItIsKilled(t *testing.T) {
	g := NewWithT(t)
	b := NewBystander(Local(), reexec{Local()})
	first, err := b.Watch(t.Context(), Subject{Place: "first"})
	g.Expect(err).NotTo(HaveOccurred())
	second, err := b.Watch(t.Context(), Subject{Place: "second"})
	g.Expect(err).NotTo(HaveOccurred())
	first.Sample()
	first.Ended()
	healthy := first.Stored()
	g.Expect(healthy.Lost).To(BeEmpty())
	g.Expect(healthy.Found).To(BeEmpty())
	g.Expect(healthy.Samples).To(Equal(3))
	g.Expect(healthy.Values["alive"]).To(Equal(Reading{Before: 1, Worst: 1, After: 1, Unit: "count"}))
	g.Expect(healthy.Values["latency"].Worst).To(BeNumerically(">", 0))

	// The process is shared: it is there for the second watch still.
	g.Expect(b.one.process.Kill()).To(Succeed())
	_, err = b.one.process.Wait()
	g.Expect(err).NotTo(HaveOccurred())
	second.Sample()
	dead := second.Stored()
	g.Expect(dead.Values["alive"]).To(Equal(Reading{Before: 1, Worst: 0, After: 0, Unit: "count"}))
	g.Expect(dead.Found).To(ConsistOf(ContainSubstring("does not answer")))
	g.Expect(b.one).To(BeNil())
}

func TestBystanderThatRecoveredWasDisturbed(t *testing.T) {
	g := NewWithT(t)
	w := &bystanderWatch{o: Observation{Values: map[string]Reading{"alive": {Before: 1, Worst: 1}}}}
	w.take(pulse{alive: 0, latency: stall, why: "stalled"})
	w.take(pulse{alive: 1, latency: 1, swapped: 4096})
	g.Expect(w.o.Values["alive"]).To(Equal(Reading{Before: 1, Worst: 0, After: 1}))
	g.Expect(w.o.Values["latency"]).To(Equal(Reading{Worst: int64(stall), After: 1}))
	g.Expect(w.o.Values["swapped"].Worst).To(BeEquivalentTo(4096))
	g.Expect(w.o.Found).To(ConsistOf("stalled"))
}

// deaf starts a process that never answers, so that the control must fail.
type deaf struct{ reexec }

func (d deaf) Spawn(ctx context.Context, c Child) (*os.Process, error) {
	c.Stdio = nil
	return d.reexec.Spawn(ctx, c)
}

func TestBystanderControl(t *testing.T) {
	g := NewWithT(t)
	c := NewBystander(Local(), reexec{Local()}).Control(t.Context())
	g.Expect(c.Passed).To(BeTrue(), "%+v", c)
	c = NewBystander(Local(), deaf{reexec{Local()}}).Control(t.Context())
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(ContainSubstring("does not answer"))
	c = NewBystander(Local(), broken{}).Control(t.Context())
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(ContainSubstring("no spawning"))
}

type broken struct{}

func (broken) Spawn(context.Context, Child) (*os.Process, error) {
	return nil, errors.New("no spawning")
}

func TestSwapped(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(os.Mkdir(root+"/7", 0o755)).To(Succeed())
	g.Expect(os.WriteFile(root+"/7/status", []byte("Name:\texe\nVmSwap:\t      12 kB\nThreads:\t1\n"), 0o644)).To(Succeed())
	g.Expect(swapped(Host{Proc: root}, 7)).To(BeEquivalentTo(12 << 10))
	_, err := swapped(Host{Proc: root}, 8)
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
