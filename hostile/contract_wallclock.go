package hostile

// Wallclock is a contract check beyond the ten: outlast the wall clock.
var Wallclock = register(Attempt{
	Step:     0,
	Name:     "wallclock",
	Title:    "outlast the wall clock",
	Tries:    "sleeps past the wall clock",
	Expected: "ended by the wall cap at the wall clock, at 10 s",
	Why:      "a field that the attestation carries must have been shown in the same run",
	Routes: []Route{
		{Name: "sleeper", Title: "one process sleeps", Inside: true},
	},
})
