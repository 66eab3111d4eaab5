package main

import (
	"strings"

	"tenwalls.dev/harness/hostile"
)

// A mutated payload: what the suite has to notice. See hostile.Deceit.

func deceitOf(order hostile.Order) hostile.Deceit {
	return hostile.Deceit(order.Params[hostile.ParamDeceit])
}

// deceive turns an honest claim into the ordered one; false drops it.
func (p *Probe) deceive(c *hostile.Claim) bool {
	switch deceitOf(p.order) {
	case hostile.DeceitNameless:
		// As a claim of another run: an empty nonce is no claim at all.
		c.Nonce = strings.Repeat("0", len(c.Nonce))
	case hostile.DeceitLie:
		if c.Event != hostile.Happened && c.Event != hostile.Stopped {
			return true
		}
		expected, ok := p.expected()
		if !ok {
			return false
		}
		c.Event, c.Kind, c.Place = hostile.Stopped, expected.Kind, expected.Place
	}
	return true
}

// pretend claims the expected refusal without the act before it.
func (p *Probe) pretend() {
	if expected, ok := p.expected(); ok {
		p.Refused(expected.Kind, expected.Place, "none", 0, "nothing was tried")
	}
}

func (p *Probe) expected() (hostile.Refusal, bool) {
	return hostile.ParseRefusal(p.order.Params[hostile.ParamExpected+p.attempt+"/"+p.route])
}
