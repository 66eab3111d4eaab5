package main

import (
	"strings"

	"tenwalls.dev/harness/hostile"
)

var _ = route("privileges", "capabilities", readCapabilities)

// capabilitySets are the five sets of capabilities(7) as the status names them.
var capabilitySets = []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}

func readCapabilities(p *Probe) {
	const call = "read the capability sets of /proc/self/status"
	s, err := ownStatus()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	p.Reached(call, "")
	empty, note := noCapability(s)
	p.Reading(note)
	switch {
	case empty:
		p.Refused(hostile.InForce, hostile.ProcessCredentials, call, 0, note)
	case s["CapPrm"] == "":
		p.Failed("the status names no capability sets")
	default:
		p.Happened(call, 0, note)
	}
}

// noCapability tells whether all five sets are empty. An older guest kernel does
// not name the ambient set, which can hold nothing that the permitted set does
// not (capabilities(7)).
func noCapability(s status) (empty bool, note string) {
	empty = true
	var words []string
	for _, set := range capabilitySets {
		value, named := s[set]
		if !named && set == "CapAmb" {
			words = append(words, "CapAmb not named")
			empty = empty && isZero(s["CapPrm"])
			continue
		}
		words = append(words, set+" "+value)
		empty = empty && isZero(value)
	}
	return empty, strings.Join(words, "; ")
}
