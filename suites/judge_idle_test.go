package suites

import (
	"slices"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
)

// A payload that does nothing and exits well leaves nothing on the host: what
// it did not do was refused by no other wall, and shows nothing of this one.
func TestIdlePayloadIsSilent(t *testing.T) {
	for _, trial := range Trials() {
		route, _ := trial.Attempt.Route(trial.Route)
		if _, left := leftBy[trial.Route]; !route.Inside && !left {
			continue // asks nothing of the payload
		}
		rt := heldAs(trial)
		rt.Claims, rt.Ended = nil, &reports.Ended{Reason: exited}
		for _, o := range rt.Observations {
			for value := range o.Values {
				// Looked, and there was nothing.
				o.Values[value] = observers.Reading{}
			}
		}
		for _, w := range rt.Wants { // the bystander is alive, and the runtime in its cgroup, whatever the payload does
			if w.Observer == "bystander" || w.Value == "inside" {
				set(&rt, w, 1)
			}
		}
		expect(t, "an idle payload", rt, hostile.Silent)
	}
}

// What went wrong around a trial does not hide an effect that was seen.
func TestTroubleHidesNoEffect(t *testing.T) {
	for _, trial := range Trials() {
		rt := heldAs(trial)
		rt.Trouble = "interrupted"
		expect(t, "trouble alone", rt, hostile.Broken)
		rt.Claims = append(slices.Clone(rt.Claims), hostile.Claim{Event: hostile.Happened})
		expect(t, "trouble, and it happened", rt, hostile.Fell)
		for _, w := range trial.Wants {
			if w.Breach != hostile.Fell {
				continue
			}
			rt := heldAs(trial)
			filled := wantOf(rt, w)
			rt.Trouble = "interrupted"
			set(&rt, filled, breaching(filled))
			expect(t, "trouble, and the host saw it: "+w.Words, rt, hostile.Fell)
		}
	}
}
