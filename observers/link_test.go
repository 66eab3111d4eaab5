package observers

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
)

// lateLink shows what was sent only at the third look.
func lateLink(base, sent, beside tally) (*Link, *int) {
	looks := 0
	l := &Link{wire: &Wire{Name: "place", Link: "up0", sent: sent}, base: base}
	l.read = func() (tally, error) {
		if looks++; looks < 3 {
			return base.add(tally{sent.packets - 1, sent.bytes - 87}), nil
		}
		return base.add(sent).add(beside), nil
	}
	return l, &looks
}

// A control that the link shows late is not taken for the job's.
func TestLinkWaitsForWhatControlsSent(t *testing.T) {
	g := NewWithT(t)
	l, looks := lateLink(tally{6, 420}, tally{13, 1000}, tally{})
	w, err := l.Watch(t.Context(), Subject{Place: "here"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*looks).To(BeNumerically(">=", 3))
	w.Ended()
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Values["tx_packets"].After).To(BeZero())
	g.Expect(obs.Values["tx_bytes"].After).To(BeZero())
	g.Expect(obs.Found).To(BeEmpty())
}

// What others sent before does not hold it up, and what they send after shows.
func TestLinkShowsWhatOthersSent(t *testing.T) {
	g := NewWithT(t)
	l, _ := lateLink(tally{}, tally{13, 1000}, tally{2, 180})
	w, err := l.Watch(t.Context(), Subject{})
	g.Expect(err).NotTo(HaveOccurred())
	l.read = func() (tally, error) { return tally{13 + 2 + 1, 1000 + 180 + 60}, nil }
	w.Ended()
	obs := w.Stored()
	g.Expect(obs.Values["tx_packets"].After).To(BeEquivalentTo(1))
	g.Expect(obs.Values["tx_bytes"].After).To(BeEquivalentTo(60))
	g.Expect(obs.Found).To(ConsistOf(ContainSubstring("1 packets, 60 bytes left over link up0")))
}

func TestLinkThatNeverShowsItsControls(t *testing.T) {
	g := NewWithT(t)
	l, _ := lateLink(tally{}, tally{1, 67}, tally{})
	l.read = func() (tally, error) { return tally{}, nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Watch(ctx, Subject{Place: "here"})
	g.Expect(err).To(MatchError(And(ContainSubstring("shows 0 packets, 0 bytes, and 1 packets, 67 bytes were on it"), ContainSubstring("canceled"))))
	l.read = func() (tally, error) { return tally{}, errors.New("no such link") }
	_, err = l.Watch(t.Context(), Subject{Place: "here"})
	g.Expect(err).To(MatchError(ContainSubstring("no such link")))
}
