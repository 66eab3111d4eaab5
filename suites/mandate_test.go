package suites

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tenwalls.dev/harness/sandbox/runsc"
)

// A run that lasts long under a long grant goes on; one that hangs begins nothing.
func TestAMandateLastsAsLongAsTheRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := runsc.DefaultConfig().Limits
		l.Wall = runsc.Duration(time.Hour)
		m := newMandate(l)
		for range 10 {
			time.Sleep(2 * time.Hour)
			if until, err := m.end(); err != nil || time.Until(until) != provisional {
				t.Fatalf("%s, %v", until, err)
			}
			m.renew()
		}
		time.Sleep(2*time.Hour + provisional)
		if until, err := m.end(); err == nil {
			t.Errorf("it lasts until %s", until)
		}
	})
}

// Each cell renews it.
func TestACellRenewsTheMandate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scene := fakeScene()
		scene.Nonce = strings.Repeat("n", 1<<20) // an order that cannot be sealed: the cell ends before it is submitted
		scene.mandate = newMandate(scene.cfg.Limits)
		time.Sleep(scene.mandate.life - time.Second)
		if ev := newSitting(cellNamed(t, "outside"), scene, nil, nil).run(t.Context()); ev.trouble == "" {
			t.Fatal("it was submitted")
		}
		time.Sleep(2 * time.Second)
		if _, err := scene.mandate.end(); err != nil {
			t.Error(err)
		}
	})
}
