package hostile

// Output is a contract check beyond the ten: print past the output bound.
var Output = register(Attempt{
	Step:     0,
	Name:     "output",
	Title:    "print past the output bound",
	Tries:    "prints past the bound on standard output and standard error together",
	Expected: "ended by the output cap at the output bound; exactly the granted bytes are kept",
	Why:      "the bound is over both streams together, so each alone stays below it",
	Routes: []Route{
		{Name: "both-streams", Title: "print on both streams in turn", Inside: true},
	},
})
